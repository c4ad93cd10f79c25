"""The store and the graph that a command uses."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar
from urllib.parse import urlsplit

from graph import Graph
from server.embedded import EmbeddedStore
from server.lifespan import ArchiveUse, open_graph
from server.local_cluster import LocalCluster
from server.settings import Settings, SettingsError

T = TypeVar("T")


@contextlib.contextmanager
def store_of(settings: Settings) -> Iterator[None]:
    """Run the embedded store for the duration of the block, unless the settings name another store. Exit on SIGTERM.

    Other code that uses the same data folder, such as `open_graph`, shares this store.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if settings.store_url is not None:
        yield
        return
    with EmbeddedStore(settings.data_dir, settings.embedded_durability):
        yield


@contextlib.contextmanager
def cluster_of(settings: Settings) -> Iterator[Settings]:
    """Run a private cluster in the data folder for the duration of the block. Yield settings for this cluster.

    The archive is in the same folder, unless the settings name another. Raises SettingsError if they name a store.
    """
    if settings.store_url is not None:
        raise SettingsError("`fanline cluster-demo` starts its own cluster. Unset FANLINE_STORE_URL.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with LocalCluster(settings.data_dir / "cluster", settings.durability) as cluster:
        yield Settings.load(data_dir=cluster.folder, store_url=cluster.url)


@contextlib.contextmanager
def existing_store_of(settings: Settings) -> Iterator[None]:
    """Run an existing embedded store, as `store_of` does. Raises SettingsError if the data folder holds none."""
    if settings.store_url is None and not EmbeddedStore(settings.data_dir).folder.is_dir():
        raise SettingsError(f"There is no store yet in {describe(settings)}.")
    with store_of(settings):
        yield


def describe(settings: Settings) -> str:
    """Return a description of the store that the settings name, without its password."""
    if settings.store_url is None:
        return f"the data folder {settings.data_dir} (set FANLINE_DATA_DIR or FANLINE_STORE_URL for another one)"
    url = urlsplit(settings.store_url)
    return f"the store {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event-loop factory, or None, for Python's own event loop, if uvloop is not installed."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


def run(
    settings: Settings,
    task: Callable[[Graph], Awaitable[T]],
    archive: ArchiveUse = ArchiveUse.READ_AND_WRITE,
    *,
    needs_store: bool = True,
) -> T:
    """Run a task with the graph in a new event loop, and return its result.

    Raises StoreUnavailable if `needs_store` is true and the store does not answer. SIGTERM cancels the task, and the
    process exits after the graph is closed: an immediate exit could interrupt the closing.
    """

    async def main() -> T:
        running = asyncio.current_task()
        if running is not None:
            with contextlib.suppress(NotImplementedError):  # on Windows
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        async with open_graph(settings, archive=archive) as graph:
            if needs_store:
                await graph.store.ping()
            return await task(graph)

    handler = signal.getsignal(signal.SIGTERM)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(main())
    except asyncio.CancelledError:
        sys.exit(0)
    finally:
        signal.signal(signal.SIGTERM, handler)  # the event loop has reset it


async def user_with_login(graph: Graph, settings: Settings, login: str) -> int:
    """Return the id of the user with this login. Raises SettingsError if there is none or the user was deleted."""
    [user] = await graph.users.ids_of_logins([login])
    if user is None and await graph.users.is_reserved(login):
        raise SettingsError(f"The user with the login {login!r} has deleted their account in {describe(settings)}.")
    if user is None:
        raise SettingsError(f"There is no user with the login {login!r} in {describe(settings)}.")
    return user
