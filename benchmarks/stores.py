"""Private stores for measurements, and the resources that they and other processes use."""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from graph import Graph, Tuning, keys
from graph.archive.archive import Archive
from server.embedded import Durability, EmbeddedStore
from tests.support.graphs import PATIENCE

SCAN_COUNT = 1000
TICKS = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def private_store(durability: Durability | None = None) -> Iterator[str]:
    """Run a private Valkey on a unix socket in a temporary folder, and yield its URL.

    Without `durability`, nothing is written to disk. The process is stopped at the end of the block.
    """
    with (
        tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder,
        EmbeddedStore(Path(folder), durability or Durability.RELAXED) as store,
    ):
        if durability is None:
            with raw(store.url) as client:
                client.config_set("appendonly", "no")
        yield store.url


def archive_url(url: str) -> str:
    """Return the URL of the archive that belongs to a private store: an SQLite file in the store's folder."""
    with raw(url) as client:
        return f"sqlite:///{Path(client.config_get('dir')['dir']) / 'archive.sqlite'}"


async def open_graph(url: str, tuning: Tuning | None = None) -> Graph:
    """Return a graph in a private store, with the archive that belongs to the store."""
    return await Graph.open(url, Archive(archive_url(url), timeout=PATIENCE), tuning)


def raw(url: str) -> Any:
    """Return a plain client, for building worlds and reading the store's counters."""
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=None)


def version(url: str) -> str:
    """Return the store's version."""
    with raw(url) as client:
        info = client.info("server")
    return str(info.get("valkey_version") or info["redis_version"])


def memory(client: Any) -> int:
    """Return the bytes that the store has allocated."""
    return int(client.info("memory")["used_memory"])


def forget_log(client: Any) -> None:
    """Delete the log and its related keys, so that workers do not continue with pending events.

    The store stays bound to its archive. Do not call this while workers project. New events still have higher numbers,
    because numbers follow the clock.
    """
    found = {*client.scan_iter(match=f"{keys.LOG}*", count=SCAN_COUNT)} - {keys.BINDING, keys.ARCHIVED}
    if found:
        client.unlink(*found)


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of some work: wall time, and CPU time of the store, of this process and of the worker processes."""

    seconds: float
    store: float
    here: float
    workers: float


class Meter:
    """Measures the cost between `start` and `stop`, for the store, this process and other processes by id."""

    def __init__(self, client: Any, processes: Sequence[int] = ()) -> None:
        self._client = client
        self._processes = processes
        self._before = (0.0, 0.0, 0.0, 0.0)

    def _read(self) -> tuple[float, float, float, float]:
        cpu = self._client.info("cpu")
        store = float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])
        return time.perf_counter(), store, time.process_time(), sum(map(cpu_seconds, self._processes))

    def start(self) -> None:
        """Start the measurement."""
        self._before = self._read()

    def stop(self) -> Spent:
        """Return the cost since the start."""
        return Spent(*(after - before for after, before in zip(self._read(), self._before, strict=True)))


def cpu_seconds(process: int) -> float:
    """Return the CPU time of another process, with a resolution of 10 ms, or 0 if there is no /proc."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS
