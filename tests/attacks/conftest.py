"""Servers under attack, one for each way of running; restarted if an attack has ended one."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from server.embedded import Durability, EmbeddedStore
from tests.attacks.bounds import Bounds
from tests.attacks.clients import open_socket, run_on_socket, subscribe
from tests.attacks.crowds import send_junk
from tests.attacks.payloads import EVENTS, LOG_IN
from tests.attacks.victim import Victim, ask
from tests.attacks.world import World, settle
from tests.conftest import need

WARM_UP = 500  # refused requests


@pytest.fixture(scope="session")
def attacked_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a Valkey server that no other test empties; give its URL."""
    need(sys.platform == "linux", "Linux, whose /proc tells what a process spends")
    with EmbeddedStore(tmp_path_factory.mktemp("attacked"), Durability.RELAXED) as store:
        with redis.Redis.from_url(store.url) as client:
            client.config_set("appendonly", "no")
        yield store.url


@pytest.fixture(scope="session")
def attacked_world(attacked_store: str) -> World:
    """Seed what the servers serve."""
    return asyncio.run(settle(attacked_store))


@pytest.fixture(scope="session")
def unlimited_server(
    attacked_store: str, attacked_world: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Victim]:
    """Serve without rate limits, so that attacks can be repeated."""
    with Victim(tmp_path_factory.mktemp("unlimited"), attacked_store, attacked_world) as victim:
        warm_up(victim)
        yield victim


@pytest.fixture(scope="session")
def limited_server(
    attacked_store: str, attacked_world: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Victim]:
    """Serve with rate limits, as production does."""
    with Victim(tmp_path_factory.mktemp("limited"), attacked_store, attacked_world, rates=True) as victim:
        yield victim


def warm_up(victim: Victim) -> None:
    """Let the server start what it starts on first use, so that it does not count as left behind by an attack."""
    token = victim.world.tokens["alice"]
    with open_socket(victim, token) as opened:
        subscribe(opened, "events", EVENTS)
        subscribe(opened, "home", "subscription { homeTimeline { cursor } }")
        run_on_socket(opened, "{ viewer { homeTimeline { posts(first: 9) { nodes { text } } } } }")
    with victim.client(token) as client:
        ask(client, 'mutation { publishPost(input: {text: "The first one"}) { post { id } } }')
        ask(client, LOG_IN, input={"login": "alice", "password": "a wrong pass phrase"})
    send_junk(victim, WARM_UP)
    victim.settle()


@pytest.fixture
def victim(unlimited_server: Victim) -> Iterator[Victim]:
    """Give a server without rate limits, which has to survive the test."""
    unlimited_server.revive()
    yield unlimited_server
    assert unlimited_server.alive(), unlimited_server.log()[-2000:]


@pytest.fixture
def limited(limited_server: Victim) -> Iterator[Victim]:
    """Give a server with rate limits, which has to survive the test."""
    limited_server.revive()
    yield limited_server
    assert limited_server.alive(), limited_server.log()[-2000:]


@pytest.fixture(scope="session")
def bounds(unlimited_server: Victim) -> Bounds:
    """Give the bounds of this machine, from what a plain request costs here."""
    return Bounds.measure(unlimited_server)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder for a server of the test's own."""
    return tmp_path / "server"
