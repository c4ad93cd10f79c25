"""Strawberry as tutorials present it: a resolver per field, dataloaders over redis-py, and no caches."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import jwt
import strawberry
import uvicorn
from aiodataloader import DataLoader
from redis.asyncio import Redis
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from strawberry.asgi import GraphQL
from strawberry.schema.config import StrawberryConfig
from strawberry.types.info import Info

from graph import keys
from graph.model import EPOCH, SEQUENCE_BITS
from graph.paging import CursorKind, encode_cursor
from resolvers import ids
from schema.scalars import DATE_TIME

CONNECTIONS = 10_000  # redis-py allows 100 by default and fails beyond them; each command under way takes one


@strawberry.enum
class RelationshipState(Enum):
    """The relationship between the viewer and another user."""

    YOU = "YOU"
    STRANGER = "STRANGER"
    FOLLOWING = "FOLLOWING"
    FOLLOWED_BY = "FOLLOWED_BY"
    MUTUAL = "MUTUAL"


class Store:
    """redis-py's client with a counter of round trips."""

    def __init__(self, url: str) -> None:
        self.round_trips = 0
        self.redis = Redis.from_url(url, decode_responses=True, max_connections=CONNECTIONS)

    async def each(self, command: str, names: Sequence[str], *words: Any) -> list[Any]:
        """Run a command for each of some keys, in one pipeline."""
        self.round_trips += 1
        async with self.redis.pipeline(transaction=False) as pipeline:
            for name in names:
                getattr(pipeline, command)(name, *words)
            return await pipeline.execute()

    async def one(self, command: str, name: str, *words: Any, **options: Any) -> Any:
        """Run one command."""
        self.round_trips += 1
        return await getattr(self.redis, command)(name, *words, **options)


@dataclass
class Context:
    """The context of resolvers: the viewer, the store, and the loaders of this request."""

    viewer: int
    store: Store

    def __post_init__(self) -> None:
        self.users: DataLoader[int, User] = DataLoader(self._users)
        self.posts: DataLoader[int, Post] = DataLoader(self._posts)
        self.followers: DataLoader[int, int] = DataLoader(self._followers)
        self.following: DataLoader[int, int] = DataLoader(self._following)
        self.relationships: DataLoader[int, Relationship] = DataLoader(self._relationships)

    async def _users(self, numbers: Sequence[int]) -> list[Any]:
        rows = await self.store.each("hgetall", [keys.user(number) for number in numbers])
        return [User(number=n, row=row) if row else None for n, row in zip(numbers, rows, strict=True)]

    async def _posts(self, numbers: Sequence[int]) -> list[Any]:
        rows = await self.store.each("hgetall", [keys.post(number) for number in numbers])
        return [Post(number=n, row=row) if "author" in row else None for n, row in zip(numbers, rows, strict=True)]

    async def _followers(self, numbers: Sequence[int]) -> list[int]:
        return await self.store.each("zcard", [keys.followers(number) for number in numbers])

    async def _following(self, numbers: Sequence[int]) -> list[int]:
        return await self.store.each("zcard", [keys.following(number) for number in numbers])

    async def _relationships(self, numbers: Sequence[int]) -> list["Relationship"]:
        forth = await self.store.one("zmscore", keys.following(self.viewer), list(numbers))
        back = await self.store.one("zmscore", keys.followers(self.viewer), list(numbers))
        columns = zip(numbers, forth, back, strict=True)
        return [Relationship(state=state(n == self.viewer, f is not None, b is not None)) for n, f, b in columns]


def state(self: bool, following: bool, followed_by: bool) -> RelationshipState:
    """Return the state of a relationship."""
    if self:
        return RelationshipState.YOU
    if following:
        return RelationshipState.MUTUAL if followed_by else RelationshipState.FOLLOWING
    return RelationshipState.FOLLOWED_BY if followed_by else RelationshipState.STRANGER


ContextInfo = Info[Context, None]


@strawberry.type
class Relationship:
    """The relationship between the viewer and another user."""

    state: RelationshipState


@strawberry.type
class PageInfo:
    """Information about a page."""

    has_next_page: bool
    end_cursor: str | None


@strawberry.type
class User:
    """A user."""

    number: strawberry.Private[int]
    row: strawberry.Private[dict[str, str]]

    @strawberry.field
    def id(self) -> strawberry.ID:
        """Return the global id."""
        return strawberry.ID(ids.encode(ids.Kind.USER, self.number))

    @strawberry.field
    def login(self) -> str:
        """Return the login."""
        return self.row["login"]

    @strawberry.field
    def name(self) -> str:
        """Return the name."""
        return self.row["name"]

    @strawberry.field
    async def followers_count(self, info: ContextInfo) -> int:
        """Return the number of followers."""
        return await info.context.followers.load(self.number)

    @strawberry.field
    async def following_count(self, info: ContextInfo) -> int:
        """Return the number of followees."""
        return await info.context.following.load(self.number)

    @strawberry.field
    async def relationship(self, info: ContextInfo) -> Relationship:
        """Return the relationship between the viewer and the user."""
        return await info.context.relationships.load(self.number)

    @strawberry.field
    async def followers(self, info: ContextInfo, first: int) -> "FollowConnection":
        """Return a page of followers."""
        rows = await info.context.store.one("zrange", keys.followers(self.number), 0, first, desc=True, withscores=True)
        return FollowConnection(first=first, rows=[(int(user), int(score)) for user, score in rows])

    @strawberry.field
    def timeline(self) -> "Timeline":
        """Return the user's own timeline."""
        return Timeline(key=keys.posts(self.number))


