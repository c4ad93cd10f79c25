"""Shared fixtures: one real store for the whole run, a Valkey server or a cluster, emptied before each test."""

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import cache, partial
from typing import TypeAlias

import httpx._transports.default as httpx_transports
import pytest
import redis.utils
import uvloop
from httpx import create_ssl_context
from hypothesis import settings
from xdist.remote import Producer

from graph import Graph, commit
from graph.projections import posts
from graph.store.store import Store
from server.embedded import Durability, EmbeddedStore
from server.transport import http
from tests.support.cluster import Cluster, nodes_of
from tests.support.graphs import CHEAP, empty, open_graph, remove_archive
from tests.support.schedule import Schedule, sort_by_length, wait_for_packages
from tests.support.stores import cache_near
from tests.support.time_limits import limit_time

__all__ = ["CHEAP", "SharedStore"]

PATIENT_MS = 15_000  # without an answer until a failover: a busy machine must not cause one
PROJECTION_SECONDS, FAN_OUT_SECONDS = commit.PROJECTION_SECONDS, posts.FAN_OUT_SECONDS
PATIENT_SECONDS = 30.0  # until a projection is left to a worker, but in the tests of that: see tests/faults/conftest.py

SharedStore: TypeAlias = EmbeddedStore | Cluster

RARELY = 20_000, 20, 50  # the thresholds of garbage collections: the default ones take a tenth of the CPU time
gc.set_threshold(100_000, 10, 10)  # while tests are collected: of the modules that they import, nothing is garbage
pytest_plugins = ["tests.support.databases", "tests.support.exploring"]
redis.utils.get_lib_version = cache(redis.utils.get_lib_version)  # reads a file for each connection of a plain client
vars(httpx_transports)["create_ssl_context"] = cache(create_ssl_context)  # reads all certificates for each client


def need(present: bool, what: str) -> None:
    """Skip a test if something is missing. In CI, fail instead, because its script installs everything."""
    if not present:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have {what}.")
        pytest.skip(f"needs {what}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the long profile of property and fault tests."""
    parser.addoption("--long", action="store_true", help="run property and fault tests at length (hours)")
    parser.addoption(
        "--store",
        choices=("server", "cluster"),
        default="server",
        help="the shared store: one Valkey server, or a cluster of three primaries and three replicas",
    )
    parser.addoption("--near-cache", type=int, default=0, help="the entries of the near cache of every process")


def pytest_configure(config: pytest.Config) -> None:
    """Do not limit the time of Hypothesis examples and projections. Stop servers in this process immediately.

    Use a near cache everywhere if requested.
    """
    vars(http)["DRAIN_SECONDS"] = 0.0
    vars(commit)["PROJECTION_SECONDS"] = vars(posts)["FAN_OUT_SECONDS"] = PATIENT_SECONDS
    settings.register_profile("without-deadline", settings(), deadline=None)
    settings.load_profile("without-deadline")
    if entries := config.getoption("--near-cache"):
        cache_near(entries)


def pytest_asyncio_loop_factories(item: pytest.Function) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run tests in the server's event loop, which takes a fifth less CPU time than Python's.

    Tests that set the clock forward run in Python's, the only one that allows it.
    """
    return {"loop": asyncio.new_event_loop if "clock" in item.fixturenames else uvloop.new_event_loop}


def pytest_xdist_auto_num_workers() -> int | None:
    """Run three processes per core, because tests spend time waiting, unless the environment sets a number."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else 3 * (os.cpu_count() or 1)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Schedule:
    """Let one process run all tests of a file."""
    return Schedule(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with long tests. Lift the time limits in the long profile. Leave out what only the long profile runs."""
    sort_by_length(items)
    if config.getoption("--near-cache"):
        leave_out(config, items, lambda item: item.get_closest_marker("counts_reads") is not None)
    if config.getoption("--long"):
        for item in items:
            item.add_marker(pytest.mark.timeout(0), append=False)
        return
    leave_out(config, items, runs_at_length_only)


def leave_out(config: pytest.Config, items: list[pytest.Item], unwanted: Callable[[pytest.Item], bool]) -> None:
    """Leave out unwanted tests."""
    config.hook.pytest_deselected(items=[item for item in items if unwanted(item)])
    items[:] = [item for item in items if not unwanted(item)]


def runs_at_length_only(item: pytest.Item) -> bool:
    """Return True if only the long profile runs a test, such as a slow MariaDB fault that other databases have too."""
    if item.get_closest_marker("long"):
        return True
    is_fault = item.path.name.startswith("test_archive_") and item.path.name != "test_archive_refusals.py"
    return is_fault and "mariadb" in item.name and item.get_closest_marker("slow") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Start a test, and its time limit, only once the packages that it needs are installed."""
    wait_for_packages(item)
    limit_time(item)
    return (yield)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector ignore the modules and tests, which it would scan again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARELY)


@pytest.fixture
def long_profile(pytestconfig: pytest.Config) -> bool:
    """Return True if the long profile was requested."""
    return bool(pytestconfig.getoption("--long"))


@pytest.fixture(scope="session")
def running_store(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedStore]:
    """Run the shared store, a server or a cluster."""
    folder = tmp_path_factory.mktemp("store")
    clustered = pytestconfig.getoption("--store") == "cluster"
    with Cluster(folder, Durability.RELAXED) if clustered else EmbeddedStore(folder, Durability.RELAXED) as store:
        without_persistence(store)
        yield store
        remove_archive(store.url)


@pytest.fixture(scope="session")
def single_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    """Return the shared store if it is a single server. Otherwise, run a single server."""
    if request.config.getoption("--store") == "server":
        yield request.getfixturevalue("running_store")
        return
    with EmbeddedStore(tmp_path_factory.mktemp("store"), Durability.RELAXED) as store:
        without_persistence(store)
        yield store
        remove_archive(store.url)


def without_persistence(store: SharedStore) -> None:
    """Write nothing to disk; durability has its own tests."""
    for server in nodes_of(store):
        with server.client() as client:
            client.config_set("appendonly", "no")
            if isinstance(store, Cluster):
                client.config_set("cluster-node-timeout", PATIENT_MS)


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty store, with an empty archive. Tests of a single server never get a cluster."""
    single = request.node.get_closest_marker("single_server")
    url: str = request.getfixturevalue("single_store" if single else "running_store").url
    empty(url)
    return url


@pytest.fixture
async def graph(store_url: str) -> AsyncIterator[Graph]:
    """Open a social graph in an empty store, with cheap password hashes and commands that a cluster would accept."""
    graph = await open_graph(store_url, CHEAP, partial(Store, single_slot=True))
    try:
        yield graph
    finally:
        await graph.close()
