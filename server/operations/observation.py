"""Observation of operations: latencies of all, explanations for clients that ask for them, and traces of a part."""

from graphql import GraphQLError
from strawberry.types import ExecutionResult

from graph.feed.updates import Change, Checkpoint, Gap
from resolvers.recording import OperationRecording
from server.deliveries import Deliveries
from server.errors import RATE_LIMITED, UNAUTHENTICATED
from server.latency import Latency
from server.operations.explanation import explain
from server.operations.preparation import PreparedOperation
from server.operations.results import was_executed
from server.tracing import Tracing

REFUSALS = (UNAUTHENTICATED, RATE_LIMITED)


class Observation:
    """What a process observes. `explains` permits explanations."""

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
        """Return a new recording if the client has asked for an explanation, or the operation is traced."""
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
        """Explain an operation that was recorded, and trace it.

        Also one that was cancelled at its deadline, which needs an explanation most. A client without a session, or
        beyond its rate, gets none.
        """
        refused = not was_executed(result) and any(_code(error) in REFUSALS for error in result.errors or ())
        if asked and self._explains and not refused:
            result.extensions = {"explain": explain(recording, prepared)}
        if self._tracing is not None and recording.traced and prepared.kind is not None:
            self._tracing.trace(
                recording,
                prepared.kind.value,
                prepared.name,
                {"fanline.request_id": request_id, "fanline.points": prepared.cost.points},
            )

    def timed(self, prepared: PreparedOperation, seconds: float) -> None:
        """Add the latency of a query or a mutation."""
        if self._latency is not None:
            self._latency.observe(prepared.name, seconds)

    def stream_started(self) -> int:
        """Count a subscription. Return the event number from which its events are live."""
        return 0 if self._deliveries is None else self._deliveries.start()

    def delivered(self, event: Change | Checkpoint | Gap, live_from: int) -> None:
        """Add the time that an event has taken. Checkpoints and gaps report no event."""
        if self._deliveries is not None and isinstance(event, Change):
            self._deliveries.observe(event.number, live_from)


def _code(error: GraphQLError) -> object:
    return (error.extensions or {}).get("code")
