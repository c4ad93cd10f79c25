"""Shared fixtures: one real Valkey server for the whole run, emptied before each test that uses it."""

import os
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest
import redis

from graph import Graph
from graph.store.store import Store
from server.embedded import Durability, EmbeddedStore
from tests.support.graphs import CHEAP, empty, open_graph, remove_archive

__all__ = ["CHEAP"]

pytest_plugins = ["tests.support.databases"]


def need(present: bool, what: str) -> None:
    """Skip a test if something is missing. In CI, fail instead, because its script installs everything."""
    if not present:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have {what}.")
        pytest.skip(f"needs {what}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the long profile of property and fault tests."""
    parser.addoption("--long", action="store_true", help="run property and fault tests at length (hours)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Raise the time limits of the long profile. Leave out what only the long profile runs."""
    if config.getoption("--long"):
        for item in items:
            item.add_marker(pytest.mark.timeout(0), append=False)
        return
    left_out = [item for item in items if runs_at_length_only(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def runs_at_length_only(item: pytest.Item) -> bool:
    """Return whether only the long profile runs a test: slow faults of MariaDB, which other databases have too."""
    is_fault = item.path.name.startswith("test_archive_") and item.path.name != "test_archive_refusals.py"
    return is_fault and "mariadb" in item.name and item.get_closest_marker("slow") is not None


@pytest.fixture
def long_profile(pytestconfig: pytest.Config) -> bool:
    """Return True if the long profile was requested."""
    return bool(pytestconfig.getoption("--long"))


@pytest.fixture(scope="session")
def running_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    """Run a Valkey server without persistence; durability has its own tests."""
    with EmbeddedStore(tmp_path_factory.mktemp("store"), Durability.RELAXED) as store:
        with redis.Redis.from_url(store.url) as client:
            client.config_set("appendonly", "no")
        yield store
        remove_archive(store.url)


@pytest.fixture
def store_url(running_store: EmbeddedStore) -> str:
    """Return the URL of an empty store, with an empty archive beside it."""
    empty(running_store.url)
    return running_store.url


@pytest.fixture
async def graph(store_url: str) -> AsyncIterator[Graph]:
    """Open a social graph in an empty store, with cheap password hashes and commands that a cluster would accept."""
    graph = await open_graph(store_url, CHEAP, partial(Store, single_slot=True))
    try:
        yield graph
    finally:
        await graph.close()
