"""`fanline rebuild`: fill an empty store from the archive."""

from functools import partial

from graph import Graph
from graph.rebuild.rebuild import RebuildReport
from server.cli.messages import print_warning, say
from server.cli.progress import progress_bar
from server.cli.stores import describe, run, store_of
from server.lifespan import ArchiveUse
from server.seeding.load import check_complete
from server.settings import Settings


def rebuild_store() -> None:
    """Fill an empty store from the archive, and print how much was restored.

    Raises RebuildRefused if the store is not empty or the archive holds no events, and SeedRefused if the archive holds
    an unfinished seeding.
    """
    settings = Settings.load()
    with store_of(settings):
        report = run(settings, _rebuild, ArchiveUse.REBUILD)
    show(report, describe(settings))


async def _rebuild(graph: Graph) -> RebuildReport:
    await check_complete(graph)
    with progress_bar("Rebuilding") as advance:
        return await graph.rebuild().run(partial(advance, "Filling the store"))


def show(report: RebuildReport, where: str) -> None:
    """Print the figures of a rebuild, and what it could not restore."""
    speed = report.events / max(report.seconds, 0.001)
    say(
        f"Rebuilt {report.users:,} users, {report.follows:,} follows, {report.posts:,} posts and "
        f"{report.likes:,} likes from {report.events:,} events in {report.seconds:,.1f} seconds "
        f"({speed:,.0f} events per second), in {where}.",
    )
    if report.damaged:
        print_warning(f"{report.damaged:,} damaged events of the archive were left out.")
    say("All users must log in again. Events that were not archived before the store was lost are missing.")
