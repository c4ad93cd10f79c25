"""The health checks `/health/live` and `/health/ready`."""

import asyncio

import orjson
from starlette.requests import Request
from starlette.responses import Response

from graph.errors import StoreUnavailable

PING_SECONDS = 2.0


async def live(request: Request) -> Response:
    """Return 200 as long as the process answers requests."""
    return Response(orjson.dumps({"status": "alive"}), media_type="application/json")


async def ready(request: Request) -> Response:
    """Return 200 if the store answers within two seconds, else 503. One round trip."""
    try:
        async with asyncio.timeout(PING_SECONDS):
            await request.app.state.graph.store.ping()
    except (StoreUnavailable, TimeoutError):
        body = {"status": "unavailable", "reason": "The store does not answer."}
        return Response(orjson.dumps(body), 503, media_type="application/json")
    return Response(orjson.dumps({"status": "ready"}), media_type="application/json")
