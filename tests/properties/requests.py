"""Requests: the actions of users on any process, while other operations run."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import rule

from graph import Graph, keys
from graph.model import Post
from tests.properties.archives import Database
from tests.properties.disasters import Disasters
from tests.properties.model import Operation
from tests.properties.processes import APIS, sign_up
from tests.properties.reading import whole_timeline

ALL_CALLS = 99

users = st.integers(0, 5)
authors = st.sampled_from((0, 0, 0, 1, 2))
pairs = st.tuples(users, st.sampled_from((0, 1)))
apis = st.sampled_from(APIS)
calls = st.sampled_from((ALL_CALLS, 0, 1, 2, 3, 4, 8))


class Requests(Disasters):
    """The part of the machine in which users send requests."""

    population: int
    sync: int

    def __init__(self, url: str, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(url, database, loop)
        self.texts = 0
        self.users: list[int] = []

    def user_at(self, index: int) -> int:
        """Return one of the users for any index."""
        return self.users[index % self.population]

    def graph_of(self, process: str) -> Graph:
        """Return the graph of a process."""
        return self.processes.graphs[process]

    def _launch(self, operation: Operation, work: Coroutine[Any, Any, Any], calls: int) -> None:
        async def perform() -> None:
            await self.processes.perform(operation, work)
            self.check_result(operation)

        self.run(self.processes.launch(operation, perform(), calls))

    def check_result(self, operation: Operation) -> None:
        """Check the result of an operation against the facts that were certain while it ran."""
        if operation.kind == "look" and operation.done:
            self.history.check_look(operation)
        if operation.kind == "read":
            self.history.check_home(operation, complete_fan_out=self.sync == 100)

    @rule(process=apis, author=authors, key=st.sampled_from((None, None, "k1", "k2")), calls=calls)
    def publish(self, process: str, author: int, key: str | None, calls: int) -> None:
        """An author publishes, perhaps with a repeated idempotency key and the same text."""
        self.texts += 1
        text = f"text {self.texts}" if key is None else f"text of {key}"
        user = self.user_at(author)
        operation = self.history.start(process, "publish", user, text)
        self._launch(operation, self.graph_of(process).posts.publish(user, text, idempotency_key=key), calls)

    @rule(process=apis, author=authors, about=st.lists(st.integers(0, 20), min_size=1, max_size=2), calls=calls)
    def answer(self, process: str, author: int, about: list[int], calls: int) -> None:
        """An author replies to a post, or replies to one and quotes another, perhaps while these are deleted."""
        published = [op.result for op in self.history.operations if op.kind == "publish" and op.done]
        if published:
            self.texts += 1
            text, user = f"answer {self.texts}", self.user_at(author)
            parent, *quoted = [published[target % len(published)].id for target in about]
            quote = quoted[0] if quoted else None
            operation = self.history.start(process, "publish", user, text)
            work = self.graph_of(process).posts.publish(user, text, reply_to=parent, quote_of=quote)
            self._launch(operation, work, calls)

    @rule(process=apis, pair=pairs, again=st.sampled_from((False, False, False, True)), calls=calls)
    def toggle_follow(self, process: str, pair: tuple[int, int], again: bool, calls: int) -> None:
        """A user follows or unfollows another user. Usually this changes the current state."""
        v, a = self.user_at(pair[0]), self.user_at(pair[0] + 1 + pair[1] % (self.population - 1))
        follows = self.raw.zscore(keys.following(v), str(a)) is not None
        kind = "unfollow" if follows is not again else "follow"
        work = getattr(self.graph_of(process).follows, kind)(v, [a])
        self._launch(self.history.start(process, kind, v, a), work, calls)

    @rule(process=apis, which=st.integers(0, 20), calls=calls)
    def delete(self, process: str, which: int, calls: int) -> None:
        """An author deletes a published post."""
        published = [op.result for op in self.history.operations if op.kind in ("publish", "repost") and op.done]
        if published:
            post = published[which % len(published)]
            work = self.graph_of(process).posts.delete(post.author, post.id)
            self._launch(self.history.start(process, "delete", post.id), work, calls)

    @rule(process=apis, viewer=users, size=st.sampled_from((1, 2, 7)), forward=st.booleans(), calls=calls)
    def read(self, process: str, viewer: int, size: int, forward: bool, calls: int) -> None:
        """A user reads a home timeline to its end, page by page, in one direction."""
        user = self.user_at(viewer)
        operation = self.history.start(process, "read", user)
        self._launch(operation, whole_timeline(self.graph_of(process), user, size, forward=forward), calls)

    @rule(process=apis, viewer=users, again=st.integers(1, 3), calls=calls)
    def look(self, process: str, viewer: int, again: int, calls: int) -> None:
        """A user looks up all posts and users, several times in one request. The near cache checks what it returns."""
        user = self.user_at(viewer)
        posts = [op.result.id for op in self.history.operations if op.kind == "publish" and op.done]
        operation = self.history.start(process, "look", user)
        self._launch(operation, look_around(self.graph_of(process), user, posts, self.users, again), calls)

    @rule(process=apis, name=st.integers(0, 1), calls=calls)
    def sign_up(self, process: str, name: int, calls: int) -> None:
        """A client signs up. Several sign-ups compete for the same login."""
        self.texts += 1
        work = sign_up(self.graph_of(process), f"new{name}", f"nonce {self.texts}", f"hash {self.texts}")
        self._launch(self.history.start(process, "sign up"), work, calls)


async def look_around(graph: Graph, viewer: int, posts: Sequence[int], users: Sequence[int], again: int) -> list[Post]:
    """Return the posts that a viewer sees in a request, which also looks at users and counts."""
    moment = graph.store.begin()
    view = graph.visibility.of(viewer, moment)
    seen: list[Post | None] = []
    for _ in range(again):
        seen = await graph.posts.get_many(view, posts)
        for look_up in (graph.users.get_many, graph.users.followers_counts, graph.users.following_counts):
            await look_up(users, moment)
        await graph.users.posts_counts(users, moment)
    return [post for post in seen if post is not None]
