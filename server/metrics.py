"""Metrics for Prometheus: the backlog and totals in the store, and counters of this server's processes.

With several processes, each writes its metrics to files in a shared folder (`prometheus_client.multiprocess`), and the
process that answers a scrape adds them up.
"""

import asyncio
import hmac
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import Response

from graph import Graph
from graph.errors import StoreUnavailable
from graph.log.backlog import Backlog
from graph.tasks import end
from server.deliveries import Deliveries
from server.latency import Latency

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads this variable when it is imported
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UPDATE_SECONDS = 5.0

Read: TypeAlias = Callable[[State], float]
ReadBacklog: TypeAlias = Callable[[Backlog], float]
ReadLabelled: TypeAlias = Callable[[State], Mapping[str, float]]

GAUGES: dict[str, tuple[str, Read]] = {
    "open_connections": ("Open connections, HTTP and WebSocket.", lambda state: len(state.connections)),
    "open_sockets": ("Open WebSockets with an acknowledged connection.", lambda state: state.sockets.held),
    "near_cache_entries": (
        "Records and counts in the near cache.",
        lambda state: 0 if state.graph.store.near is None else len(state.graph.store.near),
    ),
    "live_streams": ("Live subscriptions.", lambda state: len(state.graph.feed)),
    "operations_running": ("Operations that are running.", lambda state: state.admission.running),
    "operations_limit": ("Limit on running operations.", lambda state: state.admission.limit),
}
COUNTERS: dict[str, tuple[str, Read]] = {
    "store_round_trips": ("Round trips to the store.", lambda state: state.graph.store.round_trips),
    "store_commands": ("Commands sent to the store.", lambda state: state.graph.store.commands),
    "near_cache_hits": (
        "Records and counts that were found in the near cache.",
        lambda state: state.graph.store.near.hits if state.graph.store.near is not None else 0,
    ),
    "near_cache_misses": (
        "Records and counts read from the store, because the near cache did not have them or was not usable yet.",
        lambda state: state.graph.store.near.misses if state.graph.store.near is not None else 0,
    ),
    "near_cache_invalidations": (
        "Keys that the store invalidated in the near cache.",
        lambda state: state.graph.store.near.invalidations if state.graph.store.near is not None else 0,
    ),
    "commits_left_to_worker": (
        "Committed changes whose projection was left to the worker, because a shard did not answer in time.",
        lambda state: state.graph.commit.left_to_worker,
    ),
    "live_cut_off": ("Live subscriptions cut off because they were too slow.", lambda state: state.graph.feed.cut_off),
    "operations_refused": (
        "Operations refused because of overload.",
        lambda state: state.admission.refused,
    ),
    "operations_planned": (
        "Operations executed breadth first.",
        lambda state: state.executor.planned,
    ),
    "operations_with_errors": (
        "Operations executed breadth first that had errors.",
        lambda state: state.executor.slow,
    ),
    "operations_fallen_back": (
        "Operations executed by graphql-core.",
        lambda state: state.executor.fallen_back,
    ),
    "archive_failures": ("Failures of the archiver, which are retried.", lambda state: state.graph.archiver.failures),
}
STORE_GAUGES: dict[str, tuple[str, ReadBacklog]] = {
    "log_events": ("Events in the log.", lambda backlog: backlog.length),
    "unprojected_seconds": ("Age of the oldest unprojected event.", lambda backlog: backlog.unprojected_seconds),
    "unarchived_seconds": ("Age of the oldest event that is not archived.", lambda backlog: backlog.unarchived_seconds),
    "unarchived_events": ("Events that are not archived.", lambda backlog: backlog.unarchived),
    "archiver_stopped": (
        "Whether the archiver has stopped and is waiting for an operator.",
        lambda backlog: bool(backlog.alarm),
    ),
    "open_fan_out_tasks": ("Unfinished tasks of long fan-outs.", lambda backlog: backlog.tasks),
    "users_to_erase": ("Deleted users who are not erased yet.", lambda backlog: backlog.erasing),
    "dead_letters": ("Events and tasks that could not be projected or archived.", lambda backlog: backlog.dead),
}
STORE_COUNTERS: dict[str, tuple[str, ReadBacklog]] = {
    "archived_events": ("Events copied to the archive.", lambda backlog: backlog.archived),
    "archive_batches": ("Transactions that copied events to the archive.", lambda backlog: backlog.batches),
    "archive_batch_seconds": (
        "Duration of the transactions that copied events to the archive.",
        lambda backlog: backlog.batch_seconds,
    ),
    "dead_letters_dropped": ("Dead letters dropped because there were too many.", lambda backlog: backlog.dropped),
    "trimmed_posts": ("Posts removed from the store; the archive holds them.", lambda backlog: backlog.trimmed),
}
LABELLED: dict[str, tuple[str, str, ReadLabelled]] = {
    "connections_refused": (
        "Connections and requests refused or cut off at the transport, by reason.",
        "reason",
        lambda state: state.connections.refused,
    ),
    "rate_limited": (
        "Operations refused because a rate of their viewer or address was used up, by rate.",
        "rate",
        lambda state: state.rate_limits.refused if state.rate_limits else {},
    ),
}


