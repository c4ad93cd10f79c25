"""Clients of streams that follow the documentation: they resume after a disconnect, and fetch again after a `Gap`."""

import asyncio
import random
from collections import Counter
from typing import Any

import httpx

from tests.faults.checker.person import Person, Refused
from tests.faults.checker.reading import home_of
from tests.server.conftest import events

EVENTS = """subscription ($users: [ID!]!) { events(filter: {users: $users}) { __typename cursor
  ... on PostPublished { post { id text author { id } } } ... on PostDeleted { postId }
  ... on UserFollowed { follower { id } followee { id } } ... on UserUnfollowed { follower { id } followee { id } }
  ... on Gap { reason } } }"""
HOME = """subscription { homeTimeline { __typename cursor
  ... on PostAdded { edge { node { id author { id } } } } ... on PostRemoved { postId }
  ... on AuthorAdded { user { id } } ... on AuthorRemoved { user { id } } ... on Gap { reason } } }"""
SILENCE = 30.0  # seconds without data, after which a connection counts as lost


class Listener:
    """A subscription over server-sent events that resumes until it is stopped."""

    field = ""
    query = ""

    def __init__(self, person: Person, **variables: Any) -> None:
        self.person = person
        self.cursor: str | None = None
        self.connected = asyncio.Event()
        self.gaps: list[str] = []
        self._variables = variables

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
        headers = {"accept": "text/event-stream", "authorization": f"Bearer {self.person.token}"}
        if self.cursor:
            headers["last-event-id"] = self.cursor
        body = {"query": self.query, "variables": self._variables}
        async with (
            httpx.AsyncClient(base_url=self.person.url, timeout=SILENCE) as client,
            client.stream("POST", "/graphql", json=body, headers=headers) as response,
        ):
            if response.status_code != 200:
                return
            self.connected.set()
            async for sent in events(response):
                if sent.name != "next" or sent.data.get("errors"):
                    return
                event = sent.data["data"][self.field]
                if event["__typename"] == "Gap":
                    self.gaps.append(event["reason"])
                await self.take(event)
                self.cursor = event["cursor"]


class EventsListener(Listener):
    """Collects all events of users: posts and deletions, with their number since the last `Gap`, and follows."""

    field, query = "events", EVENTS

    def __init__(self, person: Person, users: list[str]) -> None:
        super().__init__(person, users=users)
        self.published: Counter[str] = Counter()
        self.deleted: Counter[str] = Counter()
        self.follows: set[tuple[str, str]] = set()
        self.by_author: dict[str, list[str]] = {}

    async def begin(self) -> None:
        """Start after the `liveCursor` of a page."""
        if self.cursor is None:
            _, self.cursor = await home_of(self.person)

    async def take(self, event: Any) -> None:
        """Collect an event."""
        match event["__typename"]:
            case "PostPublished":
                self.published[event["post"]["id"]] += 1
                self.by_author.setdefault(event["post"]["author"]["id"], []).append(event["post"]["id"])
            case "PostDeleted":
                self.deleted[event["postId"]] += 1
            case "UserFollowed":
                self.follows.add((event["follower"]["id"], event["followee"]["id"]))
            case "UserUnfollowed":
                self.follows.discard((event["follower"]["id"], event["followee"]["id"]))
            case "Gap":  # the client fetches its page again, so later events may repeat earlier ones
                self.published.clear()
                self.deleted.clear()


class HomeListener(Listener):
    """Holds a home timeline: fetches it once, applies every event, and fetches it again if an event demands it.

    `due` are the posts that a later fetch showed before the stream sent them. The stream must send them later, or
    announce that they or their authors are gone. Otherwise a fetch would hide events that the stream has lost.
    """

    field, query = "homeTimeline", HOME

    def __init__(self, person: Person) -> None:
        super().__init__(person)
        self.held: dict[str, str] = {}
        self.due: dict[str, str] = {}

    async def begin(self) -> None:
        """Fetch the timeline, and start after its `liveCursor`."""
        if self.cursor is None:
            self.held, self.cursor = await home_of(self.person)

    async def take(self, event: Any) -> None:
        """Apply an event to the held posts, or fetch them again."""
        match event["__typename"]:
            case "PostAdded":
                post = event["edge"]["node"]
                self.held[post["id"]] = post["author"]["id"]
                self.due.pop(post["id"], None)
            case "PostRemoved":
                self.held.pop(event["postId"], None)
                self.due.pop(event["postId"], None)
            case "AuthorRemoved":
                self.held, self.due = (_without(event["user"]["id"], posts) for posts in (self.held, self.due))
            case "AuthorAdded":
                before, self.held = self.held, await self._refetched()
                unsent = {post: author for post, author in self.held.items() if post not in before}
                self.due = _without(event["user"]["id"], unsent)
            case "Gap":
                self.held, self.due = await self._refetched(), {}

    async def _refetched(self) -> dict[str, str]:
        while True:
            try:
                return (await home_of(self.person))[0]
            except (httpx.TransportError, Refused):
                await asyncio.sleep(0.1)


def _without(author: str, posts: dict[str, str]) -> dict[str, str]:
    return {post: each for post, each in posts.items() if each != author}
