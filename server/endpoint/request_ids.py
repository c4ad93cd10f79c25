"""An id for every request, the client's own if that is harmless; it is in the response, in errors and in the log."""

import re
import secrets
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID = b"x-request-id"
HARMLESS = re.compile(rb"[A-Za-z0-9_.-]{1,64}")


def identify(scope: Scope, given: bytes | None) -> bytes:
    """Give a request its id."""
    chosen = given if given and HARMLESS.fullmatch(given) else secrets.token_hex(8).encode()
    scope.setdefault("state", {})["request_id"] = chosen.decode()
    return chosen


class RequestIds:
    """Puts the id of every request into its response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its id."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        chosen = identify(scope, _given(scope["headers"]))

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID, chosen)]
            await send(message)

        return await self.app(scope, receive, send_with_id)


def _given(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    return next((value for name, value in headers if name == REQUEST_ID), None)
