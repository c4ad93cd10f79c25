"""Request ids in responses, errors and the log: the client's id if it is valid, otherwise a random one."""

import re
import secrets
from collections.abc import Iterable, Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID = b"x-request-id"
ID_LENGTH = 16
POOL = 256
VALID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")


def _random_ids() -> Iterator[bytes]:
    """Yield random ids. Random bytes are fetched for many ids at a time, because each fetch is a system call."""
    while True:
        digits = secrets.token_hex(POOL * ID_LENGTH // 2).encode()
        for start in range(0, len(digits), ID_LENGTH):
            yield digits[start : start + ID_LENGTH]


_ids = _random_ids()


def set_request_id(scope: Scope, given: bytes | None) -> bytes:
    """Set and return the id of a request. `given` is the client's id."""
    chosen = given if given and VALID.fullmatch(given) else next(_ids)
    scope.setdefault("state", {})["request_id"] = chosen.decode()
    return chosen


class RequestIds:
    """Middleware that adds the request id to each response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Set the id of a request, serve the request, and add the id to the response."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        chosen = set_request_id(scope, _given(scope["headers"]))

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID, chosen)]
            await send(message)

        return await self.app(scope, receive, send_with_id)


def _given(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    return next((value for name, value in headers if name == REQUEST_ID), None)
