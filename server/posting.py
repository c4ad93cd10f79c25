"""The short way of a posted request: what nearly all requests are is read and answered without a framework's detours.

It is a middleware in front of the routes. Whatever is not a plain POST of JSON to the endpoint, of known length and
answered at once, goes the long way, through the endpoint's own handling, and comes out the same.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from server.errors import Refused
from server.http import GraphQLEndpoint
from server.limits import MAX_BODY
from server.messages import choose_media_type, is_json, read_body, render
from server.streams import EVENT_STREAM


class Posting:
    """Answers plain posted requests to `path`; passes all others on."""

    def __init__(self, app: ASGIApp, endpoint: GraphQLEndpoint, path: str) -> None:
        self.app = app
        self._endpoint = endpoint
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self._path:
            return await self.app(scope, receive, send)
        headers = dict(scope["headers"])
        accept = headers.get(b"accept", b"").decode("latin-1")
        length = headers.get(b"content-length", b"")
        content_type = headers.get(b"content-type", b"").decode("latin-1")
        plain = length.isdigit() and len(length) < 9 and int(length) <= MAX_BODY
        if not plain or EVENT_STREAM in accept.lower() or not is_json(content_type):
            return await self.app(scope, receive, send)
        body = await _body(receive)
        if body is None:
            return None
        authorization = headers.get(b"authorization")
        token = None if authorization is None else authorization.decode("latin-1")
        try:
            status, media_type, answer = await self._answer(scope, content_type, body, token, accept)
        except Refused as refused:
            return await refused.response(scope["state"]["request_id"])(scope, receive, send)
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    (b"content-length", b"%d" % len(answer)),
                    (b"content-type", media_type.encode()),
                ],
            }
        )
        return await send({"type": "http.response.body", "body": answer})

    async def _answer(
        self, scope: Scope, content_type: str, body: bytes, token: str | None, accept: str
    ) -> tuple[int, str, bytes]:
        endpoint = self._endpoint
        caller = endpoint.identify(scope, token)
        result = await endpoint.execute(caller, read_body(content_type, body), posted=True)
        media_type = choose_media_type(accept)
        status, answer = render(result, media_type)
        return status, media_type, answer


async def _body(receive: Receive) -> bytes | None:
    """Read the whole body; None if the client has left."""
    message = await receive()
    if not message.get("more_body", False):
        return message.get("body", b"") if message["type"] == "http.request" else None
    parts = [message["body"]]
    while message.get("more_body", False):
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
    return b"".join(parts)
