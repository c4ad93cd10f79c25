"""Execute the updates of streams as the server does, in groups, and check what each client receives."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, cast

import orjson
from graphql import parse

from executor import Executor, Operation
from graph import Graph
from graph.feed.handover import Courier
from graph.feed.updates import (
    AuthorAdded,
    AuthorHidden,
    AuthorRemoved,
    Change,
    PostAdded,
    PostChanged,
    PostRemoved,
    ReplyAdded,
    RepostAdded,
    RepostRemoved,
    TimelineChanged,
    UserFollowed,
    UserUnfollowed,
)
from graph.model import Post, Repost
from graph.paging import CursorKind, encode_cursor
from resolvers import ids
from resolvers.context import Context, Viewer
from schema import schema
from server.auth import Tokens
from server.operations.caller import Caller
from server.operations.cost import OperationCost
from server.operations.live_events import LiveEvents
from server.operations.observation import Observation
from server.operations.quotas import Quotas
from server.operations.subscriptions import IN_PAYLOAD, Completion, SocketCourier, StreamedResult, completing_alone
from server.settings import Settings

HOME = """subscription { homeTimeline { __typename cursor
  ... on PostAdded { timelineEdge { node { ...Shown } } } ... on RepostAdded { timelineEdge { node { ...Shown } } }
  ... on PostRemoved { postId authorId } ... on RepostRemoved { repostId authorId }
  ... on AuthorAdded { userId } ... on AuthorRemoved { userId } ... on AuthorHidden { userId }
} } fragment Shown on TimelineItem { id ... on Post { text } author { id OWN } }"""
TIMELINE_EVENTS = HOME.replace("homeTimeline", 'timeline(timelineId: "any")')
THREAD = """subscription { thread(postId: "any") { __typename cursor
  ... on ReplyAdded { postEdge { node { ...Shown } } } ... on PostRemoved { postId authorId }
  ... on PostChanged { postId } ... on AuthorAdded { userId } ... on AuthorHidden { userId }
} } fragment Shown on Post { id text author { id OWN } }"""
EVENTS = """subscription { events(filter: { keywords: ["x"] }) { __typename cursor
  ... on PostAdded { post { ...Shown } } ... on RepostAdded { repost { ...Shown } }
  ... on PostRemoved { postId authorId } ... on RepostRemoved { repostId authorId }
  ... on UserFollowed { follower { id } followee { id } } ... on UserUnfollowed { follower { id } followee { id } }
} } fragment Shown on TimelineItem { id ... on Post { text } author { id OWN } }"""
OWN = "relationship { id }"
ROOM = 2  # results that are sent to a client that does not read

Subscribe = Callable[[Courier], AsyncGenerator[Any]]


class Executed:
    """The executions of one process."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.executor = Executor(schema._schema)
        self._events = LiveEvents()
        self._documents: dict[str, Any] = {}

    async def stream(
        self, subscribe: Subscribe, document: str, viewer: int | None, *, own: bool, by_courier: bool
    ) -> AsyncGenerator[Any]:
        """Execute each update of a viewer's stream and check the result. If `own`, the result depends on the viewer.

        If `by_courier`, a courier delivers the updates that it can.
        """
        text = document.replace("OWN", OWN if own else "")
        operation = self.executor.prepare(self._documents.setdefault(text, parse(text)), {})
        assert isinstance(operation, Operation)
        assert operation.is_independent != own
        who = None if viewer is None else Viewer(viewer, "a session", datetime.now(UTC))
        caller = Caller(self.graph, Tokens(["a key that is long enough for a test"]), QUOTAS, "a request", "", who)
        context = Context(self.graph, who, str)
        alone = completing_alone(operation, context, cast(Any, None))
        group, cost = self._events.join(operation, self.graph), OperationCost(0, 0)
        completion = Completion(caller, alone, context, group, Observation(), None, cost, self._events)
        received = Received()
        if by_courier:
            received.courier.start(completion, context, 0)
        async with aclosing(received.all(subscribe(received.courier))) as updates:
            async for update, sent in updates:
                if isinstance(update, Change):
                    streamed = sent or await completion.result(cast(Any, update))
                    context.forget()
                    if errors := streamed.result.errors:  # while the store is unavailable
                        codes = {(error.extensions or {})["code"] for error in errors}
                        assert codes == {"STORE_UNAVAILABLE"}, errors
                    else:
                        payload = streamed.payload
                        data = orjson.loads(payload)["data"] if payload else streamed.result.data or {}
                        [(field, got)] = data.items()
                        assert got == expected(field, update, viewer if own else None, own=own)
                yield update


