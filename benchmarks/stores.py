"""Private stores to measure on, and what they and the processes around them spend."""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from graph import keys
from server.embedded import Durability, EmbeddedStore

SCAN_COUNT = 1000
TICKS = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def private_store(durability: Durability | None = None) -> Iterator[str]:
    """Run a Valkey of our own on a unix socket in a temporary folder; give its URL.

    Without a durability it keeps nothing on disk. It ends, by its process id, with the context.
    """
    with (
        tempfile.TemporaryDirectory(prefix="fanline-benchmark-") as folder,
        EmbeddedStore(Path(folder), durability or Durability.RELAXED) as store,
    ):
        if durability is None:
            with raw(store.url) as client:
                client.config_set("appendonly", "no")
        yield store.url


def raw(url: str) -> Any:
    """Give a plain client, for building worlds and asking the store about itself."""
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=None)


def version(url: str) -> str:
    """Tell the store's version."""
    with raw(url) as client:
        info = client.info("server")
    return str(info.get("valkey_version") or info["redis_version"])


def memory(client: Any) -> int:
    """Tell the bytes that the store has allocated."""
    return int(client.info("memory")["used_memory"])


def forget_log(client: Any) -> None:
    """Drop the log with all that stands beside it, so that no worker goes on with what was not awaited.

    Only while nobody works. Numbers still grow: they follow the clock.
    """
    found = list(client.scan_iter(match=f"{keys.LOG}*", count=SCAN_COUNT))
    if found:
        client.unlink(*found)


@dataclass(frozen=True, slots=True)
class Spent:
    """What some work took: wall time, and CPU time of the store, of this process and of the worker processes."""

    seconds: float
    store: float
    here: float
    workers: float


class Meter:
    """Measures what is spent between `start` and `stop` by the store, this process, and others by their ids."""

    def __init__(self, client: Any, processes: Sequence[int] = ()) -> None:
        self._client = client
        self._processes = processes
        self._before = (0.0, 0.0, 0.0, 0.0)

    def _read(self) -> tuple[float, float, float, float]:
        cpu = self._client.info("cpu")
        store = float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])
        return time.perf_counter(), store, time.process_time(), sum(map(cpu_seconds, self._processes))

    def start(self) -> None:
        """Begin."""
        self._before = self._read()

    def stop(self) -> Spent:
        """Tell what was spent since the start."""
        return Spent(*(after - before for after, before in zip(self._read(), self._before, strict=True)))


def cpu_seconds(process: int) -> float:
    """Tell the CPU time of another process, to the hundredth of a second; 0 where there is no /proc."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS
