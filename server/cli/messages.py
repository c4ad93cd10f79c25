"""Messages of the commands. They go to stderr, so that stdout carries results only.

Tables and progress bars are printed by rich (`server.cli.console`), which is too slow to import for a message.
"""

import os

import typer


def say(text: str) -> None:
    """Print a message."""
    typer.echo(text, err=True)


def say_labelled(label: str, text: str, color: str) -> None:
    """Print a message after a label. The label has this color on a terminal, unless NO_COLOR is set."""
    typer.echo(f"{typer.style(label, fg=color)} {text}", err=True, color=False if os.environ.get("NO_COLOR") else None)


def print_warning(text: str) -> None:
    """Print a warning."""
    say_labelled("Warning:", text, "yellow")
