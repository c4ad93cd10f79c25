"""Callers of requests and WebSockets, with the quotas and rates that apply to all of them."""

from starlette.types import Scope

from server.auth import BadToken, Tokens
from server.endpoint.responses import CHALLENGE
from server.errors import UNAUTHENTICATED, Refused
from server.operations.caller import Caller
from server.operations.quotas import Quotas
from server.operations.rates import RateLimits
from server.settings import Settings


class Callers:
    """Builds the caller of each request and of each WebSocket."""

    def __init__(self, tokens: Tokens, settings: Settings) -> None:
        self._tokens = tokens
        self.quotas = Quotas.of(settings)
        self.rate_limits = RateLimits.of(settings)

    def identify(self, scope: Scope, authorization: str | None) -> Caller:
        """Return the caller of a request. Raises Refused for a bad token."""
        caller = self.unidentified(scope, authorization)
        try:
            caller.viewer = self._tokens.viewer(authorization)
        except BadToken as bad:
            raise unauthenticated(bad) from None
        return caller

    def unidentified(self, scope: Scope, authorization: str | None) -> Caller:
        """Return the caller of a WebSocket, whose viewer is unknown until its first message."""
        client = scope.get("client")
        return Caller(
            scope["app"].state.graph,
            self._tokens,
            self.quotas,
            scope["state"]["request_id"],
            client[0] if client else "",
            authorization=authorization,
            rate_limits=self.rate_limits,
        )


def unauthenticated(error: Exception) -> Refused:
    """Return the response to an invalid token or an ended session."""
    return Refused(401, str(error), UNAUTHENTICATED, {"WWW-Authenticate": CHALLENGE})
