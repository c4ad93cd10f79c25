"""The demo's visitors: the users that the playground can be logged in as."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from graph import Graph
from graph.model import RelationshipState, Session
from graph.paging import Window
from resolvers import ids
from server.auth import Tokens
from server.demo.world import Person

FOLLOWED = "bob"  # the examples show this user's followers
PAGE = Window(20, forward=True)


@dataclass(frozen=True, slots=True)
class Held:
    """A session of a visitor, its token, and the time from which another session is started."""

    session: Session
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
        """Return an access token of a visitor. None if the user does not exist or is no visitor."""
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
        session = await self.graph.sessions.start(user)
        now = datetime.now(UTC)
        held = self._held[login] = Held(session, self._tokens.issue(session), now + (session.expires_at - now) / 2)
        return held.token

    async def variables(self, login: str) -> dict[str, str]:
        """Return variables as JSON for the examples that need ids, by the name of the example."""
        visitor, followed = await self.graph.users.ids_of_logins([login, FOLLOWED])
        if visitor is None or followed is None:
            return {}
        view = self.graph.visibility.of(visitor)
        [followers] = await self.graph.follows.followers(view, [followed], PAGE)
        relations = await self.graph.relationships.between(visitor, [each.user for each in followers.items], view)
        strangers = [relation.subject for relation in relations if relation.state is RelationshipState.NONE]
        [following] = await self.graph.follows.following(view, [visitor], PAGE)
        own, read = await self.graph.timelines.user(view, [visitor, followed], PAGE)
        user = ids.encode(ids.Kind.USER, followed)
        posts = [ids.encode(ids.Kind.POST, post.id) for post in read.items[:1]]
        values: dict[str, dict[str, object]] = {
            "follow": {"userIds": [ids.encode(ids.Kind.USER, (strangers or [followed])[0])]},
            "unfollow": {"userIds": [ids.encode(ids.Kind.USER, follow.user) for follow in following.items[:1]]},
            **{name: {"userId": user} for name in ("mute", "unmute", "block", "unblock")},
            "new-followers": {"userIds": [ids.encode(ids.Kind.USER, visitor)]},
            "node": {"id": user},
            "nodes": {"ids": [user, *posts]},
        }
        sessions = await self.graph.sessions.infos(visitor)
        if sessions:
            values["end-session"] = {"sessionId": ids.encode(ids.Kind.SESSION, sessions[-1].id)}
        if posts:
            values["post"] = {"id": posts[0]}
        if own.items:
            values["delete-post"] = {"id": ids.encode(ids.Kind.POST, own.items[0].id)}
        return {example: json.dumps(given, indent=2) for example, given in values.items()}
