"""Servers under attack, one per configuration. They are restarted after a crash."""

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from graph.archive.database import POOL_SIZE
from resolvers import ids
from server.embedded import Durability, EmbeddedStore
from tests.attacks.bounds import Bounds
from tests.attacks.clients import open_socket, run_on_socket, subscribe
from tests.attacks.crowds import send_invalid_requests
from tests.attacks.payloads import EVENTS, LOG_IN
from tests.attacks.victim import Victim, ask
from tests.attacks.world import World, seed_world
from tests.conftest import need

WARM_UP = 500  # refused requests
LOOK_UPS = 5  # of each of the simultaneous clients


@pytest.fixture(scope="session")
def attacked_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a Valkey server for the attacks and yield its URL."""
    need(sys.platform == "linux", "Linux, whose /proc shows the resources of a process")
    with EmbeddedStore(tmp_path_factory.mktemp("attacked"), Durability.RELAXED) as store:
        with redis.Redis.from_url(store.url) as client:
            client.config_set("appendonly", "no")
        yield store.url


@pytest.fixture(scope="session")
def attacked_world(attacked_store: str) -> World:
    """Seed the world that the servers serve."""
    return asyncio.run(seed_world(attacked_store))


@pytest.fixture(scope="session")
def is_quick(pytestconfig: pytest.Config) -> bool:
    """Return True unless the long profile was requested, in which the servers' CPU time is measured."""
    return not pytestconfig.getoption("--long")


@pytest.fixture(scope="session")
def unlimited_server(
    attacked_store: str, attacked_world: World, tmp_path_factory: pytest.TempPathFactory, is_quick: bool
) -> Iterator[Victim]:
    """Run a server without rate limits, so that attacks can be repeated."""
    with Victim(tmp_path_factory.mktemp("unlimited"), attacked_store, attacked_world, quick=is_quick) as victim:
        warm_up(victim)
        yield victim


@pytest.fixture(scope="session")
def limited_server(
    attacked_store: str, attacked_world: World, tmp_path_factory: pytest.TempPathFactory, is_quick: bool
) -> Iterator[Victim]:
    """Run a server with rate limits, as in production."""
    folder = tmp_path_factory.mktemp("limited")
    with Victim(folder, attacked_store, attacked_world, rates=True, quick=is_quick) as victim:
        yield victim


def warm_up(victim: Victim) -> None:
    """Cause one-time allocations before the test, so that they do not count as the effect of an attack."""
    token = victim.world.tokens["alice"]
    with open_socket(victim, token) as opened:
        subscribe(opened, "events", EVENTS)
        subscribe(opened, "home", "subscription { homeTimeline { cursor } }")
        subscribe(
            opened, "timeline", f'subscription {{ timeline(timelineId: "{victim.world.timeline}") {{ cursor }} }}'
        )
        subscribe(opened, "thread", f'subscription {{ thread(postId: "{victim.world.posts[0]}") {{ cursor }} }}')
        run_on_socket(opened, "{ viewer { homeTimeline { entries(first: 9) { nodes { ... on Post { text } } } } } }")
    with victim.client(token) as client:
        ask(client, 'mutation { publishPost(input: {text: "The first one"}) { post { id } } }')
        ask(client, LOG_IN, input={"login": "alice", "password": "a wrong pass phrase"})
    send_invalid_requests(victim, WARM_UP)
    open_archive_connections(victim)
    victim.wait_until_idle()


def open_archive_connections(victim: Victim) -> None:
    """Open all connections of the archive's pool, which take memory, by looking up posts simultaneously."""
    unknown = ids.encode(ids.Kind.POST, 1)

    def look_up(_: int) -> None:
        with victim.client() as client:
            for _ in range(LOOK_UPS):
                ask(client, "query ($id: ID!) { post(id: $id) { id } }", id=unknown)

    with ThreadPoolExecutor(2 * POOL_SIZE) as threads:
        list(threads.map(look_up, range(2 * POOL_SIZE)))


@pytest.fixture
def victim(unlimited_server: Victim) -> Iterator[Victim]:
    """Yield a server without rate limits, which must survive the test."""
    unlimited_server.restart_if_ended()
    yield unlimited_server
    assert unlimited_server.alive(), unlimited_server.log()[-2000:]


@pytest.fixture
def limited(limited_server: Victim) -> Iterator[Victim]:
    """Yield a server with rate limits, which must survive the test."""
    limited_server.restart_if_ended()
    yield limited_server
    assert limited_server.alive(), limited_server.log()[-2000:]


@pytest.fixture(scope="session")
def bounds(unlimited_server: Victim, is_quick: bool) -> Bounds:
    """Return the bounds of this machine in the long profile, otherwise rough ones."""
    return Bounds() if is_quick else Bounds.measure(unlimited_server)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for a server that only this test uses."""
    return tmp_path / "server"
