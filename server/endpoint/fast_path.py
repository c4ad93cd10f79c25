"""The short way of a posted request: what nearly all requests are is read and answered without a framework's detours.

It stands before the framework. Whatever is not a plain POST of JSON to the endpoint, of known length, answered at once,
without an origin and with no header twice, goes the long way through routes and middleware, and comes out the same.
"""

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from server.endpoint.endpoint import GraphQLEndpoint
from server.endpoint.event_stream import EVENT_STREAM
from server.endpoint.request_ids import REQUEST_ID, identify
from server.endpoint.requests import choose_media_type, is_json, read_body, render
from server.errors import Refused, failed


class Posting:
    """Answers plain posted requests to `path`."""

    def __init__(self, endpoint: GraphQLEndpoint, path: str) -> None:
        self._endpoint = endpoint
        self._path = path

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request; False, with nothing read of it, if it is not a plain one."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self._path:
            return False
        headers = dict(scope["headers"])
        accept = headers.get(b"accept", b"").decode("latin-1")
        content_type = headers.get(b"content-type", b"").decode("latin-1")
        length = headers.get(b"content-length", b"")
        plain = length.isdigit() and len(length) < 9 and int(length) <= self._endpoint.max_body
        if not plain or b"origin" in headers or len(headers) < len(scope["headers"]):
            return False
        if EVENT_STREAM in accept.lower() or not is_json(content_type):
            return False
        request_id = identify(scope, headers.get(REQUEST_ID))
        body = await _body(receive)
        if body is None:
            return True
        authorization = headers.get(b"authorization")
        media_type = choose_media_type(accept)
        try:
            caller = self._endpoint.identify(scope, None if authorization is None else authorization.decode("latin-1"))
            caller.receive = receive
            result = await self._endpoint.execute(caller, read_body(content_type, body), posted=True)
            answer = render(result, media_type, self._endpoint.execution.limits.response, caller.meter)
        except Refused as refused:
            await self._respond(scope, receive, send, refused)
            return True
        except ClientDisconnect:
            return True
        except Exception:
            await self._respond(scope, receive, send, failed(request_id.decode()))
            raise
        answered = [
            (b"content-length", b"%d" % len(answer.body)),
            (b"content-type", media_type.encode()),
            (b"vary", b"Origin"),
            (REQUEST_ID, request_id),
            *answer.headers,
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": answered})
        await send({"type": "http.response.body", "body": answer.body})
        return True

    async def _respond(self, scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
        request_id = scope["state"]["request_id"]
        response = refused.response(request_id)
        response.raw_headers += [(b"vary", b"Origin"), (REQUEST_ID, request_id.encode())]
        await response(scope, receive, send)


async def _body(receive: Receive) -> bytes | None:
    """Read the whole body; None if the client has left."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        if not parts and not message.get("more_body", False):
            return bytes(message.get("body", b""))
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
