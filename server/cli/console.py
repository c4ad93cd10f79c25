"""Console output of the commands. Messages go to stderr, so that stdout carries results only."""

from rich.console import Console
from rich.markup import escape

console = Console(stderr=True, highlight=False)


def print_warning(text: str) -> None:
    """Print a warning on one line."""
    console.print(f"[yellow]Warning:[/] {escape(text)}", soft_wrap=True)
