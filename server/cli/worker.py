"""`fanline worker`: project and archive the log, once or continuously, and list dead letters."""

import sys

from graph import Graph
from server import worker
from server.cli.console import console, print_warning
from server.cli.stores import describe, existing_store_of, run, store_of
from server.process.start import start_safely
from server.settings import Settings


def work() -> None:
    """Project and archive the log until the process is stopped."""
    settings = Settings.load()
    start_safely(settings, print_warning)
    with store_of(settings):
        console.print(
            f"Projecting and archiving the log of {describe(settings)}. Press Ctrl-C to stop.", soft_wrap=True
        )
        run(settings, worker.work)


def drain() -> None:
    """Project and archive all events in the log, then return. Raises SettingsError if there is no store."""
    settings = Settings.load()
    start_safely(settings, print_warning)
    with existing_store_of(settings):
        run(settings, _drain)


def list_dead_letters() -> None:
    """Print the dead letters, one per line. Raises SettingsError if there is no store."""
    settings = Settings.load()
    with existing_store_of(settings):
        run(settings, _list_dead_letters)


async def _drain(graph: Graph) -> None:
    watermark = await graph.worker().drain()
    await graph.archiver.work()
    left = (await graph.backlog()).unarchived
    archived = f"; {left:,} events are not archived yet" if left else " and archived"
    console.print(f"Every event up to number {watermark} is projected{archived}.")


async def _list_dead_letters(graph: Graph) -> None:
    letters = await graph.dead_letters.oldest()
    count = "1 event or task" if len(letters) == 1 else f"{len(letters):,} events or tasks"
    console.print(f"{count} could not be processed." if letters else "There are no dead letters.")
    for letter in letters:
        sys.stdout.write("  ".join(f"{name}={value}" for name, value in letter.items()) + "\n")
