"""`fanline serve`: the API."""

import asyncio

from graph import Graph
from graph.archive.archive import Archive
from graph.archive.migrations import SchemaMismatch
from graph.errors import ArchiveUnavailable, StoreUnavailable
from server.app import create_app
from server.cli.messages import print_warning, say
from server.cli.stores import describe, store_of
from server.embedded import EmbeddedStore
from server.process.checks import UnsafeStart
from server.process.start import check_servers, start_safely
from server.seeding.load import holds_demo
from server.serving import bind, serve_here, serve_many
from server.settings import Settings

CHECK_SECONDS = 5.0


def serve_api(host: str, port: int, workers: int) -> None:
    """Serve the API in one process or several. Raises SettingsError, UnsafeStart, WrongArchive and SchemaTooNew."""
    settings = Settings.load()
    start_safely(settings, print_warning, host)
    listening = bind(host, port)
    app = create_app(settings)
    with store_of(settings):
        asyncio.run(check_stores(settings))
        if settings.production:
            asyncio.run(refuse_demo(settings))
        say(f"Serving on {host}, port {listening.getsockname()[1]}. Press Ctrl-C to stop.")
        if workers == 1:
            serve_here(app, listening, settings)
        else:
            serve_many(settings, listening, workers)


async def check_stores(settings: Settings) -> None:
    """Check the store and the archive before serving. Raises WrongArchive, SchemaTooNew or UnsafeStart.

    Without this check, each serving process would print a traceback. A store or an archive that does not answer is not
    an error.
    """
    url = settings.store_url or EmbeddedStore(settings.data_dir).url
    graph = await Graph.open(url, Archive(settings.archive), settings.tuning)
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await check_servers(graph, settings, print_warning)
            await graph.binding.check()
    except (ArchiveUnavailable, StoreUnavailable, TimeoutError):
        return
    finally:
        await graph.close()


async def refuse_demo(settings: Settings) -> None:
    """Raise UnsafeStart if the archive holds the users of the demo. One query.

    An archive that does not exist yet or does not answer is not an error.
    """
    url = settings.store_url or EmbeddedStore(settings.data_dir).url
    graph = await Graph.open(url, Archive(settings.archive, migrates=False), settings.tuning)
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            found = await holds_demo(graph)
    except (ArchiveUnavailable, SchemaMismatch, TimeoutError):
        return
    finally:
        await graph.close()
    if found:
        raise UnsafeStart(
            "The demo's users have a public password, so they cannot be served in production. They are in "
            f"{describe(settings)}."
        )
