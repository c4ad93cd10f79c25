"""The console for tables and progress bars. It prints to stderr, so that stdout carries results only."""

from rich.console import Console

console = Console(stderr=True, highlight=False)