class ProcessMetrics:
    """The metrics of one process. `update` reads them from the objects that keep the counts."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # it has no types
        self.registry = CollectorRegistry()
        self._gauges = {
            name: Gauge(f"fanline_{name}", text, registry=self.registry, multiprocess_mode="livesum")
            for name, (text, _) in GAUGES.items()
        }
        self._counters = {
            name: Counter(f"fanline_{name}", text, registry=self.registry) for name, (text, _) in COUNTERS.items()
        }
        self._labelled = {
            name: Counter(f"fanline_{name}", text, [label], registry=self.registry)
            for name, (text, label, _) in LABELLED.items()
        }
        self._counted: dict[tuple[str, str], float] = {}

    def update(self, state: State) -> None:
        """Set the metrics to the current counts of the process."""
        for name, gauge in self._gauges.items():
            gauge.set(GAUGES[name][1](state))
        for name, counter in self._counters.items():
            self._advance(counter, (name, ""), COUNTERS[name][1](state))
        for name, counter in self._labelled.items():
            for label, total in LABELLED[name][2](state).items():
                self._advance(counter.labels(label), (name, label), total)

    def _advance(self, counter: Counter, name: tuple[str, str], total: float) -> None:
        counter.inc(total - self._counted.get(name, 0.0))
        self._counted[name] = total


class Metrics:
    """The endpoint `/metrics`. Requires a bearer token if the settings have one.

    `latency` measures operations, and `deliveries` measures the events that subscriptions deliver.
    """

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._process = ProcessMetrics()
        self.latency = Latency(self._process.registry)
        self.deliveries = Deliveries(self._process.registry)
        self._folder = os.environ.get(FOLDER)

    async def show(self, request: Request) -> Response:
        """Return the metrics of the processes and the store. Most store metrics are missing if the store is down.

        One round trip and, at most once a second, another one to read the store's memory use.
        """
        if not self._admits(request.headers.get("authorization", "")):
            return Response(
                "This endpoint requires the token of FANLINE_METRICS_TOKEN.\n",
                401,
                headers={"WWW-Authenticate": "Bearer"},
                media_type="text/plain",
            )
        self._process.update(request.app.state)
        store = await store_metrics(request.app.state.graph)
        processes = await asyncio.to_thread(self._processes)  # takes tens of milliseconds for several processes
        return Response(processes + store, media_type=MEDIA_TYPE)

    @asynccontextmanager
    async def shared(self, state: State) -> AsyncIterator[None]:
        """Keep the metrics of this process up to date for scrapes that other processes answer."""
        if self._folder is None:
            yield
            return
        task = asyncio.create_task(self._keep_current(state))
        try:
            yield
        finally:
            await end([task])
            self._process.update(state)
            _mark_dead(os.getpid(), self._folder)

    async def _keep_current(self, state: State) -> None:
        while True:
            self._process.update(state)
            await asyncio.sleep(UPDATE_SECONDS)

    def _processes(self) -> bytes:
        if self._folder is None:
            return generate_latest(self._process.registry)
        forget_dead_processes(Path(self._folder))
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._folder)  # type: ignore[no-untyped-call] # it has no types
        return generate_latest(registry)

    def _admits(self, authorization: str) -> bool:
        """Return True if the token is correct, or none is required. Compares tokens in constant time."""
        scheme, _, token = authorization.partition(" ")
        return self._token is None or (
            scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._token.encode())
        )


def forget_dead_processes(folder: Path) -> None:
    """Remove the gauges of killed processes, which could not do so themselves. Their counters are kept."""
    for file in folder.glob("gauge_live*.db"):
        if found := re.search(r"_(\d+)\.db$", file.name):
            pid = int(found[1])
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                _mark_dead(pid, str(folder))
            except PermissionError:
                continue


def _mark_dead(pid: int, folder: str) -> None:
    mark_process_dead(pid, folder)  # type: ignore[no-untyped-call] # it has no types


async def store_metrics(graph: Graph) -> bytes:
    """Return the metrics that the store holds for all processes, as text.

    One round trip and, at most once a second, another one to read the store's memory use. The values are not set on a
    Gauge or Counter, because such values would be added up across processes.
    """
    backlog = None
    with suppress(StoreUnavailable):
        backlog = await graph.backlog()
        await graph.capacity.read()
    families: list[Metric] = [
        GaugeMetricFamily("fanline_store_up", "Whether the store answers.", value=float(backlog is not None))
    ]
    if backlog is not None:
        fullness, limit = graph.capacity.fullness, graph.log.limit
        families += [
            GaugeMetricFamily(
                "fanline_store_fullness", "Fraction of its memory that the fullest primary uses.", value=fullness
            ),
            GaugeMetricFamily("fanline_log_limit", "Limit on the number of events in the log.", value=limit),
        ]
        families += [
            GaugeMetricFamily(f"fanline_{name}", text, value=read(backlog))
            for name, (text, read) in STORE_GAUGES.items()
        ]
        families += [
            CounterMetricFamily(f"fanline_{name}", text, value=read(backlog))
            for name, (text, read) in STORE_COUNTERS.items()
        ]
    registry = CollectorRegistry()
    registry.register(Families(families))
    return generate_latest(registry)


class Families(Collector):
    """A collector of metrics whose values are already known."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self._families