@strawberry.interface
class TimelineItem:
    """An entry of a timeline."""

    number: strawberry.Private[int]
    row: strawberry.Private[dict[str, str]]

    @strawberry.field
    def id(self) -> strawberry.ID:
        """Return the global id."""
        return strawberry.ID(ids.encode(ids.Kind.POST, self.number))

    @strawberry.field
    def created_at(self) -> datetime:
        """Return the time of publication."""
        return EPOCH + timedelta(milliseconds=self.number >> SEQUENCE_BITS)

    @strawberry.field
    async def author(self, info: ContextInfo) -> User:
        """Return the author."""
        return await info.context.users.load(int(self.row["author"]))


@strawberry.type
class Post(TimelineItem):
    """A post."""

    @strawberry.field
    def text(self) -> str:
        """Return the text."""
        return self.row["text"]

    @strawberry.field
    def platform(self) -> str | None:
        """Return the platform."""
        return self.row.get("platform")


@strawberry.type
class TimelineEdge:
    """An entry in a page."""

    node: TimelineItem

    @strawberry.field
    def cursor(self) -> str:
        """Return the cursor."""
        return encode_cursor(CursorKind.POST, self.node.number)


@strawberry.type
class TimelineConnection:
    """A page of entries."""

    nodes: list[TimelineItem]
    page_info: PageInfo

    @strawberry.field
    def edges(self) -> list[TimelineEdge]:
        """Return the entries with their cursors."""
        return [TimelineEdge(node=node) for node in self.nodes]


@strawberry.type
class Timeline:
    """A timeline."""

    key: strawberry.Private[str]

    @strawberry.field
    async def entries(self, info: ContextInfo, first: int) -> TimelineConnection:
        """Return a page of entries, all of which are posts."""
        found = await info.context.store.one("zrange", self.key, 0, first, desc=True)
        loaded = await info.context.posts.load_many(int(post) for post in found if post != "f")
        nodes: list[TimelineItem] = [post for post in loaded if post is not None]
        cursor = encode_cursor(CursorKind.POST, nodes[:first][-1].number) if nodes else None
        ends = PageInfo(has_next_page=len(nodes) > first, end_cursor=cursor)
        return TimelineConnection(nodes=nodes[:first], page_info=ends)


@strawberry.type
class FollowEdge:
    """A follower in a page."""

    user: strawberry.Private[int]
    number: strawberry.Private[int]

    @strawberry.field
    def cursor(self) -> str:
        """Return the cursor."""
        return encode_cursor(CursorKind.FOLLOW, self.number)

    @strawberry.field
    async def node(self, info: ContextInfo) -> User:
        """Return the user."""
        return await info.context.users.load(self.user)


@strawberry.type
class FollowConnection:
    """A page of followers."""

    first: strawberry.Private[int]
    rows: strawberry.Private[list[tuple[int, int]]]

    @strawberry.field
    def edges(self) -> list[FollowEdge]:
        """Return followers with their cursors."""
        return [FollowEdge(user=user, number=number) for user, number in self.rows[: self.first]]

    @strawberry.field
    async def nodes(self, info: ContextInfo) -> list[User]:
        """Return followers."""
        return await info.context.users.load_many(user for user, _ in self.rows[: self.first])

    @strawberry.field
    def page_info(self) -> PageInfo:
        """Return information about the page."""
        shown = self.rows[: self.first]
        cursor = encode_cursor(CursorKind.FOLLOW, shown[-1][1]) if shown else None
        return PageInfo(has_next_page=len(self.rows) > self.first, end_cursor=cursor)


@strawberry.input
class UserBy:
    """A user's login."""

    login: str


@strawberry.type
class Viewer:
    """The user who is logged in."""

    @strawberry.field
    async def user(self, info: ContextInfo) -> User:
        """Return the user."""
        return await info.context.users.load(info.context.viewer)

    @strawberry.field
    def home_timeline(self, info: ContextInfo) -> Timeline:
        """Return the home timeline."""
        return Timeline(key=keys.home(info.context.viewer))


@strawberry.type
class Query:
    """The query root."""

    @strawberry.field
    def viewer(self) -> Viewer | None:
        """Return the viewer."""
        return Viewer()

    @strawberry.field
    async def user(self, info: ContextInfo, by: UserBy) -> User | None:
        """Return a user."""
        found = await info.context.store.one("hget", keys.login(by.login), "user")
        return await info.context.users.load(int(found)) if found else None


class Endpoint(GraphQL[Context, None]):
    """The endpoint. It verifies the token and looks up the session for every request."""

    def __init__(self, store: Store, key: str) -> None:
        super().__init__(
            strawberry.Schema(Query, types=[Post], config=StrawberryConfig(scalar_map={datetime: DATE_TIME})),
            graphql_ide=None,
        )
        self._store = store
        self._key = key

    async def get_context(self, request: Any, response: Any) -> Context:
        """Return the context of a request."""
        token = request.headers["authorization"].removeprefix("Bearer ")
        claims = jwt.decode(token, self._key, ["HS256"])
        ends = await self._store.one("hget", keys.sessions(int(claims["sub"])), claims["sid"])
        if ends is None or int(ends) < datetime.now(UTC).timestamp():
            raise PermissionError("The session has ended.")
        return Context(int(claims["sub"]), self._store)


def strawberry_tutorial(url: str, folder: Path, key: str) -> uvicorn.Config:
    """Return the configuration of the application, with uvicorn's defaults."""
    store = Store(url)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await store.redis.aclose()

    async def stats(_: Request) -> JSONResponse:
        return JSONResponse({"round_trips": store.round_trips})

    routes = [Route("/graphql", Endpoint(store, key)), Route("/stats", stats)]
    app = Starlette(routes=routes, lifespan=lifespan)
    return uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
