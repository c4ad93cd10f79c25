"""`fanline seed`: fill an empty store with generated or imported data in bulk."""

from pathlib import Path

from graph import Graph
from server.cli.messages import say
from server.cli.progress import progress_bar
from server.cli.stores import run, store_of
from server.lifespan import ArchiveUse
from server.seeding.load import Source, load
from server.seeding.sources import seed_source
from server.settings import Settings


def seed_store(
    users: int | None, posts: int | None, following: int | None, follows: Path | None, texts: Path | None
) -> None:
    """Fill an empty store and an unused archive. Raises SeedRefused if they hold other data."""
    settings = Settings.load()
    source = seed_source(users, posts, following, follows, texts)
    with store_of(settings):
        fresh = run(settings, lambda graph: seed_with_progress(graph, source), ArchiveUse.REBUILD)
    say(f"{'Seeded' if fresh else 'The store already holds'} {source.what}.")


async def seed_with_progress(graph: Graph, source: Source) -> bool:
    """Seed the store and show the progress. Return False if the store already held the same data."""
    with progress_bar("Seeding") as advance:
        return await load(graph, source, advance)
