"""A small world of users, follows and posts, written through the graph and queried through GraphQL."""

import asyncio
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import pytest
from strawberry.extensions import ParserCache, ValidationCache

from graph import Graph
from graph.model import Credentials, Post, Repost, User
from resolvers import ids
from resolvers.context import Context, Viewer
from resolvers.errors import code_of
from schema import schema

PASSWORD = "correct horse"
CACHING = copy(schema)
"""The schema, with parsed and validated documents kept for the next test, as the server keeps them."""
CACHING.extensions = (lambda: ParserCache(maxsize=1000), lambda: ValidationCache(maxsize=1000))


@dataclass
class Answer:
    """The result of an operation: data, errors as (path, code), and its round trips and commands to the store."""

    data: Any
    errors: list[tuple[tuple[str | int, ...], str | None]]
    round_trips: int
    commands: int


class World:
    """Creates users by login, acts as them, and executes operations as one of them or anonymously."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._sessions: dict[int, Credentials] = {}

    async def users(self, *logins: str) -> list[User]:
        """Create users in this order."""
        return [await self.graph.users.sign_up(login, PASSWORD, login.title()) for login in logins]

    async def follow(self, follower: User, *followees: User) -> None:
        """Follow users in this order."""
        for followee in followees:
            await self.graph.follows.follow(follower.id, [followee.id])

    async def post(self, author: User, *texts: str) -> list[Post]:
        """Publish posts in this order."""
        return [await self.graph.posts.publish(author.id, text) for text in texts]

    async def viewer(self, user: User | None) -> Viewer | None:
        """Return the viewer for a user, with one session per user; None for None."""
        if user is None:
            return None
        if user.id not in self._sessions:
            self._sessions[user.id] = await self.graph.sessions.start(user.id)
        session = self._sessions[user.id]
        return Viewer(user.id, session.id, session.expires_at)

    async def context(self, user: User | None) -> Context:
        """Return a context that belongs to no request."""
        return Context(self.graph, await self.viewer(user), issue_token)

    async def ask(self, document: str, by: User | None = None, /, **variables: object) -> Answer:
        """Execute an operation like the server, with the session check in parallel.

        The watermark is in memory, as in a process that serves pages: the operation does not read it.
        """
        viewer = await self.viewer(by)
        store = self.graph.store
        await self.graph.log.watermark()
        trips, commands = store.round_trips, store.commands
        checks = (
            [] if viewer is None else [asyncio.ensure_future(self.graph.sessions.is_live(viewer.user, viewer.session))]
        )
        context = Context(self.graph, viewer, issue_token)
        result = await CACHING.execute(document, context_value=context, variable_values=variables)
        await asyncio.gather(*checks)
        return Answer(result.data, errors_of(result.errors), store.round_trips - trips, store.commands - commands)


def errors_of(errors: Any) -> list[tuple[tuple[str | int, ...], str | None]]:
    """Return the path and code of each error."""
    return [(tuple(error.path or ()), code_of(error.original_error)) for error in errors or ()]


def issue_token(session: Credentials) -> str:
    """Return a readable token."""
    return f"token of {session.user}"


def user_id(user: User) -> str:
    """Return the global id of a user."""
    return ids.encode(ids.Kind.USER, user.id)


def post_id(post: Post) -> str:
    """Return the global id of a post."""
    return ids.encode(ids.Kind.POST, post.id)


def repost_id(repost: Repost) -> str:
    """Return the global id of a repost."""
    return ids.encode(ids.Kind.REPOST, repost.id)


def texts(connection: Mapping[str, Any]) -> list[str]:
    """Return the texts of a page of posts."""
    return [edge["node"]["text"] for edge in connection["edges"]]


def logins(connection: Mapping[str, Any]) -> list[str]:
    """Return the logins of a page of users."""
    return [edge["node"]["login"] for edge in connection["edges"]]


@pytest.fixture
async def world(graph: Graph) -> World:
    """Return a world without users."""
    return World(graph)
