"""The ASGI application: what is served where, and what lives as long as the process serves it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from graph import Graph
from graph.archive.archive import Archive
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.tasks import end
from schema import schema, sdl
from server.auth import Tokens
from server.embedded import EmbeddedStore, EmbeddedStoreError
from server.endpoint.endpoint import GraphQLEndpoint
from server.endpoint.fast_path import Posting
from server.endpoint.request_ids import REQUEST_ID, RequestIds
from server.errors import failed
from server.metrics import Metrics
from server.operations.execution import Execution
from server.operations.preparation import OperationLimits
from server.operations.trusted_documents import TrustedDocuments
from server.playground import Playground
from server.playground.visitor import Visitor
from server.process.garbage import collect_when_grown
from server.settings import Settings
from server.transport.connections import CONNECTIONS, Connections
from server.transport.proxies import TrustedProxies
from server.worker import work

PING_SECONDS = 2.0
WATCH_SECONDS = 1.0

logger = logging.getLogger("fanline.server")


class Application(Starlette):
    """Starlette's application, which plain posted requests do not have to go through."""

    def __init__(self, posting: Posting, **options: Any) -> None:
        super().__init__(**options)
        self.router.redirect_slashes = False  # it would redirect to any Host
        self._posting = posting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, hold a socket, or live."""
        scope["app"] = self
        if not await self._posting.answer(scope, receive, send):
            await super().__call__(scope, receive, send)


def create_app(settings: Settings, *, demo_login: str | None = None) -> Starlette:
    """Make the application. `demo_login`: whom the playground logs in."""
    tokens = Tokens(settings.keys())
    visitor = Visitor(tokens, demo_login) if demo_login else None
    playground = Playground(visitor) if settings.shows_playground else None
    execution = _execution(settings)
    trusted = TrustedDocuments.load(settings.trusted_documents, settings.trust, execution.preparation.pin)
    endpoint = GraphQLEndpoint(execution, tokens, playground, trusted, settings)
    proxies = TrustedProxies(settings.trusted_proxies, warns=settings.production)
    connections = Connections(settings.max_connections if settings.limits_rates else None, proxies)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with running(settings, worker=settings.worker) as graph, collecting():
            app.state.graph = graph
            app.state.sockets = endpoint.sockets
            app.state.connections = connections
            app.state.rate_limits = endpoint.rate_limits
            app.state.executor = execution.executor
            if visitor:
                visitor.graph = graph
            yield {CONNECTIONS: connections}

    return Application(
        Posting(endpoint, "/graphql"),
        routes=_routes(settings, endpoint, playground),
        middleware=[Middleware(RequestIds), _cors(settings)],
        exception_handlers={Exception: _failed},
        lifespan=lifespan,
    )


def _execution(settings: Settings) -> Execution:
    limits = OperationLimits(
        settings.max_cost,
        settings.max_event_cost,
        settings.max_response,
        settings.deadline,
        settings.operations_at_once,
    )
    return Execution(
        schema,
        settings.document_limits,
        limits,
        introspection=settings.shows_schema,
        locations=not settings.production,
        breadth_first=settings.executor,
    )


def _routes(settings: Settings, endpoint: GraphQLEndpoint, playground: Playground | None) -> list[BaseRoute]:
    return [
        Route("/graphql", endpoint),
        WebSocketRoute("/graphql", endpoint),
        Route("/health/live", live),
        Route("/health/ready", ready),
        *([Route("/metrics", Metrics(settings.metrics_token).show)] if settings.shows_metrics else []),
        *([Route("/schema.graphql", print_schema)] if settings.shows_schema else []),
        *([Route("/", RedirectResponse("/playground")), *playground.routes()] if playground else []),
    ]


def _cors(settings: Settings) -> Middleware:
    """Let the pages of other origins, if the settings name any, send what clients send."""
    return Middleware(
        CORSMiddleware,
        allow_origins=settings.allowed_origins,
        allow_methods=("GET", "POST"),
        allow_headers=("authorization", "content-type", "last-event-id", REQUEST_ID.decode()),
        expose_headers=(REQUEST_ID.decode(), "retry-after", "ratelimit", "ratelimit-policy"),
        max_age=3600,
    )


@asynccontextmanager
async def running(settings: Settings, *, worker: bool) -> AsyncIterator[Graph]:
    """Open the graph, with an embedded store if no other is set; close all in the opposite order."""
    async with AsyncExitStack() as stack:
        url = settings.store_url
        if url is None:
            store = EmbeddedStore(settings.data_dir, settings.durability)
            await asyncio.to_thread(store.start)
            stack.push_async_callback(asyncio.to_thread, store.stop)
            url = store.url
        graph = await Graph.open(url, settings.tuning, archive=Archive(settings.archive))
        stack.push_async_callback(graph.close)
        await _check_archive(graph)
        tasks = [asyncio.create_task(work(graph))] if worker else []
        if settings.store_url is None:
            tasks.append(asyncio.create_task(_watch(store)))
        try:
            yield graph
        finally:
            await end(tasks)


@asynccontextmanager
async def collecting() -> AsyncIterator[None]:
    """Collect garbage completely whenever the process has grown."""
    task = asyncio.create_task(collect_when_grown())
    try:
        yield
    finally:
        await end([task])


async def _check_archive(graph: Graph) -> None:
    """Prepare the archive. While it is down, what is in the store is served, and the first use tries again."""
    if graph.archive is not None:
        try:
            await graph.archive.migrate()
            await graph.binding.check()
        except ArchiveUnavailable as outage:
            logger.error("The archive does not answer; newer posts are served without it: %s", outage.reason)
        except StoreUnavailable:
            return  # whoever needs the store says so


async def _watch(store: EmbeddedStore) -> None:
    """Start the embedded store again whenever it has died."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        try:
            if await asyncio.to_thread(store.ensure):
                logger.error("The embedded store had died and was started again; see %s", store.folder / "store.log")
        except (EmbeddedStoreError, OSError) as error:
            logger.error("The embedded store is down: %s", error)


async def live(request: Request) -> Response:
    """Answer as long as the process does."""
    return Response(orjson.dumps({"status": "alive"}), media_type="application/json")


async def ready(request: Request) -> Response:
    """Answer 200 if the store answers, else 503."""
    try:
        async with asyncio.timeout(PING_SECONDS):
            await request.app.state.graph.store.ping()
    except (StoreUnavailable, TimeoutError):
        body = {"status": "unavailable", "reason": "The store does not answer."}
        return Response(orjson.dumps(body), 503, media_type="application/json")
    return Response(orjson.dumps({"status": "ready"}), media_type="application/json")


async def print_schema(request: Request) -> Response:
    """Give the schema as SDL."""
    return Response(sdl(), media_type="text/plain")


async def _failed(request: Request, error: Exception) -> Response:
    """Answer for what nobody expected; the server logs it."""
    request_id = request.state.request_id
    return failed(request_id).response(request_id)
