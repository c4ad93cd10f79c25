"""Traces, as an OpenTelemetry collector receives them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from graph import Graph
from server import tracing
from server.app import create_app
from server.auth import Tokens
from server.settings import Settings, SettingsError
from tests.server.conftest import KEY, Api, serving
from tests.support.graph_worlds import counted

HOME = """query Home { viewer { user { login followersCount
    timeline { entries(first: 3) { nodes { ... on Post { text } } } } } } }"""


class Collector:
    """A server that receives traces."""

    def __init__(self) -> None:
        self.received: list[bytes] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:  # noqa: N805
                self.received.append(handler.rfile.read(int(handler.headers["content-length"])))
                handler.send_response(200)
                handler.end_headers()

            def log_message(handler, *arguments: object) -> None:  # noqa: N805
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def spans(self) -> list[Span]:
        """Return all spans that were received."""
        requests = [ExportTraceServiceRequest.FromString(each) for each in self.received]
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector."""
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        thread.join()
        collector.server.server_close()


def values(span: Span) -> dict[str, object]:
    """Return the plain attributes of a span."""
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


async def ask(api: Api, query: str, token: str | None = None) -> None:
    response = await api.ask(query, token)
    assert (response.status_code, response.json().keys()) == (200, {"data"})  # no explanation


async def test_the_spans_of_an_operation(settings: Settings, graph: Graph) -> None:
    """There are spans of the operation, its layers, and its exchanges with the store, which have all its commands."""
    with collecting() as collector:
        traced = settings.model_copy(update={"trace_endpoint": collector.url, "trace_share": 1.0})
        async with serving(traced, graph) as api:
            token = Tokens([KEY]).issue(await api.log_in("alice"))
            async with counted(api.app.state.graph) as cost:
                await ask(api, HOME, token)
        spans = collector.spans()
    [root] = [span for span in spans if not span.parent_span_id]
    assert root.name == "query Home"
    assert values(root)["graphql.operation.name"] == "Home"
    assert values(root)["fanline.request_id"]
    layers = [span for span in spans if span.name.startswith("layer ")]
    store = [span for span in spans if span.name == "store"]
    assert {span.parent_span_id for span in layers} == {root.span_id}
    assert len(store) == cost.round_trips
    assert sum(int(str(values(span)["fanline.commands"])) for span in store) == cost.commands
    for span in spans:
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.trace_id == root.trace_id
    content = b"".join(collector.received)
    assert not any(word in content for word in (b"alice", b"viewer {", token.encode()))


async def test_the_spans_of_the_archive(settings: Settings, graph: Graph) -> None:
    """Each transaction is below the layer that has begun it, and has the number of its statements."""
    with collecting() as collector:
        traced = settings.model_copy(update={"trace_endpoint": collector.url, "trace_share": 1.0})
        async with serving(traced, graph) as api:
            await ask(
                api, 'query Search { searchPosts(filter: {keywords: ["word"]}) { posts(first: 3) { nodes { id } } } }'
            )
        spans = collector.spans()
    layers = {span.span_id for span in spans if span.name.startswith("layer ")}
    archive = [span for span in spans if span.name == "archive"]
    assert archive
    assert {span.parent_span_id for span in archive} <= layers
    assert all(int(str(values(span)["fanline.statements"])) > 0 for span in archive)


async def test_a_part_of_the_operations_is_traced(settings: Settings, graph: Graph) -> None:
    with collecting() as collector:
        traced = settings.model_copy(update={"trace_endpoint": collector.url, "trace_share": 1e-9})
        async with serving(traced, graph) as api:
            for _ in range(10):
                await ask(api, "{ viewer { user { login } } }")
        assert collector.spans() == []


async def test_an_endpoint_that_does_not_answer_harms_nothing(
    settings: Settings, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operations are still executed, and the process still ends."""
    monkeypatch.setattr(tracing, "SEND_SECONDS", 0.1)
    traced = settings.model_copy(update={"trace_endpoint": "http://127.0.0.1:1/v1/traces", "trace_share": 1.0})
    async with serving(traced, graph) as api:
        await ask(api, "{ viewer { user { login } } }")


def test_without_the_extra_an_endpoint_is_an_error(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"needs the extra `otel`"):
        create_app(settings.model_copy(update={"trace_endpoint": "http://localhost:4318/v1/traces"}))
