"""The fenced blocks of the documentation. Each test module here claims the blocks that it runs."""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "adr"),
    *sorted((ROOT / "client").glob("*.md")),
    *sorted((ROOT / "examples").glob("*/*.md")),
)  # the README of the executor has a test of its own

NOT_RUN = {  # the beginnings of commands, and why no test runs them; shell.py and the tests leave them out
    "systemctl, journalctl": "need systemd as the first process; the programs of the units run without it",
    "useradd, runuser": "need root; the commands after them run as the user of the test",
    "git clone, uv sync, npm install": "fetch a repository or install packages, as CI does at its start",
    "for f in client": "the same for three folders",
    "docker": "needs Docker; tests/packaging runs what the container files contain",
    "valkey-cli --cluster reshard": "asks questions; tests/faults moves slots",
    "valkey-cli cluster failover": "tests/faults has failovers",
    "kill -9": "tests/server starts the cluster of the demo, and tests/faults kills nodes",
    "ulimit": "shows a limit",
    "python3 -m uv run pytest": "runs these tests",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        """Return the place of the block."""
        return f"{self.page}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    text, page = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
    found = re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.M)
    return [Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2]) for match in found]


BLOCKS = [block for path in PAGES for block in blocks_of(path)]
CLAIMS: defaultdict[Block, list[str]] = defaultdict(list)


def claim(by: str, *languages: str, page: str = "", containing: str = "") -> list[Block]:
    """Return the blocks in some languages, on a page and with a text if given, and record who runs them: `by`."""
    found = [
        block
        for block in BLOCKS
        if block.language in languages and page in ("", block.page) and containing in block.text
    ]
    assert found, f"{by}: no such block"
    for block in found:
        CLAIMS[block].append(by)
    return found
