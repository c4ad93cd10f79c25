"""Couriers of sockets: results that are sent without waking the task of their subscription."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from graph.errors import StoreUnavailable
from graph.model import User
from server.operations.observation import Observation
from server.operations.subscriptions import StreamedResult
from tests.server.operations.readers import OWN, SHARED, Reader, Readers, data_of, fail_once, node, paused
from tests.support.graph_worlds import PATIENCE, befriend, counted


class Socket:
    """A socket and the task that reads its stream. `log` has the results of the client, and what sent each one."""

    def __init__(self) -> None:
        self.log: list[tuple[str, StreamedResult]] = []
        self.reads = True
        self.fails = False
        self._arrived = asyncio.Event()
        self.leave: Callable[[], object] = self.log.clear

    def send_now(self, payload: bytes) -> bool:
        """Send a result if the client is reading."""
        if self.fails:
            raise ZeroDivisionError("a bug")
        if self.reads:
            self._add("courier", StreamedResult(None, None, payload))  # type: ignore[arg-type]  # there is none
        return self.reads

    async def take_all(self, reader: Reader) -> None:
        """Record what the stream yields."""
        async for result in reader.results:
            self._add("task", result)

    def _add(self, by: str, result: StreamedResult) -> None:
        self.log.append((by, result))
        self._arrived.set()

    async def got(self, count: int) -> list[tuple[str, str]]:
        """Wait for results. Return what sent each one, and its text."""
        async with asyncio.timeout(PATIENCE):
            while len(self.log) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return [(by, node(result)["text"]) for by, result in self.log]


async def carried(readers: Readers, users: Sequence[User], document: str = SHARED) -> list[Socket]:
    """Subscribe with couriers, and wait until all subscriptions are live."""
    sockets = []
    for user in users:
        socket = Socket()
        reader = await readers.subscribe(user, document, socket.send_now)
        task = asyncio.create_task(socket.take_all(reader))
        readers.stack.push_async_callback(cancelled, task)
        socket.leave = task.cancel
        sockets.append(socket)
    async with asyncio.timeout(PATIENCE):
        while len(readers.graph.feed) < len(users):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.001)
    return sockets


async def cancelled(task: "asyncio.Task[None]") -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    await asyncio.wait([task])


async def friends(readers: Readers) -> tuple[User, User]:
    """Return an author and a follower."""
    author, bob = await readers.users("author", "bob")
    await befriend(readers.graph, bob.id, author.id)
    return author, bob


@pytest.mark.parametrize("count", [2, 20])
async def test_sockets_get_the_bytes_of_one_execution(readers: Readers, count: int) -> None:
    """A reader without a courier shares the execution and adds no round trip."""
    author, bob = await friends(readers)
    sockets = await carried(readers, [(author, bob)[n % 2] for n in range(count)])
    async with counted(readers.graph) as alone:
        await readers.graph.posts.publish(author.id, "first")
        for socket in sockets:
            assert await socket.got(1) == [("courier", "first")]
    reader = await readers.subscribe(bob)
    async with counted(readers.graph) as together:
        [told] = await readers.tell(author, [reader], "second")
        for socket in sockets:
            assert await socket.got(2) == [("courier", "first"), ("courier", "second")]
    assert {id(socket.log[1][1].payload) for socket in sockets} == {id(told.payload)}
    assert together.round_trips <= alone.round_trips


async def test_each_viewer_gets_what_depends_on_the_viewer(readers: Readers) -> None:
    """A change takes effect at the next event: nothing is kept from the previous one."""
    author, bob = await friends(readers)
    [carol] = await readers.users("carol")
    await befriend(readers.graph, carol.id, author.id)
    sockets = await carried(readers, [bob, carol], OWN)
    for count, state in ((1, "FOLLOWING"), (2, "MUTUAL")):
        await readers.graph.posts.publish(author.id, "hello")
        for socket in sockets:
            assert await socket.got(count) == [("courier", "hello")] * count
        told = [node(each.log[-1][1])["author"]["relationship"]["state"] for each in sockets]
        assert told == [state, "FOLLOWING"]
        await befriend(readers.graph, author.id, bob.id)


REPOSTS = SHARED.replace("... on", "... on RepostAdded { repost { post { text author { login } } } } ... on", 1)


async def test_reposts_are_carried_like_posts(readers: Readers) -> None:
    """They include the post that they show, which is looked up for each viewer."""
    author, bob = await friends(readers)
    [carol] = await readers.users("carol")
    post = await readers.graph.posts.publish(carol.id, "reposted")
    sockets = await carried(readers, [author, bob], REPOSTS)
    await readers.graph.reposts.repost(readers.graph.visibility.of(author.id), author.id, post.id)
    for socket in sockets:
        assert await socket.got(1) == [("courier", "reposted")]
    await readers.graph.posts.publish(author.id, "own")
    for socket in sockets:
        assert await socket.got(2) == [("courier", "reposted"), ("courier", "own")]


async def test_a_client_that_does_not_read_gets_the_result_from_the_task(readers: Readers) -> None:
    """The result is that of the same execution, and comes before later ones."""
    author, bob = await friends(readers)
    slow, other = await carried(readers, [author, bob])
    slow.reads = False
    await readers.graph.posts.publish(author.id, "first")
    assert await slow.got(1) == [("task", "first")]
    assert await other.got(1) == [("courier", "first")]
    assert slow.log[0][1].payload is other.log[0][1].payload
    slow.reads = True
    await readers.graph.posts.publish(author.id, "second")
    assert await slow.got(2) == [("task", "first"), ("courier", "second")]


async def test_a_result_that_could_not_be_sent_goes_to_the_task(
    readers: Readers, caplog: pytest.LogCaptureFixture
) -> None:
    author, bob = await friends(readers)
    broken, other = await carried(readers, [author, bob])
    broken.fails = True
    await readers.graph.posts.publish(author.id, "first")
    assert await broken.got(1) == [("task", "first")]
    assert await other.got(1) == [("courier", "first")]
    assert "could not be sent" in caplog.text


async def test_an_outage_is_reported_by_the_task(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client gets the error once, with its own request id, and without another execution."""
    author, bob = await friends(readers)
    sockets = await carried(readers, [author, bob])
    fail_once(monkeypatch, readers.graph, StoreUnavailable("a test"))
    await readers.graph.posts.publish(author.id, "first")
    for socket in sockets:
        async with asyncio.timeout(PATIENCE):
            while not socket.log:  # noqa: ASYNC110 - the texts of errors cannot be read
                await asyncio.sleep(0.001)
    found = [error.extensions or {} for each in sockets for error in each.log[0][1].result.errors or ()]
    assert [(error["code"], error["requestId"]) for error in found] == [
        ("STORE_UNAVAILABLE", "of author"),
        ("STORE_UNAVAILABLE", "of bob"),
    ]
    await readers.graph.posts.publish(author.id, "second")
    for socket in sockets:
        async with asyncio.timeout(PATIENCE):
            while len(socket.log) < 2:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.001)
        assert node(socket.log[1][1])["text"] == "second"


