"""The ASGI application: its routes and middleware."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from schema import schema, sdl
from server.auth import Tokens
from server.demo import Demo
from server.demo.activity import activity
from server.endpoint.callers import Callers
from server.endpoint.cross_origin import CrossOrigin
from server.endpoint.endpoint import GraphQLEndpoint, method_not_allowed
from server.endpoint.origins import Origins
from server.endpoint.request_ids import RequestIds
from server.endpoint.websocket_endpoint import WebSocketEndpoint
from server.errors import internal_error
from server.health import Readiness, live
from server.lifespan import collecting, open_graph
from server.metrics import Metrics
from server.operations.cost import OperationLimits
from server.operations.execution import Execution
from server.operations.observation import Observation
from server.operations.parsing import DocumentLimits
from server.operations.trusted_documents import TrustedDocuments
from server.playground.page import Playground
from server.playground.visitors import Visitors
from server.settings import Settings, SettingsError
from server.tracing import MISSING, Tracing
from server.transport.admission import ADMISSION, Admission
from server.transport.connections import CONNECTIONS, Connections
from server.transport.proxies import TrustedProxies
from server.web_app import WebApp

ENDPOINT = "/graphql"


class Application(Starlette):
    """The Starlette application. GraphQL requests over HTTP bypass its middleware and go straight to the endpoint."""

    def __init__(self, endpoint: GraphQLEndpoint, **options: Any) -> None:
        super().__init__(**options)
        self.router.redirect_slashes = False  # the redirect would contain the client's Host header
        self.endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, a WebSocket or the lifespan. CORS middleware answers OPTIONS requests."""
        scope["app"] = self
        if scope["type"] == "http" and scope["path"] == ENDPOINT and scope["method"] != "OPTIONS":
            await self.endpoint(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(settings: Settings, *, demo: Demo | None = None) -> Application:
    """Return the application, which serves the demo if `demo` is given. Raises SettingsError."""
    tokens = Tokens(settings.keys())
    visitors = Visitors(tokens, demo.people) if demo else None
    playground = Playground(visitors) if settings.shows_playground else None
    metrics = Metrics(settings.metrics_token)
    tracing = tracing_of(settings)
    observation = Observation(metrics.latency, metrics.deliveries, tracing, explains=settings.explains)
    execution = make_execution(settings, observation)
    trusted = TrustedDocuments.load(settings.trusted_documents, settings.trust, execution.pin)
    metrics.latency.trust(execution.trusted_names)
    origins = Origins(settings.allowed_origins, local=demo is not None)
    callers = Callers(tokens, settings, origins)
    cross_origin = CrossOrigin(origins, settings.allowed_headers)
    endpoint = GraphQLEndpoint(execution, callers, trusted, cross_origin, playground, settings.max_body)
    admission = Admission(ENDPOINT, cross_origin.headers, enabled=settings.load_shedding)
    websockets = WebSocketEndpoint(execution, callers, trusted, origins, admission)
    proxies = TrustedProxies(settings.trusted_proxies, warns=settings.production)
    connections = Connections(settings.max_connections if settings.limits_rates else None, proxies)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with open_graph(settings, with_worker=settings.worker) as graph, collecting():
            app.state.graph = graph
            app.state.sockets = callers.quotas.sockets
            app.state.connections = connections
            app.state.admission = admission
            app.state.rate_limits = callers.rate_limits
            app.state.executor = execution.executor
            if visitors:
                visitors.graph = graph
            async with _background(app.state, metrics, tracing, demo):
                yield {CONNECTIONS: connections, ADMISSION: admission}

    return Application(
        endpoint,
        routes=_routes(settings, websockets, playground, metrics, demo.web if demo else None),
        middleware=[Middleware(RequestIds), cross_origin.middleware()],
        exception_handlers={Exception: _failed},
        lifespan=lifespan,
    )


@asynccontextmanager
async def _background(
    state: State, metrics: Metrics, tracing: Tracing | None, demo: Demo | None
) -> AsyncIterator[None]:
    """Run the background tasks of a serving process for the duration of the block."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(state.admission.measuring(state.graph.probe))
        await stack.enter_async_context(metrics.shared(state))
        if tracing:
            await stack.enter_async_context(tracing.sending())
        if demo and demo.lively:
            await stack.enter_async_context(activity(state.graph))
        yield


def make_execution(settings: Settings, observation: Observation) -> Execution:
    """Return an `Execution`, which runs operations within the limits of these settings."""
    limits = OperationLimits(
        settings.max_cost,
        settings.max_event_cost,
        settings.max_response,
        settings.deadline,
        settings.operations_at_once,
    )
    return Execution(
        schema,
        DocumentLimits(
            settings.max_tokens,
            settings.max_depth,
            settings.max_selections,
            settings.max_aliases,
            settings.max_directives,
        ),
        limits,
        introspection=settings.shows_schema,
        locations=not settings.production,
        observation=observation,
    )


def tracing_of(settings: Settings) -> Tracing | None:
    """Return the tracer, or None if no trace endpoint is set. Raises SettingsError if the extra `otel` is missing."""
    if settings.trace_endpoint is None:
        return None
    try:
        return Tracing(settings.trace_endpoint, settings.trace_share)
    except ImportError:
        raise SettingsError(f"FANLINE_TRACE_ENDPOINT {MISSING}.") from None


def _routes(
    settings: Settings,
    websockets: WebSocketEndpoint,
    playground: Playground | None,
    metrics: Metrics,
    web: Path | None,
) -> list[BaseRoute]:
    readiness = Readiness(
        settings.worker_lag,
        settings.archive_lag,
        settings.max_archive_lag,
        while_degraded=settings.ready_while_degraded,
    )
    return [
        WebSocketRoute(ENDPOINT, websockets),
        Route(ENDPOINT, refuse_options, methods=["OPTIONS"]),
        Route("/health/live", live),
        Route("/health/ready", readiness.show),
        *([Route("/metrics", metrics.show)] if settings.shows_metrics else []),
        *([Route("/schema.graphql", print_schema)] if settings.shows_schema else []),
        *(playground.routes() if playground else []),
        *([Route("/", RedirectResponse("/playground"))] if playground and not web else []),
        *(WebApp(web, settings.media_hosts).routes() if web else []),
    ]


async def refuse_options(request: Request) -> Response:
    """Refuse an OPTIONS request to the GraphQL endpoint that is not a browser's CORS preflight."""
    return method_not_allowed().response(request.state.request_id)


async def print_schema(request: Request) -> Response:
    """Return the schema as SDL."""
    return Response(sdl(), media_type="text/plain")


async def _failed(request: Request, error: Exception) -> Response:
    """Return the response to an unexpected error. Starlette raises the error again, and uvicorn logs it."""
    request_id = request.state.request_id
    return internal_error(request_id).response(request_id)
