"""`fanline worker`: project the log, once or continuously, and list dead letters."""

import sys

from graph import Graph
from server import worker
from server.cli.console import console, print_warning
from server.cli.stores import describe, existing_store_of, run, store_of
from server.process.start import start_safely
from server.settings import Settings


def work() -> None:
    """Project the log until the process is stopped."""
    settings = Settings.load()
    start_safely(settings, print_warning)
    with store_of(settings):
        console.print(f"Projecting the log of {describe(settings)}. Press Ctrl-C to stop.", soft_wrap=True)
        run(settings, worker.work)


def drain() -> None:
    """Project all events in the log, then return. Raises SettingsError if there is no store."""
    settings = Settings.load()
    start_safely(settings, print_warning)
    with existing_store_of(settings):
        run(settings, _drain)


def list_dead_letters() -> None:
    """Print the events that could not be projected, one per line. Raises SettingsError if there is no store."""
    settings = Settings.load()
    with existing_store_of(settings):
        run(settings, _list_dead_letters)


async def _drain(graph: Graph) -> None:
    watermark = await graph.worker().drain()
    console.print(f"Every event up to number {watermark} is projected.")


async def _list_dead_letters(graph: Graph) -> None:
    letters = await graph.dead_letters.oldest()
    console.print(f"{len(letters)} events could not be projected." if letters else "There are no dead letters.")
    for letter in letters:
        sys.stdout.write("  ".join(f"{name}={value}" for name, value in letter.items()) + "\n")