async def test_any_other_failure_leaves_each_client_to_itself(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    author, bob = await friends(readers)
    sockets = await carried(readers, [author, bob])
    fail_once(monkeypatch, readers.graph, ZeroDivisionError("a bug"))
    await readers.graph.posts.publish(author.id, "first")
    for socket in sockets:
        assert await socket.got(1) == [("task", "first")]
        assert socket.log[0][1].payload is None


async def test_clients_that_leave_take_nothing_from_the_others(readers: Readers) -> None:
    """The last one that leaves cancels the execution."""
    author, bob = await friends(readers)
    sockets = await carried(readers, [author, bob])
    async with paused(readers.execution) as pause:
        await readers.graph.posts.publish(author.id, "first")
        await pause.reached.wait()
        sockets[0].leave()
        await asyncio.sleep(0.01)
        assert not pause.cancelled
        pause.go_on.set()
        assert await sockets[1].got(1) == [("courier", "first")]
        assert sockets[0].log == []
    async with paused(readers.execution) as pause:
        await readers.graph.posts.publish(author.id, "second")
        await pause.reached.wait()
        sockets[1].leave()
        async with asyncio.timeout(PATIENCE):
            await pause.ended.wait()
        assert pause.cancelled


async def test_operations_without_a_group_have_no_courier(readers: Readers) -> None:
    """Selections below a value that depends on the viewer depend on the viewer too."""
    author, _ = await friends(readers)
    document = OWN.replace("author {", "quotedPost { viewerHasLiked } author {")
    [socket] = await carried(readers, [author], document)
    await readers.graph.posts.publish(author.id, "first")
    assert await socket.got(1) == [("task", "first")]


async def test_deliveries_are_counted_once(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not matter whether a courier or the task sends them."""
    counted_: list[Any] = []
    monkeypatch.setattr(Observation, "delivered", lambda self, event, live_from: counted_.append(event))
    author, bob = await friends(readers)
    sockets = await carried(readers, [author, bob])
    counted_.clear()
    sockets[0].reads = False
    await readers.graph.posts.publish(author.id, "first")
    for socket in sockets:
        await socket.got(1)
    async with asyncio.timeout(PATIENCE):
        while len(counted_) < 2:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    assert len(counted_) == 2


async def test_the_outcome_of_a_withheld_event_is_not_that_of_the_next(readers: Readers) -> None:
    """The client is not reading, and the task withholds the post: its author was blocked during the execution."""
    author, bob = await friends(readers)
    [socket] = await carried(readers, [bob])
    async with paused(readers.execution) as pause:
        await readers.graph.posts.publish(author.id, "first")
        await pause.reached.wait()
        await readers.graph.blocks.block(bob.id, author.id)
        async with asyncio.timeout(PATIENCE):
            while not readers.graph.feed._views._views[bob.id][0].exclusions.blocking:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.001)
        socket.reads = False
        pause.go_on.set()
        async with asyncio.timeout(PATIENCE):
            while not socket.log:  # noqa: ASYNC110 - this event has no text
                await asyncio.sleep(0.001)
    assert [data_of(result)["homeTimeline"] for _, result in socket.log] == [{"__typename": "AuthorHidden"}]


FOLLOWERS = """subscription {
  homeTimeline {
    __typename
    ... on PostAdded { post { text author { followers(first: 1) { pageInfo { startCursor } } } } }
    ... on AuthorRemoved { user { followers(first: 1) { pageInfo { startCursor } } } }
  }
}"""


async def test_what_a_shared_run_has_loaded_is_not_used_for_later_events(readers: Readers) -> None:
    """The task sends the second event: the viewer has unfollowed the author, whom another user now follows."""
    author, bob = await friends(readers)
    [carol] = await readers.users("carol")
    socket, _ = await carried(readers, [bob, author], FOLLOWERS)
    await readers.graph.posts.publish(author.id, "hello")
    assert await socket.got(1) == [("courier", "hello")]
    await befriend(readers.graph, carol.id, author.id)
    await readers.graph.follows.unfollow(bob.id, [author.id])
    async with asyncio.timeout(PATIENCE):
        while len(socket.log) < 2:  # noqa: ASYNC110 - this event has no text
            await asyncio.sleep(0.001)
    added, removed = node(socket.log[0][1])["author"], data_of(socket.log[1][1])["homeTimeline"]["user"]
    assert removed["followers"]["pageInfo"]["startCursor"] > added["followers"]["pageInfo"]["startCursor"]
