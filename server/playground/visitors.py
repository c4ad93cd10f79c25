"""The demo's visitors: the users that the playground can log in as."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from graph import Graph
from graph.errors import Rejected
from graph.model import Credentials
from server.auth import Tokens
from server.demo.world import Person
from server.playground.variables import variables


@dataclass(frozen=True, slots=True)
class Held:
    """A session of a visitor, its token, and the time from which a new session replaces it."""

    session: Credentials
    token: str
    renew_at: datetime


class Visitors:
    """Users of the demo world and their sessions, which are renewed after half their lifetime or if they have ended.

    Set `graph` before calling a method.
    """

    graph: Graph

    def __init__(self, tokens: Tokens, people: Sequence[Person]) -> None:
        self.people = tuple(people)
        self._tokens = tokens
        self._held: dict[str, Held] = {}

    async def token(self, login: str) -> str | None:
        """Return an access token of a visitor, or None if the user is not a visitor, or was deleted or suspended."""
        if login not in [person.login for person in self.people]:
            return None
        held = self._held.get(login)
        if held and datetime.now(UTC) < held.renew_at:
            session = held.session
            if await self.graph.sessions.is_live(session.user, session.id):
                return held.token
        [user] = await self.graph.users.ids_of_logins([login])
        if user is None:
            return None
        try:
            session = await self.graph.sessions.start(user)
        except Rejected:
            return None
        now = datetime.now(UTC)
        held = self._held[login] = Held(session, self._tokens.issue(session), now + (session.expires_at - now) / 2)
        return held.token

    async def variables(self, login: str) -> dict[str, str]:
        """Return the variables of the examples that need any, as JSON, keyed by the name of the example."""
        return await variables(self.graph, login)
