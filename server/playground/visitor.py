"""The demo's visitor: the user that the playground is logged in as."""

import json
from datetime import UTC, datetime

from graph import Graph
from graph.model import RelationshipState, Session
from graph.paging import Window
from resolvers import ids
from server.auth import Tokens

FOLLOWED = "bob"  # the examples show this user's followers


class Visitor:
    """A user of the demo world and their session, which is renewed after half its lifetime or if it has ended.

    Set `graph` before calling a method.
    """

    graph: Graph

    def __init__(self, tokens: Tokens, login: str) -> None:
        self._tokens = tokens
        self._login = login
        self._session: Session | None = None
        self._token: str | None = None
        self._renew_at = datetime.max.replace(tzinfo=UTC)

    async def token(self) -> str | None:
        """Return the visitor's access token, or None if the user does not exist."""
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
        """Return variables as JSON for the examples that need ids, by the name of the example."""
        visitor, followed = await self.graph.users.ids_of_logins([self._login, FOLLOWED])
        if visitor is None or followed is None:
            return {}
        [page] = await self.graph.follows.followers([followed], Window(20, forward=True))
        relations = await self.graph.relationships.between(visitor, [follow.user for follow in page.items])
        strangers = [relation.subject for relation in relations if relation.state is RelationshipState.NONE]
        chosen = [ids.encode(ids.Kind.USER, user) for user in strangers[:1] or [followed]]
        return {"follow": json.dumps({"userIds": chosen}, indent=2)}
