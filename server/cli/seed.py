"""`fanline seed`: generated or imported data in bulk."""

from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from graph import Graph
from server.cli.console import console
from server.cli.stores import run, store_of
from server.seeding.load import Source, load
from server.seeding.sources import seed_source
from server.settings import Settings


def seed_store(
    users: int | None, posts: int | None, following: int | None, follows: Path | None, texts: Path | None
) -> None:
    """Fill an empty store. Raises SeedRefused if the store holds anything else."""
    settings = Settings.load()
    source = seed_source(users, posts, following, follows, texts)
    with store_of(settings):
        fresh = run(settings, lambda graph: seed_with_progress(graph, source))
    console.print(f"{'Seeded' if fresh else 'The store already holds'} {source.what}.")


async def seed_with_progress(graph: Graph, source: Source) -> bool:
    """Seed the store and show the progress. Return False if the store already held the same data."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("Seeding", total=None)

        def advance(done: int, total: int) -> None:
            if progress.tasks[bar].total is None:
                progress.reset(bar, total=total, completed=done)  # earlier work must not count for the estimate
            else:
                progress.update(bar, completed=done)

        return await load(graph, source, advance)
