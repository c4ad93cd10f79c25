"""Markdown tables."""

from collections.abc import Iterable, Sequence


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Line breaks in cells become spaces."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def anchored(name: str, shown: str = "") -> str:
    """Return a code span with an anchor, so that links can lead to its row."""
    return f'<a id="{name.lower()}"></a>`{shown or name}`'


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
