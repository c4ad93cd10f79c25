"""Builds the callers of requests and WebSockets, with the quotas and rate limits that they all share."""

from collections.abc import Mapping
from contextlib import suppress

from starlette.types import Scope

from graph.accounts.sessions import MAX_USER_AGENT
from graph.errors import StoreUnavailable
from graph.model import Credentials
from server.auth import BadToken, Tokens
from server.endpoint.origins import Origins
from server.endpoint.responses import CHALLENGE
from server.endpoint.session_cookies import SessionCookies
from server.errors import UNAUTHENTICATED, Refused
from server.operations.caller import Caller
from server.operations.quotas import Quotas
from server.operations.rates import RateLimits
from server.settings import Settings


class Callers:
    """Builds the caller of each request and of each WebSocket."""

    def __init__(self, tokens: Tokens, settings: Settings, origins: Origins) -> None:
        self._tokens = tokens
        self.cookies = SessionCookies(origins, secure=settings.production)
        self.quotas = Quotas.of(settings)
        self.rate_limits = RateLimits.of(settings)

    def identify(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """Return the caller of a request. Raises Refused if the access token is invalid or has expired."""
        caller = self.unidentified(scope, headers)
        try:
            caller.viewer = self._tokens.viewer(caller.authorization)
        except BadToken as bad:
            refused = unauthenticated(bad)
            if caller.from_cookie:
                name, value = self.cookies.remove(scope)
                refused.headers[name.decode()] = value.decode()
            raise refused from None
        return caller

    async def changed_cookie(self, scope: Scope, caller: Caller, status: int) -> list[tuple[bytes, bytes]]:
        """Return the header that changes the session cookie after an operation, or an empty list for no change.

        The token of a new session is stored, and the token of an ended session is removed. After a successful request,
        the token of a session in use is renewed at most once a day, in one round trip, unless there is an outage.
        """
        session = caller.session
        if isinstance(session, Credentials):
            return [self.cookies.issue(scope, self._tokens.issue(session), session)] if caller.keeps_cookie else []
        if not caller.from_cookie:
            return []
        if session is None or status == 401:
            return [self.cookies.remove(scope)]
        viewer, renewed = caller.viewer, None
        if viewer is not None and status == 200:
            with suppress(StoreUnavailable):
                renewed = await caller.graph.sessions.renew(viewer.user, viewer.session, viewer.expires_at)
        return [self.cookies.issue(scope, self._tokens.issue(renewed), renewed)] if renewed else []

    def unidentified(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """Return a caller without a viewer. The viewer of a WebSocket is unknown until its first message."""
        given = headers.get(b"authorization")
        authorization = None if given is None else given.decode("latin-1")
        from_cookie = False
        if given is None and (token := self.cookies.token(scope, headers)) is not None:
            authorization, from_cookie = f"Bearer {token}", True
        client = scope.get("client")
        return Caller(
            scope["app"].state.graph,
            self._tokens,
            self.quotas,
            scope["state"]["request_id"],
            client[0] if client else "",
            authorization=authorization,
            rate_limits=self.rate_limits,
            from_cookie=from_cookie,
            keeps_cookie=scope["type"] == "http" and self.cookies.requested(scope, headers),
            user_agent=headers.get(b"user-agent", b"")[:MAX_USER_AGENT].decode("latin-1") or None,
        )


def unauthenticated(error: Exception) -> Refused:
    """Return the refusal for an invalid token or an ended session, with status 401."""
    return Refused(401, str(error), UNAUTHENTICATED, {"WWW-Authenticate": CHALLENGE})
