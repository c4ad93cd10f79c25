"""Write the generated parts of the documentation: `python -m scripts.docs`, or `--check` to compare only.

A generated part is between `<!-- generated: NAME -->` and `<!-- end -->` in a page.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.docs import api, commands, errors, prices, settings, sizes

DOCS = Path(__file__).resolve().parents[2] / "docs"
PART = re.compile(r"(<!-- generated: ([\w -]+?) -->\n).*?(<!-- end -->)", re.S)
PARTS: Mapping[str, Callable[[], str]] = {
    "api": api.reference,
    "commands": commands.reference,
    "errors": errors.table,
    "prices": prices.table,
    "sizes": sizes.table,
    **settings.tables(),
}


def pages() -> dict[Path, str]:
    """Return the up-to-date text of each page that has generated parts."""
    texts = {path: path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))}
    return {path: PART.sub(_filled, text) for path, text in texts.items() if PART.search(text)}


def _filled(part: re.Match[str]) -> str:
    """Return the text of a generated part with up-to-date content. Raises SystemExit for an unknown name."""
    if part[2] not in PARTS:
        raise SystemExit(f"No part of the documentation is called {part[2]!r}. Known: {', '.join(PARTS)}.")
    return f"{part[1]}\n{PARTS[part[2]]().strip()}\n\n{part[3]}"


def outdated() -> list[Path]:
    """Return the pages whose generated parts differ from the code."""
    return [path for path, text in pages().items() if path.read_text("utf-8") != text]


def main() -> None:
    """Write the pages, or exit with an error if one is out of date."""
    parser = argparse.ArgumentParser(prog="python -m scripts.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with an error if a page is outdated")
    check = parser.parse_args().check
    for path in outdated():
        if check:
            sys.exit(f"{path.relative_to(DOCS.parent)} is out of date: run 'uv run python -m scripts.docs'.")
        path.write_text(pages()[path], "utf-8")


if __name__ == "__main__":
    main()