class Received:
    """The updates of a client: from its courier while there is room, otherwise from the stream."""

    def __init__(self) -> None:
        self.courier = NotingCourier(self._send, Observation())
        self._sent: deque[tuple[Change, StreamedResult]] = deque()
        self._arrived = asyncio.Event()

    def _send(self, payload: bytes) -> bool:
        if len(self._sent) == ROOM:
            return False
        update = self.courier.noted
        assert isinstance(update, Change)
        self._sent.append((update, StreamedResult(IN_PAYLOAD, update.number, payload)))
        self._arrived.set()
        return True

    async def all(self, updates: AsyncGenerator[Any]) -> AsyncGenerator[tuple[Any, StreamedResult | None]]:
        """Yield updates in the order in which the client gets them, with the results that were already sent."""
        pulled = asyncio.ensure_future(anext(updates))
        arrived = asyncio.ensure_future(self._arrived.wait())
        try:
            while True:
                await asyncio.wait([pulled, arrived], return_when=asyncio.FIRST_COMPLETED)
                while self._sent:
                    yield self._sent.popleft()
                if arrived.done():
                    self._arrived.clear()
                    arrived = asyncio.ensure_future(self._arrived.wait())
                if pulled.done():
                    yield pulled.result(), None
                    pulled = asyncio.ensure_future(anext(updates))
        finally:
            arrived.cancel()
            pulled.cancel()
            await asyncio.wait([pulled])
            await updates.aclose()


class NotingCourier(SocketCourier):
    """A courier that notes the last update that it took."""

    noted: Change | None = None

    def take(self, update: Change, settle: Callable[[bool], None]) -> bool:
        """Take an update and note it."""
        self.noted = update
        return super().take(update, settle)


QUOTAS = Quotas.of(Settings(secret=("a key that is long enough for a test",)))


def expected(field: str, update: Any, viewer: int | None, *, own: bool) -> dict[str, Any]:
    """Return the result that a client should receive for an update of a subscription."""
    event: dict[str, Any] = {
        "__typename": type(update).__name__,
        "cursor": encode_cursor(CursorKind.LOG, update.number),
    }
    match update:
        case PostAdded() | RepostAdded():
            item = shown(update.post, viewer, own=own)
            name = "repost" if isinstance(update, RepostAdded) else "post"
            event |= {"timelineEdge": {"node": item}} if field != "events" else {name: item}
        case ReplyAdded():
            event["postEdge"] = {"node": shown(update.post, viewer, own=own)}
        case PostChanged():
            event["postId"] = ids.encode(ids.Kind.POST, update.post)
        case PostRemoved():
            event |= {"postId": ids.encode(ids.Kind.POST, update.post), "authorId": user_id(update.author)}
        case RepostRemoved():
            event |= {"repostId": ids.encode(ids.Kind.REPOST, update.post), "authorId": user_id(update.author)}
        case AuthorAdded() | AuthorRemoved() | AuthorHidden():
            event["userId"] = user_id(update.user)
        case TimelineChanged():
            pass
        case UserFollowed() | UserUnfollowed():
            event |= {"follower": {"id": user_id(update.follower)}, "followee": {"id": user_id(update.followee)}}
        case _:
            raise AssertionError(update)
    return event


def shown(post: Post, viewer: int | None, *, own: bool) -> dict[str, Any]:
    """Return the fields of a post that a client should receive."""
    author: dict[str, Any] = {"id": user_id(post.author)}
    if own:
        subject = None if viewer is None else ids.encode(ids.Kind.RELATIONSHIP, viewer, post.author)
        author["relationship"] = None if subject is None else {"id": subject}
    if isinstance(post, Repost):
        return {"id": ids.encode(ids.Kind.REPOST, post.id), "author": author}
    return {"id": ids.encode(ids.Kind.POST, post.id), "text": post.text, "author": author}


def user_id(user: int) -> str:
    """Return the global id of a user."""
    return ids.encode(ids.Kind.USER, user)
