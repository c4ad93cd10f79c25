"""Attacks with guesses about a deleted post: right and wrong guesses get the same answers.

Each test runs many filters, some of which match the content or the place of the deleted post, and compares everything
that a client can observe: the updates, their cursors, the round trips to the store and the commands in them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.feed.feed import Feed
from graph.feed.filters import Box, EventFilter, EventKind, share_of
from graph.feed.updates import Checkpoint, PostAdded, PostRemoved
from graph.log.events import PostDeleted
from graph.model import MAX_NUMBER, Location
from graph.store.commands import Command
from resolvers import ids
from resolvers.context import Context
from schema import schema
from tests.conftest import CHEAP
from tests.graph.feed.filtering import published
from tests.graph.feed.watching import feed_of
from tests.support.graph_worlds import PATIENCE, archive_log, people, posts
from tests.support.graphs import open_graph
from tests.support.stores import HookedStore, Stop, runs, sends

pytestmark = pytest.mark.slow

SECRET = "The password of the vault is rosebud 北京下雨"
PLACE = Location(52.51631, 13.37771)
RIGHT_WORDS = ("password", "vault", "rosebud", "PASSWORD vault", "the rosebud", "北京", "下雨", "京下雨", "of 北京下雨")
OTHERS_AT = (("rain in Rome", Location(41.9, 12.5)), ("sun 上海", Location(31.2, 121.5)), ("nothing", None))
Seen = list[tuple[str, int, int]]


@dataclass(frozen=True)
class DeletedPost:
    """The numbers of a deleted post, of its deletion and of its author, and the end of the log before the post."""

    author: int
    before: int
    post: int
    deletion: int


@dataclass
class Observation:
    """What a client sees of one stream until it is live, and what the server requests from the store for it."""

    seen: Seen
    exchanges: list[list[str]]


def boxes() -> list[Box]:
    """Return boxes around the place and around two others, from large to small."""
    found = []
    for latitude, longitude in ((PLACE.latitude, PLACE.longitude), (-12.34567, 98.76543), (60.00001, -20.00001)):
        for digits in range(6):
            size = 10.0**-digits
            south, west = round(latitude - latitude % size, 6), round(longitude - longitude % size, 6)
            found += [Box(south + dy * size, west, south + (dy + 1) * size, west + size) for dy in (-1, 0, 1)]
    return found


def guesses(count: int, author: int) -> list[EventFilter]:
    """Return `count` filters: by words, some of them right, by boxes, and by both with public criteria."""
    words = [*RIGHT_WORDS, *(f"wrong{n} 深圳{chr(0x5000 + n)}" for n in range(count))]
    places = boxes()
    found = [EventFilter.of(within=box) for box in places]
    for n, word in enumerate(words):
        guess = EventFilter.of(keywords=[word])
        found += [guess, replace(guess, within=places[n % len(places)])]
        found += [replace(guess, users=(author,)), replace(guess, sample=0.5)]
        found += [replace(guess, kinds=frozenset({EventKind.POST_ADDED}))]
        if len(found) >= count:
            break
    return found[:count]


def public(guess: EventFilter) -> tuple[object, ...]:
    """Return the criteria of a filter that are not guesses."""
    return guess.users, guess.sample, guess.kinds


def is_right(guess: EventFilter, secret_post: DeletedPost) -> bool:
    """Return True if the post matched the filter."""
    place = (PLACE.latitude, PLACE.longitude)
    return guess.matches(published(SECRET, author=secret_post.author, at=place, number=secret_post.post))


async def delete_secret(graph: Graph) -> DeletedPost:
    """Publish the secret among other posts, and delete it."""
    [alice] = await people(graph, "alice")
    for _ in range(15):
        for text, place in OTHERS_AT:
            await graph.posts.publish(alice, text, location=place)
    before = await graph.log.last()
    secret = await graph.posts.publish(alice, SECRET, location=PLACE)
    await posts(graph, alice, *["no matter"] * 8)
    await graph.posts.delete(alice, secret.id)
    deletion = await graph.log.last()
    await posts(graph, alice, *["no matter"] * 8)
    return DeletedPost(alice, before, secret.id, deletion)


class StoreLog:
    """Records the commands sent to the store, except those of the log reader and those that read watermarks."""

    def __init__(self, graph: Graph) -> None:
        assert isinstance(graph.store, HookedStore)
        self.exchanges: list[list[str]] = []
        marks = [sends("GET", f"{{log}}:{name}") for name in ("trimmed", "watermark", "archived")]
        self._own = [runs("last_number"), *marks]
        graph.store.before.append(self._hook)

    async def _hook(self, commands: Sequence[Command]) -> None:
        if any(command[0] == "XREAD" for command in commands):
            return
        asked = [repr(command) for command in commands if not any(own(command) for own in self._own)]
        if asked:
            self.exchanges.append(asked)


def seen_of(update: Any) -> tuple[str, int, int]:
    """Return what a client sees of an update, without the time of checkpoints."""
    number = update.post.id if isinstance(update, PostAdded) else getattr(update, "post", 0)
    return type(update).__name__, update.number, number


async def observe(feed: Feed, store_log: StoreLog, guess: EventFilter, after: int | None) -> Observation:
    """Subscribe until the stream is live and has no more updates."""
    store_log.exchanges = []
    seen: Seen = []
    async with aclosing(feed.events(None, guess, after)) as stream, asyncio.timeout(PATIENCE):
        while True:
            step = asyncio.ensure_future(anext(stream))
            while not step.done() and not len(feed):  # noqa: ASYNC110 - nothing signals this
                await asyncio.sleep(0.0005)
            if not step.done():
                step.cancel()
                await asyncio.wait([step])
                return Observation(seen, store_log.exchanges)
            seen.append(seen_of(step.result()))


def assert_alike(observed: Iterable[tuple[EventFilter, Observation]]) -> None:
    """Assert that filters with the same public criteria got the same answers."""
    answers: dict[tuple[object, ...], tuple[EventFilter, Observation]] = {}
    for guess, observation in observed:
        other, expected = answers.setdefault(public(guess), (guess, observation))
        assert observation == expected, f"{guess} is answered differently from {other}"


@asynccontextmanager
async def recorded(store_url: str) -> AsyncIterator[tuple[Graph, Feed, StoreLog]]:
    """Run a process that has read the suspensions, and whose reader is at the end of the log."""
    graph = await open_graph(store_url, CHEAP, partial(HookedStore, single_slot=True))
    try:
        async with feed_of(graph, checkpoint_seconds=60) as feed:
            await feed._reader.ready()
            await graph.visibility.of(None).suspended([1])
            yield graph, feed, StoreLog(graph)
    finally:
        await graph.close()


FORMS: dict[str, Callable[[DeletedPost], int | None]] = {
    "an old cursor": lambda secret_post: secret_post.before,
    "a cursor just before the post": lambda secret_post: secret_post.post - 1,
    "the post as a cursor": lambda secret_post: secret_post.post,
    "a cursor just before the deletion": lambda secret_post: secret_post.deletion - 1,
    "a cursor behind the log": lambda secret_post: MAX_NUMBER,
    "no cursor": lambda secret_post: None,
}


@pytest.mark.parametrize("tidied", [False, True], ids=["just deleted", "tidied up"])
@pytest.mark.parametrize("form", FORMS)
async def test_guesses_about_a_deleted_post_are_answered_alike(
    form: str, tidied: bool, graph: Graph, store_url: str
) -> None:
    """This holds for any cursor, whether or not the event of the post is still in the log."""
    secret_post = await delete_secret(graph)
    if tidied:
        await graph.worker().drain()
        await archive_log(graph)
        await graph.housekeeping.tidy()
    tried = guesses(90, secret_post.author)[::2]
    assert 10 < sum(is_right(guess, secret_post) for guess in tried) < len(tried) - 10
    async with recorded(store_url) as (_, feed, store_log):
        observed = [(guess, await observe(feed, store_log, guess, FORMS[form](secret_post))) for guess in tried]
    assert_alike(observed)
    seen = [(kind, number) for _, observation in observed for kind, _, number in observation.seen]
    assert ("PostAdded", secret_post.post) not in seen


@pytest.mark.parametrize("recent", [5000, 1], ids=["from memory", "from the log"])
async def test_guesses_from_the_cursor_of_any_update_are_answered_alike(
    recent: int, graph: Graph, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.feed.reader.MAX_RECENT", recent)
    secret_post = await delete_secret(graph)
    tried = guesses(90, secret_post.author)[::3]
    async with recorded(store_url) as (_, feed, store_log):
        first = await observe(feed, store_log, tried[0], secret_post.before)
        assert any("XRANGE" in command for asked in first.exchanges for command in asked) == (recent == 1)
        for cursor in {number for _, number, _ in first.seen}:
            assert_alike([(guess, await observe(feed, store_log, guess, cursor)) for guess in tried])


async def test_guesses_are_answered_alike_if_the_reader_is_behind_the_log(graph: Graph, store_url: str) -> None:
    """The deletion is in the log when the streams begin, but the reader has not read it."""
    [alice] = await people(graph, "alice")
    async with recorded(store_url) as (process, feed, _):
        stop = Stop(process.store, sends("XREAD"))
        feed._reader.start()
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        secret = await graph.posts.publish(alice, SECRET, location=PLACE)
        await graph.posts.delete(alice, secret.id)
        tried = guesses(100, alice)
        streams = [feed.events(None, guess) for guess in tried]
        for stream in streams:
            assert isinstance(await anext(stream), Checkpoint)
        waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0.05)
        stop.resume()
        expected = [step for step, guess in zip(waiting, tried, strict=True) if has_deletion(guess, secret.id)]
        await asyncio.wait_for(asyncio.gather(*expected), PATIENCE)
        received = Counter((public(guess), _received(step)) for guess, step in zip(tried, waiting, strict=True))
        for step in waiting:
            step.cancel()
        await asyncio.wait(waiting)
        for stream in streams:
            await stream.aclose()
    assert len(received) == len({public(guess) for guess in tried})
    assert {what for _, what in received} <= {("PostRemoved", secret.id), None}


def has_deletion(guess: EventFilter, post: int) -> bool:
    """Return True if the deletion of a post matches the filter, whatever the content of the post is."""
    return guess.kinds is None and (guess.sample is None or share_of(post) < guess.sample)


def _received(step: "asyncio.Future[Any]") -> tuple[str, int] | None:
    if not step.done():
        return None
    update = step.result()
    return type(update).__name__, update.post


async def test_live_streams_get_deletions_by_the_content_of_the_post(graph: Graph, store_url: str) -> None:
    """Live streams could have read the post. This also shows that the observation distinguishes filters."""
    [alice] = await people(graph, "alice")
    secret = await graph.posts.publish(alice, SECRET, location=PLACE)
    right, wrong = EventFilter.of(keywords=["rosebud"]), EventFilter.of(keywords=["thorn"])
    async with (
        recorded(store_url) as (_, feed, _),
        aclosing(feed.events(None, right)) as one,
        aclosing(feed.events(None, wrong)) as two,
    ):
        for stream in (one, two):
            assert isinstance(await anext(stream), Checkpoint)
        steps = [asyncio.ensure_future(anext(stream)) for stream in (one, two)]
        async with asyncio.timeout(PATIENCE):
            while len(feed) < 2:  # noqa: ASYNC110 - nothing signals this
                await asyncio.sleep(0.001)
            await graph.posts.delete(alice, secret.id)
            update = await steps[0]
        assert isinstance(update, PostRemoved)
        assert update.post == secret.id
        assert not steps[1].done()
        steps[1].cancel()
        await asyncio.wait(steps)


async def test_concurrent_deletions_are_one_event(graph: Graph, store_url: str) -> None:
    """Otherwise, a stream that began after the first event would match a second one by the words of the post."""
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, SECRET)
    tab = await open_graph(store_url, CHEAP, partial(HookedStore, single_slot=True))
    try:
        stop = Stop(tab.store, runs("append"))
        late = asyncio.ensure_future(tab.posts.delete(alice, post))
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        await graph.posts.delete(alice, post)
        stop.resume()
        await late
    finally:
        await tab.close()
    events = [event async for event in graph.log.replay(post, await graph.log.last())]
    assert [event.body.post for event in events if isinstance(event.body, PostDeleted)] == [post]


async def test_a_deleted_post_is_answered_like_one_that_never_existed(graph: Graph) -> None:
    """The answers are the same in queries by id, deletions, and attempts by other users."""
    alice, bob = await people(graph, "alice", "bob")
    [gone] = await posts(graph, alice, SECRET)
    await graph.posts.delete(alice, gone)
    for number in (gone, gone + 1):
        context = Context(graph, None, lambda session: "")
        result = await schema.execute(
            "query ($id: ID!) { node(id: $id) { __typename id } }",
            {"id": ids.encode(ids.Kind.POST, number)},
            context_value=context,
        )
        assert (result.data, result.errors) == ({"node": None}, None)
        with pytest.raises(Rejected) as rejected:
            await graph.posts.delete(bob, number)
        assert [problem.code for problem in rejected.value.problems] == [ProblemCode.NOT_FOUND]
