"""OpenTelemetry traces of operations, built from the recording of each operation after it has ended.

An operation has a span for each layer of the executor, each round trip to the store and each transaction in the
archive. Spans hold names and numbers only: no document, no variable, no viewer. The packages of the extra `otel` are
imported only if an endpoint is set.
"""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from resolvers.recording import OperationRecording
from server.log_context import MAX_NAME

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

SEND_SECONDS = 2  # for one batch of spans, and for the last ones when the process ends
MISSING = "needs the extra `otel`: install `fanline[otel]`"


class Tracing:
    """Sends traces of a share of all operations to one endpoint. Raises ImportError without the extra `otel`.

    `share` is above 0 and at most 1. Operations are traced only while a `sending` block is active.
    """

    def __init__(self, endpoint: str, share: float) -> None:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401 - fails here, at the start, if the extra is missing

        self._endpoint = endpoint
        self._share = share
        self._tracer: Tracer | None = None

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Send traces in the background during the block. At its end, wait up to 2 seconds for the last ones."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource({"service.name": "fanline"}).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(self._endpoint, timeout=SEND_SECONDS)))
        self._tracer = provider.get_tracer("fanline")
        try:
            yield
        finally:
            self._tracer = None
            closing = threading.Thread(target=provider.shutdown, daemon=True)
            closing.start()
            await asyncio.to_thread(closing.join, SEND_SECONDS)

    def samples(self) -> bool:
        """Decide at random whether to trace the next operation."""
        return self._tracer is not None and random.random() < self._share  # noqa: S311 - not for security

    def trace(self, recording: OperationRecording, kind: str, name: str | None, attributes: Mapping[str, Any]) -> None:
        """Send the spans of an operation that has ended."""
        if self._tracer is not None and recording.ended is not None:
            shown = "(anonymous)" if name is None else name[:MAX_NAME]
            described = {"graphql.operation.type": kind, "graphql.operation.name": shown, **attributes}
            Spans(self._tracer, recording).add(f"{kind} {shown}", described)


class Spans:
    """The spans of one recording."""

    def __init__(self, tracer: "Tracer", recording: OperationRecording) -> None:
        self._tracer = tracer
        self._recording = recording

    def add(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Add the span of the operation and the spans of its parts."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        recording = self._recording
        root = self._tracer.start_span(
            name, Context(), SpanKind.SERVER, attributes, start_time=self._time(recording.started)
        )
        below = set_span_in_context(root, Context())
        layers = []
        for number, layer in enumerate(recording.layers, 1):
            span = self._span(f"layer {number}", below, layer, {"fanline.fields": list(layer.fields)})
            layers.append((layer, set_span_in_context(span, below)))

        def parent(started: float) -> Any:
            return next((each for layer, each in layers if layer.started <= started < layer.ended), below)

        for exchange in recording.exchanges:
            self._span("store", parent(exchange.started), exchange, {"fanline.commands": exchange.commands})
        for transaction in recording.transactions:
            self._span(
                "archive", parent(transaction.started), transaction, {"fanline.statements": transaction.statements}
            )
        root.end(self._time(recording.ended))

    def _span(self, name: str, parent: Any, part: Any, attributes: Mapping[str, Any]) -> Any:
        span = self._tracer.start_span(name, parent, attributes=attributes, start_time=self._time(part.started))
        span.end(self._time(part.ended))
        return span

    def _time(self, moment: float | None) -> int:
        """Return a time of the recording as nanoseconds since 1970. None means the end of the recording."""
        recording = self._recording
        moment = recording.ended if moment is None else moment
        return recording.started_ns + int(((moment or recording.started) - recording.started) * 1e9)
