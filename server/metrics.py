"""Metrics for Prometheus: how far the projections are, what waits, and what this process has archived and feeds."""

import hmac
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from executor import Executor
from graph import Graph
from graph.errors import StoreUnavailable

CONNECTIONS_REFUSED = "Connections and requests that this process refused or cut off at the transport, by reason."
RATE_LIMITED = "Operations that this process refused because a rate of their viewer or address was used up, by rate."
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Labelled(Collector):
    """A counter with one label, as Prometheus collects it."""

    def __init__(self, name: str, meaning: str, label: str, counts: Mapping[str, int]) -> None:
        self._family = CounterMetricFamily(f"fanline_{name}", meaning, labels=[label])
        for value, count in sorted(counts.items()):
            self._family.add_metric([value], count)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Return the counter."""
        yield self._family


class Sample(Collector):
    """The values of one moment, as Prometheus collects them."""

    def __init__(self, gauges: dict[str, tuple[str, float]], counters: dict[str, tuple[str, float]]) -> None:
        self._gauges = gauges
        self._counters = counters

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Give every metric with its value."""
        for name, (meaning, value) in self._gauges.items():
            yield GaugeMetricFamily(f"fanline_{name}", meaning, value)
        for name, (meaning, value) in self._counters.items():
            yield CounterMetricFamily(f"fanline_{name}", meaning, value)


class Metrics:
    """The endpoint `/metrics`, which requires a bearer token if there is one."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    async def show(self, request: Request) -> Response:
        """Answer with the current metrics. Two round trips; without the store, only those of this process."""
        if not self._admits(request.headers.get("authorization", "")):
            return Response(
                "This endpoint requires the token of FANLINE_METRICS_TOKEN.\n",
                401,
                headers={"WWW-Authenticate": "Bearer"},
                media_type="text/plain",
            )
        registry = CollectorRegistry()
        state = request.app.state
        registry.register(await sample(state.graph, state.sockets.held, state.executor, len(state.connections)))
        registry.register(Labelled("connections_refused", CONNECTIONS_REFUSED, "reason", state.connections.refused))
        if state.rate_limits:
            registry.register(Labelled("rate_limited", RATE_LIMITED, "rate", state.rate_limits.refused))
        return Response(generate_latest(registry), media_type=MEDIA_TYPE)

    def _admits(self, authorization: str) -> bool:
        """Compare in constant time, so that response times say nothing about the token."""
        scheme, _, token = authorization.partition(" ")
        return self._token is None or (
            scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._token.encode())
        )


async def sample(graph: Graph, sockets: int, executor: Executor | None = None, connections: int = 0) -> Sample:
    """Read what there is to measure. Two round trips."""
    gauges: dict[str, tuple[str, float]] = {
        "open_connections": ("Connections that are open, of HTTP and WebSocket.", connections),
        "open_sockets": ("WebSockets that are open and were let in.", sockets),
        "live_streams": ("Live subscriptions that this process feeds.", len(graph.feed)),
    }
    try:
        backlog = await graph.worker().backlog()
    except StoreUnavailable:
        gauges["store_up"] = ("Whether the store answers.", 0)
    else:
        waiting = (datetime.now(UTC) - backlog.oldest).total_seconds() if backlog.oldest else 0.0
        gauges |= {
            "store_up": ("Whether the store answers.", 1),
            "undrained_seconds": ("For how long the oldest event that is not projected has waited.", max(0.0, waiting)),
            "open_fan_out_tasks": ("Tasks of long fan-outs that are not done.", backlog.tasks),
            "dead_letters": ("Events and tasks that could not be projected.", backlog.dead),
            "archivable_authors": ("Authors with posts that wait to be archived.", backlog.archivable),
            "deleted_rows_waiting": ("Deleted posts whose archive rows wait to be deleted.", backlog.deleted),
        }
    counters = {
        "store_round_trips": ("Round trips of this process to the store.", float(graph.store.round_trips)),
        "live_cut_off": ("Times that a live subscription of this process was too slow.", float(graph.feed.cut_off)),
        "store_commands": ("Commands that this process sent to the store.", float(graph.store.commands)),
    }
    if executor is not None:
        counters |= {
            "operations_planned": ("Operations that were executed breadth first.", float(executor.planned)),
            "operations_with_errors": ("Of those, the ones that had errors to place.", float(executor.slow)),
            "operations_fallen_back": ("Operations that were left to graphql-core.", float(executor.fallen_back)),
        }
    if graph.archiver is not None:
        counters |= {
            "archived_posts": ("Posts that this process moved to the archive.", float(graph.archiver.moved)),
            "archive_failures": (
                "Times that this process's archiver gave up and tried again later.",
                float(graph.archiver.failures),
            ),
        }
    return Sample(gauges, counters)
