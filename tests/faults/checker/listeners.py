"""Clients of streams that follow the documentation: they resume after a disconnect, and fetch again after a `Gap`."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx

from resolvers.ids import decode
from tests.faults.checker.client import Client, Refused
from tests.faults.checker.person import Person
from tests.faults.checker.reading import (
    ITEM,
    NOTIFICATION,
    Notice,
    Shown,
    home_of,
    notice,
    notifications_of,
    number,
    shown,
)
from tests.server.conftest import events

EVENTS = """subscription ($users: [ID!]!) { events(filter: {users: $users}) { __typename cursor
  ... on PostAdded { post { id text author { id } } } ... on RepostAdded { repost { id author { id } } }
  ... on PostRemoved { postId } ... on RepostRemoved { repostId }
  ... on UserFollowed { follower { id } followee { id } } ... on UserUnfollowed { follower { id } followee { id } }
  ... on Gap { reason } } }"""
HOME = f"""subscription {{ homeTimeline {{ __typename cursor
  ... on PostAdded {{ timelineEdge {{ node {{ {ITEM} }} }} }} ... on PostRemoved {{ postId }}
  ... on RepostAdded {{ timelineEdge {{ node {{ {ITEM} }} }} }} ... on RepostRemoved {{ repostId }}
  ... on AuthorAdded {{ userId }} ... on AuthorRemoved {{ userId }} ... on AuthorHidden {{ userId }}
  ... on Gap {{ reason }} }} }}"""
NOTIFICATIONS = f"""subscription {{ notifications {{ __typename cursor
  ... on NotificationAdded {{ edge {{ cursor node {{ {NOTIFICATION} }} }} }} ... on Gap {{ reason }} }} }}"""
FETCHED = 200  # posts of a home timeline that a client fetches
SILENCE = 30.0  # seconds without data, after which a connection counts as lost


class Listener:
    """A subscription over server-sent events that resumes until it is stopped."""

    field = ""
    query = ""

    def __init__(self, client: Client, **variables: Any) -> None:
        self.client = client
        self.cursor: str | None = None
        self.connected = asyncio.Event()
        self.gaps: list[str] = []
        self._variables = variables

    @property
    def has_lost(self) -> bool:
        """Whether a `Gap` said that events are missing. The Gap of a repair does not."""
        return any(reason != "REPAIR" for reason in self.gaps)

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                await self.begin()
                await self._listen()
            except (httpx.TransportError, Refused):
                pass
            await asyncio.sleep(random.uniform(0.05, 0.2))

    async def begin(self) -> None:
        """Prepare the subscription."""

    async def take(self, event: Any) -> None:
        """Handle an event."""
        raise NotImplementedError

    async def _listen(self) -> None:
        headers = {"accept": "text/event-stream", "authorization": f"Bearer {self.client.token}"}
        if self.cursor:
            headers["last-event-id"] = self.cursor
        body = {"query": self.query, "variables": self._variables}
        async with (
            httpx.AsyncClient(base_url=self.client.url, timeout=SILENCE) as client,
            client.stream("POST", "/graphql", json=body, headers=headers) as response,
        ):
            if response.status_code != 200:
                self.client.note(f"HTTP {response.status_code}")
                return
            self.connected.set()
            async for sent in events(response):
                if sent.name != "next":
                    return
                if errors := sent.data.get("errors"):
                    self.client.note(errors[0].get("extensions", {}).get("code", "none"))
                    return
                event = sent.data["data"][self.field]
                if event["__typename"] == "Gap":
                    self.gaps.append(event["reason"])
                await self.take(event)
                self.cursor = event["cursor"]


class EventsListener(Listener):
    """Collects all events of users: posts, deletions and follows.

    `published`, `deleted` and `by_author` count and order those since the last `Gap`.
    """

    field, query = "events", EVENTS

    def __init__(self, client: Client, users: list[str]) -> None:
        super().__init__(client, users=users)
        self.published: Counter[int] = Counter()
        self.deleted: Counter[int] = Counter()
        self.follows: set[tuple[int, int]] = set()
        self.received: dict[int, int] = {}
        """The authors of all posts."""
        self.removed: set[int] = set()
        """All posts whose deletion was received."""
        self.by_author: dict[int, list[int]] = {}

    async def begin(self) -> None:
        """Start after the `liveCursor` of a page."""
        if self.cursor is None:
            _, self.cursor, _ = await home_of(self.client, 1)

    async def take(self, event: Any) -> None:
        """Collect an event."""
        match event["__typename"]:
            case "PostAdded" | "RepostAdded":
                item = event["post" if event["__typename"] == "PostAdded" else "repost"]
                post = number(item)
                self.received[post] = author = number(item["author"])
                self.published[post] += 1
                self.by_author.setdefault(author, []).append(post)
            case "PostRemoved" | "RepostRemoved":
                self.removed.add(post := removed(event))
                self.deleted[post] += 1
            case "UserFollowed":
                self.follows.add((number(event["follower"]), number(event["followee"])))
            case "UserUnfollowed":
                self.follows.discard((number(event["follower"]), number(event["followee"])))
            case "Gap":  # the client fetches its page again, so later events may repeat earlier ones
                self.published.clear()
                self.deleted.clear()
                self.by_author.clear()


class HomeListener(Listener):
    """Holds the newest posts of a home timeline: fetches them, applies every event, and fetches again on demand.

    `floor` is the oldest post that was fetched, or 0 if all were: older ones are on pages not fetched yet. `due` are
    the posts that a later fetch showed before the stream sent them. The stream must send them later, or announce that
    they or their authors are gone. Otherwise a fetch would hide events that the stream has lost.
    """

    field, query = "homeTimeline", HOME

    def __init__(self, person: Person) -> None:
        super().__init__(person.another())
        self.person = person
        self.held: dict[int, Shown] = {}
        self.due: dict[int, Shown] = {}
        self.floor = 0

    async def begin(self) -> None:
        """Fetch the timeline, and start after its `liveCursor`."""
        if self.cursor is None:
            self.held, self.cursor, self.floor = await home_of(self.client, FETCHED)

    async def take(self, event: Any) -> None:
        """Apply an event to the held posts, or fetch them again."""
        match event["__typename"]:
            case "PostAdded" | "RepostAdded":
                node = event["timelineEdge"]["node"]
                self.due.pop(number(node), None)
                if number(node) >= self.floor:
                    self.held[number(node)] = shown(node)
            case "PostRemoved" | "RepostRemoved":
                post = removed(event)
                self._drop(lambda number, each: post in (number, each.repeats))
            case "AuthorRemoved":
                user = decode(event["userId"]).numbers[0]
                self._drop(lambda _, each: each.author == user)
            case "AuthorHidden":
                user = decode(event["userId"]).numbers[0]
                self._drop(lambda _, each: concerns(each, user))
            case "AuthorAdded":
                user, before, floor = decode(event["userId"]).numbers[0], self.held, self.floor
                self.held, self.floor = await self._refetched()
                unsent = {post: each for post, each in self.held.items() if post not in before and post >= floor}
                due = (self.due | unsent).items()
                self.due = {post: each for post, each in due if post in self.held and not concerns(each, user)}
            case "Gap":
                (self.held, self.floor), self.due = await self._refetched(), {}

    def _drop(self, goes: Callable[[int, Shown], bool]) -> None:
        for posts in (self.held, self.due):
            for post in [post for post, each in posts.items() if goes(post, each)]:
                del posts[post]

    async def _refetched(self) -> tuple[dict[int, Shown], int]:
        held, _, floor = await home_of(self.client, FETCHED)
        return held, floor


class NotificationsListener(Listener):
    """Holds notifications by cursor: fetches them once, adds new ones, and fetches again if an event demands it."""

    field, query = "notifications", NOTIFICATIONS

    def __init__(self, person: Person) -> None:
        super().__init__(person.another())
        self.person = person
        self.held: dict[str, Notice] = {}
        self._ids: dict[str, str] = {}

    async def begin(self) -> None:
        """Fetch the notifications, and start after their `liveCursor`."""
        if self.cursor is None:
            edges, _, self.cursor = await notifications_of(self.client)
            self._hold(edges)

    async def take(self, event: Any) -> None:
        """Add a notification in its new place, or fetch all again."""
        match event["__typename"]:
            case "NotificationAdded":
                self._add(event["edge"])
            case "NotificationsChanged" | "Gap":
                self.held, self._ids = {}, {}
                self._hold((await notifications_of(self.client))[0])

    def _hold(self, edges: list[Any]) -> None:
        for edge in edges:
            self._add(edge)

    def _add(self, edge: Any) -> None:
        id_ = edge["node"]["id"]
        self.held.pop(self._ids.get(id_, ""), None)
        self._ids[id_], self.held[edge["cursor"]] = edge["cursor"], notice(edge["node"])


def removed(event: Any) -> int:
    """Return the number of the post or repost that an event removes."""
    return decode(event.get("postId") or event["repostId"]).numbers[0]


def concerns(post: Shown, user: int) -> bool:
    """Return whether a post, or the original of a plain repost, is by a user."""
    return post.author == user or (post.repeats is not None and post.repost_of_author == user)
