"""The messages that the documentation quotes are those of the code."""

import ast
import re
from pathlib import Path

from tests.docs.blocks import PAGES, ROOT

PACKAGES = ("graph", "resolvers", "schema", "server")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")
HEALTH = OPERATIONS.partition("\n## Health\n")[2].partition("\n## ")[0]


def quoted() -> set[str]:
    """Return the code spans that are sentences, and the reasons and warnings of `/health/ready`."""
    spans = set(re.findall(r"^\| ([A-Z][^|]+?\.|[A-Z][^|]+ …) \|", HEALTH, re.M))
    for path in PAGES:
        text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.S | re.M)
        spans |= {" ".join(span.split()) for span in re.findall(r"`([A-Z][a-z]* [^`]+)`", text)}
    return spans


def literal(node: ast.Constant | ast.JoinedStr) -> str:
    """Return the text of a string, with … for values."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)


def messages() -> str:
    """Return all strings of the code, one on each line."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(Path(path).read_text("utf-8")))]
    found = (literal(node) for node in nodes if isinstance(node, (ast.Constant, ast.JoinedStr)))
    return "\n".join(" ".join(text.split()) for text in found)


def is_among(message: str, text: str) -> bool:
    """Return True if a page quotes a message of the code, with `…` for values and for the rest of the message."""
    parts = [re.escape(part.strip()) for part in message.split("…")]
    return bool(re.search(".*".join(parts), text))


def test_quoted_messages_exist() -> None:
    text = messages()
    assert len(quoted()) > 20
    assert [message for message in sorted(quoted()) if not is_among(message, text)] == []
