"""The memory of the store, as far as a process knows it."""

from pathlib import Path

import pytest

from graph.store import capacity
from graph.store.capacity import Capacity, Memory
from graph.store.store import Store
from server.embedded import Durability, EmbeddedStore
from tests.support.raw import open_blocking
from tests.support.tcp_proxy import proxy_to


def using(part: float) -> Memory:
    """Return the memory of a primary that uses this part of its limit."""
    return Memory(int(100 * part), 100, is_limited=True, policy="noeviction", replicas=0, needs_replicas=False)


def test_the_fullest_primary_counts() -> None:
    """An event may need any shard."""
    capacity = Capacity(Store("valkey://localhost"), 0.9)
    capacity.memory = (using(0.2), using(0.95), using(0.5))
    assert (capacity.fullness, capacity.is_full) == (0.95, True)


@pytest.mark.single_server("it counts the commands of one server")
async def test_the_memory_is_read_once_a_second_at_most(store_url: str) -> None:
    """The limit holds regardless of how many changes ask for the memory."""
    store = Store(store_url)
    read = Capacity(store, 0.9)
    with open_blocking(store_url) as raw:
        before = raw.info("commandstats").get("cmdstat_eval", {"calls": 0})["calls"]
        for _ in range(20):
            read.refusal_of_changes()
            await read.read()
        after = raw.info("commandstats")["cmdstat_eval"]["calls"]
    await store.close()
    assert after == before + 1


async def test_a_store_that_does_not_answer_stays_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last report stays valid, whether the store hangs or is down."""
    monkeypatch.setattr(capacity, "REFRESH_SECONDS", 0.0)
    with EmbeddedStore(tmp_path, Durability.RELAXED) as server, server.client() as raw:
        raw.config_set("maxmemory", 1)
        async with proxy_to(server.socket) as proxy:
            store = Store(f"valkey://127.0.0.1:{proxy.port}")
            read = Capacity(store, 0.9)
            await read.read()
            monkeypatch.setattr("graph.store.store.PRIMARY_SECONDS", 0.05)  # only now, or a busy machine exceeds it
            proxy.open.clear()
            await read.read()
            hanging = read.is_full, read.answering
            proxy.open.set()
            proxy.target = tmp_path / "none"
            await read.read()
            assert hanging == (read.is_full, read.answering) == (True, 0)
            await store.close()
