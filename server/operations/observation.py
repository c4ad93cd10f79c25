"""Observation of operations: latencies of all operations, explanations on request, and traces of a sample.

An explanation shows the cost of an operation, in `extensions.explain` of its response. It contains counts, times, and
the fields and timelines that the client requested, but no store keys, SQL statements or addresses.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from graphql import GraphQLError
from strawberry.types import ExecutionResult

from graph.feed.updates import Change, Checkpoint, Gap
from resolvers import ids
from resolvers.recording import OperationRecording
from resolvers.timelines import KINDS
from server.deliveries import Deliveries
from server.errors import RATE_LIMITED, UNAUTHENTICATED, was_executed
from server.latency import Latency
from server.operations.documents import PreparedOperation
from server.tracing import Tracing

REFUSALS = (UNAUTHENTICATED, RATE_LIMITED)
MAX_LISTED = 100  # pages, round trips and batches of a dataloader that are listed one by one; all are counted

T = TypeVar("T")


class Observation:
    """Observes the operations of a process. `explains` permits explanations."""

    def __init__(
        self,
        latency: Latency | None = None,
        deliveries: Deliveries | None = None,
        tracing: Tracing | None = None,
        *,
        explains: bool = False,
    ) -> None:
        self._latency = latency
        self._deliveries = deliveries
        self._tracing = tracing
        self._explains = explains

    def recording(self, *, asked: bool) -> OperationRecording | None:
        """Return a new recording if the client requested an explanation and may get one, or the operation is traced.

        Return None otherwise.
        """
        traced = self._tracing is not None and self._tracing.samples()
        return OperationRecording(traced=traced) if traced or (asked and self._explains) else None

    def add(
        self,
        prepared: PreparedOperation,
        recording: OperationRecording,
        result: ExecutionResult,
        request_id: str,
        *,
        asked: bool,
    ) -> None:
        """Add the explanation of a recorded operation to its result, and trace the operation.

        Operations that were cancelled at their deadline are explained too, because an explanation is most useful for
        them. Operations that were refused because of the session or a rate limit are not explained.
        """
        refused = not was_executed(result) and any(_code(error) in REFUSALS for error in result.errors or ())
        if asked and self._explains and not refused:
            result.extensions = {"explain": explain(recording, prepared)}
        if self._tracing is not None and recording.traced:
            self._tracing.trace(
                recording,
                prepared.kind.value,
                prepared.name,
                {"fanline.request_id": request_id, "fanline.points": prepared.cost.points},
            )

    def timed(self, prepared: PreparedOperation, seconds: float) -> None:
        """Record the latency of a query or a mutation."""
        if self._latency is not None:
            self._latency.observe(prepared.name, seconds)

    def stream_started(self) -> int:
        """Count a new subscription. Return the event number from which its events are live, not replayed."""
        return 0 if self._deliveries is None else self._deliveries.start()

    def delivered(self, event: Change | Checkpoint | Gap, live_from: int) -> None:
        """Record the delivery time of an event. Checkpoints and gaps are not log events, so they are not measured."""
        if self._deliveries is not None and isinstance(event, Change):
            self._deliveries.observe(event.number, live_from)


def _code(error: GraphQLError) -> object:
    return (error.extensions or {}).get("code")


def explain(recording: OperationRecording, prepared: PreparedOperation) -> dict[str, Any]:
    """Return the explanation of an operation that has ended."""
    return {
        "operation": prepared.name,
        "kind": prepared.kind.value,
        "milliseconds": _milliseconds(recording.started, recording.ended),
        "cost": {"points": prepared.cost.points, "late": recording.owed, "bytes": prepared.cost.size},
        "executor": _executor(recording),
        "loaders": [
            {"name": each.name, "batches": list(_first(each.batches)), "hits": each.hits}
            for each in recording.loaders
            if each.requested
        ],
        "store": _store(recording),
        "archive": _archive(recording),
        "timelines": _timelines(recording),
    }


def _executor(recording: OperationRecording) -> dict[str, Any]:
    layers = [
        {"fields": list(each.fields), "milliseconds": _milliseconds(each.started, each.ended)}
        for each in recording.layers
    ]
    mode = "plan" if recording.plan else "graphql-core" if recording.fallback else "none"
    return {"mode": mode, "reason": recording.fallback, "layers": layers}


def _store(recording: OperationRecording) -> dict[str, Any]:
    return {
        "roundTrips": len(recording.exchanges),
        "commands": recording.commands,
        "exchanges": [
            {"commands": each.commands, "milliseconds": _milliseconds(each.started, each.ended)}
            for each in _first(recording.exchanges)
        ],
    }


def _archive(recording: OperationRecording) -> dict[str, Any]:
    durations = [_milliseconds(each.started, each.ended) or 0 for each in recording.transactions]
    return {
        "transactions": len(durations),
        "queries": recording.statements,
        "milliseconds": round(sum(durations), 3),
    }


def _timelines(recording: OperationRecording) -> dict[str, Any]:
    pages = recording.pages
    return {
        "pages": len(pages),
        "scanned": sum(page.scanned for page in pages),
        "dropped": sum(page.dropped for page in pages),
        "read": [
            {
                "id": ids.encode(KINDS[page.kind], page.owner),
                "kind": page.kind.name,
                "sources": page.sources,
                "mergedAuthors": page.merged,
                "scanned": page.scanned,
                "dropped": page.dropped,
            }
            for page in _first(pages)
        ],
    }


def _first(items: Sequence[T]) -> Sequence[T]:
    return items[:MAX_LISTED]


def _milliseconds(started: float, ended: float | None) -> float | None:
    """Return the milliseconds between two times in seconds, or None if the second time is None."""
    return None if ended is None else round((ended - started) * 1000, 3)
