"""The demo's visitor: somebody of the demo world, whom the playground logs in, and what they could try next."""

import json
from datetime import UTC, datetime

from graph import Graph
from graph.model import RelationshipState, Session
from graph.paging import Window
from resolvers import ids
from server.auth import Tokens

NEIGHBOUR = "bob"  # whose followers the visitor meets in the examples


class Visitor:
    """One demo person and their session, which is renewed when it has ended or half of it is over.

    `graph` is set when there is one.
    """

    graph: Graph

    def __init__(self, tokens: Tokens, login: str) -> None:
        self._tokens = tokens
        self._login = login
        self._session: Session | None = None
        self._token: str | None = None
        self._renew_at = datetime.max.replace(tzinfo=UTC)

    async def token(self) -> str | None:
        """Give the visitor's token, or None while there is no such person."""
        sessions, session = self.graph.sessions, self._session
        if session and datetime.now(UTC) < self._renew_at and await sessions.is_live(session.user, session.id):
            return self._token
        [user] = await self.graph.users.ids_of_logins([self._login])
        if user is None:
            return None
        self._session = session = await sessions.start(user)
        now = datetime.now(UTC)
        self._renew_at = now + (session.expires_at - now) / 2
        self._token = self._tokens.issue(session)
        return self._token

    async def variables(self) -> dict[str, str]:
        """Give variables, as JSON, for the examples that need ids: somebody to follow."""
        visitor, neighbour = await self.graph.users.ids_of_logins([self._login, NEIGHBOUR])
        if visitor is None or neighbour is None:
            return {}
        [page] = await self.graph.follows.followers([neighbour], Window(20, forward=True))
        relations = await self.graph.relationships.between(visitor, [follow.user for follow in page.items])
        strangers = [relation.subject for relation in relations if relation.state is RelationshipState.NONE]
        chosen = [ids.encode(ids.Kind.USER, user) for user in strangers[:1] or [neighbour]]
        return {"follow": json.dumps({"userIds": chosen}, indent=2)}
