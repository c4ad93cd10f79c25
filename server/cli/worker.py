"""`fanline worker`: project and archive the log, once or continuously."""

from graph import Graph
from server import worker
from server.cli.messages import print_warning, say
from server.cli.stores import describe, existing_store_of, run, store_of
from server.process.garbage import WORKER, freeze
from server.process.logs import configure_logging
from server.process.start import check_servers, start_safely
from server.settings import Settings


def work() -> None:
    """Project and archive the log until the process is stopped. Wait for a store that does not answer."""
    settings = Settings.load()
    configure_logging(settings.log_format)
    start_safely(settings, print_warning)
    with store_of(settings):
        say(f"Projecting and archiving the log of {describe(settings)}. Press Ctrl-C to stop.")
        run(settings, lambda graph: _work(graph, settings), needs_store=False)


def drain() -> None:
    """Project and archive all events in the log, then return. Raises SettingsError if there is no store."""
    settings = Settings.load()
    configure_logging(settings.log_format)
    start_safely(settings, print_warning)
    with existing_store_of(settings):
        run(settings, lambda graph: _drain(graph, settings))


async def _work(graph: Graph, settings: Settings) -> None:
    await check_servers(graph, settings, print_warning)
    freeze(WORKER)
    await worker.work(graph)


async def _drain(graph: Graph, settings: Settings) -> None:
    await check_servers(graph, settings, print_warning)
    watermark = await graph.worker().drain()
    await graph.archiver.work()
    converted = await graph.conversion.finish()
    left = (await graph.backlog()).unarchived
    archived = f"; {left:,} events are not archived yet" if left else " and archived"
    say(f"Every event up to number {watermark} is projected{archived}.")
    if not converted:
        say(
            "The store of an earlier version has not been converted yet: a worker converts it once all events are "
            "archived."
        )
