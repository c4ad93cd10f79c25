"""Guesses about a deleted post: nothing tells a right guess from a wrong one.

Each test runs many filters, some of which match what the deleted post said or where it was written, and compares all
that a client could observe: the updates, their cursors, the round trips to the store and the commands in them.
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
from graph.feed.updates import Checkpoint, PostDeleted, PostPublished
from graph.log.events import PostDeleted as LoggedDeletion
from graph.model import MAX_NUMBER, Location
from graph.store.commands import Command
from resolvers import ids
from resolvers.context import Context
from schema import schema
from tests.conftest import CHEAP
from tests.graph.feed.filtering import published
from tests.graph.feed.watching import feed_of
from tests.support.graph_worlds import PATIENCE, people, posts
from tests.support.stores import HookedStore, Stop, runs, sends

SECRET = "The password of the vault is rosebud 北京下雨"
PLACE = Location(52.51631, 13.37771)
RIGHT_WORDS = ("password", "vault", "rosebud", "PASSWORD vault", "the rosebud", "北京", "下雨", "京下雨", "of 北京下雨")
OTHERS_AT = (("rain in Rome", Location(41.9, 12.5)), ("sun 上海", Location(31.2, 121.5)), ("nothing", None))
Seen = list[tuple[str, int, int]]


@dataclass(frozen=True)
class Grave:
    """A deleted post among others: numbers of the log before it, of it, and of its deletion."""

    author: int
    before: int
    post: int
    deletion: int


@dataclass
class Observation:
    """What a client sees of one stream until it is live, and what the server asked the store for it."""

    seen: Seen
    exchanges: list[list[str]]


def boxes() -> list[Box]:
    """Close in on the place digit by digit, and on others as closely."""
    found = []
    for latitude, longitude in ((PLACE.latitude, PLACE.longitude), (-12.34567, 98.76543), (60.00001, -20.00001)):
        for digits in range(6):
            size = 10.0**-digits
            south, west = round(latitude - latitude % size, 6), round(longitude - longitude % size, 6)
            found += [Box(south + dy * size, west, south + (dy + 1) * size, west + size) for dy in (-1, 0, 1)]
    return found


def guesses(count: int, author: int) -> list[EventFilter]:
    """Make so many filters: words of a dictionary that has the right ones, boxes, and both with what is public."""
    words = [*RIGHT_WORDS, *(f"wrong{n} 深圳{chr(0x5000 + n)}" for n in range(count))]
    places = boxes()
    found = [EventFilter.of(within=box) for box in places]
    for n, word in enumerate(words):
        guess = EventFilter.of(keywords=[word])
        found += [guess, replace(guess, within=places[n % len(places)])]
        found += [replace(guess, users=(author,)), replace(guess, sample=0.5)]
        found += [replace(guess, kinds=frozenset({EventKind.POST_PUBLISHED}))]
        if len(found) >= count:
            break
    return found[:count]


def public(guess: EventFilter) -> tuple[object, ...]:
    """Leave of a filter only what is not a guess."""
    return guess.users, guess.sample, guess.kinds


def is_right(guess: EventFilter, grave: Grave) -> bool:
    """Tell whether the post would have passed the filter."""
    place = (PLACE.latitude, PLACE.longitude)
    return guess.matches(published(SECRET, author=grave.author, at=place, number=grave.post))


async def bury(graph: Graph) -> Grave:
    """Publish the secret among a few hundred other posts, and delete it."""
    [alice] = await people(graph, "alice")
    for _ in range(60):
        for text, place in OTHERS_AT:
            await graph.posts.publish(alice, text, location=place)
    before = await graph.log.last()
    secret = await graph.posts.publish(alice, SECRET, location=PLACE)
    await posts(graph, alice, *["no matter"] * 30)
    await graph.posts.delete(alice, secret.id)
    deletion = await graph.log.last()
    await posts(graph, alice, *["no matter"] * 30)
    return Grave(alice, before, secret.id, deletion)


class Spy:
    """Writes down what the store is asked, apart from what the reader of the log asks by itself."""

    def __init__(self, graph: Graph) -> None:
        assert isinstance(graph.store, HookedStore)
        self.exchanges: list[list[str]] = []
        self._own = [sends("XREAD"), sends("GET", "{log}:trimmed"), runs("last_number")]
        graph.store.before.append(self._hook)

    async def _hook(self, commands: Sequence[Command]) -> None:
        asked = [repr(command) for command in commands if not any(own(command) for own in self._own)]
        if asked:
            self.exchanges.append(asked)


def glimpse(update: Any) -> tuple[str, int, int]:
    """Give what a client sees of an update, but for the time of checkpoints."""
    number = update.post.id if isinstance(update, PostPublished) else getattr(update, "post", 0)
    return type(update).__name__, update.number, number


async def observe(feed: Feed, spy: Spy, guess: EventFilter, after: int | None) -> Observation:
    """Subscribe until the stream is live and has nothing to tell."""
    spy.exchanges = []
    seen: Seen = []
    async with aclosing(feed.events(guess, after)) as stream, asyncio.timeout(PATIENCE):
        while True:
            step = asyncio.ensure_future(anext(stream))
            while not step.done() and not len(feed):  # noqa: ASYNC110 - what tests wait for tells nobody
                await asyncio.sleep(0.0005)
            if not step.done():
                step.cancel()
                await asyncio.wait([step])
                return Observation(seen, spy.exchanges)
            seen.append(glimpse(step.result()))


def assert_alike(observed: Iterable[tuple[EventFilter, Observation]]) -> None:
    """See that filters which differ in their guess alone were answered alike."""
    answers: dict[tuple[object, ...], tuple[EventFilter, Observation]] = {}
    for guess, observation in observed:
        other, expected = answers.setdefault(public(guess), (guess, observation))
        assert observation == expected, f"{guess} is told from {other}"


@asynccontextmanager
async def spied(store_url: str) -> AsyncIterator[tuple[Graph, Feed, Spy]]:
    """Run a process whose reader is at the end of the log."""
    graph = await Graph.open(store_url, CHEAP, partial(HookedStore, single_slot=True))
    try:
        async with feed_of(graph, quiet=60) as feed:
            await feed._reader.ready()
            yield graph, feed, Spy(graph)
    finally:
        await graph.close()


FORMS: dict[str, Callable[[Grave], int | None]] = {
    "an old cursor": lambda grave: grave.before,
    "a cursor just before the post": lambda grave: grave.post - 1,
    "the post as a cursor": lambda grave: grave.post,
    "a cursor just before the deletion": lambda grave: grave.deletion - 1,
    "a cursor behind the log": lambda grave: MAX_NUMBER,
    "no cursor": lambda grave: None,
}


@pytest.mark.parametrize("tidied", [False, True], ids=["just deleted", "tidied up"])
@pytest.mark.parametrize("form", FORMS)
async def test_guesses_about_a_deleted_post_learn_nothing(
    form: str, tidied: bool, graph: Graph, store_url: str
) -> None:
    """From a cursor of the client's choice, whether the event of the post is still in the log or not."""
    grave = await bury(graph)
    if tidied:
        await graph.worker().drain()
        await graph.housekeeping.tidy()
    tried = guesses(90, grave.author)
    assert 10 < sum(is_right(guess, grave) for guess in tried) < 60
    async with spied(store_url) as (_, feed, spy):
        observed = [(guess, await observe(feed, spy, guess, FORMS[form](grave))) for guess in tried]
    assert_alike(observed)
    assert not any(number == grave.post and kind == "PostPublished" for _, o in observed for kind, _, number in o.seen)


@pytest.mark.parametrize("recent", [5000, 1], ids=["from memory", "from the log"])
async def test_resuming_from_the_cursor_of_any_event_learns_nothing(
    recent: int, graph: Graph, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every cursor that was given is tried with every guess."""
    monkeypatch.setattr("graph.feed.reader.MAX_RECENT", recent)
    grave = await bury(graph)
    tried = guesses(60, grave.author)
    async with spied(store_url) as (_, feed, spy):
        first = await observe(feed, spy, tried[0], grave.before)
        assert any("XRANGE" in command for asked in first.exchanges for command in asked) == (recent == 1)
        for cursor in {number for _, number, _ in first.seen}:
            assert_alike([(guess, await observe(feed, spy, guess, cursor)) for guess in tried])


async def test_a_reader_behind_the_log_answers_no_guess(graph: Graph, store_url: str) -> None:
    """The deletion is in the log when the guesses begin, and new to the process that they are made at."""
    [alice] = await people(graph, "alice")
    async with spied(store_url) as (process, feed, _):
        stop = Stop(process.store, sends("XREAD"))
        feed._reader.start()
        await asyncio.wait_for(stop.reached.wait(), PATIENCE)
        secret = await graph.posts.publish(alice, SECRET, location=PLACE)
        await graph.posts.delete(alice, secret.id)
        tried = guesses(200, alice)
        streams = [feed.events(guess) for guess in tried]
        for stream in streams:
            assert isinstance(await anext(stream), Checkpoint)
        waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0.05)
        stop.resume()
        telling = [step for step, guess in zip(waiting, tried, strict=True) if has_deletion(guess, secret.id)]
        await asyncio.wait_for(asyncio.gather(*telling), PATIENCE)
        told = Counter((public(guess), _told(step)) for guess, step in zip(tried, waiting, strict=True))
        for step in waiting:
            step.cancel()
        await asyncio.wait(waiting)
        for stream in streams:
            await stream.aclose()
    assert len(told) == len({public(guess) for guess in tried})
    assert {what for _, what in told} <= {("PostDeleted", secret.id), None}


def has_deletion(guess: EventFilter, post: int) -> bool:
    """Tell whether the filter lets the deletion of a post pass, whatever the post said."""
    return guess.kinds is None and (guess.sample is None or share_of(post) < guess.sample)


def _told(step: "asyncio.Future[Any]") -> tuple[str, int] | None:
    if not step.done():
        return None
    update = step.result()
    return type(update).__name__, update.post


async def test_whoever_listened_while_the_post_was_public_hears_of_its_end(graph: Graph, store_url: str) -> None:
    """Exactly those with the words: the observation above is able to tell them apart, and they could read the post."""
    [alice] = await people(graph, "alice")
    secret = await graph.posts.publish(alice, SECRET, location=PLACE)
    right, wrong = EventFilter.of(keywords=["rosebud"]), EventFilter.of(keywords=["thorn"])
    async with (
        spied(store_url) as (_, feed, _),
        aclosing(feed.events(right)) as one,
        aclosing(feed.events(wrong)) as two,
    ):
        for stream in (one, two):
            assert isinstance(await anext(stream), Checkpoint)
        steps = [asyncio.ensure_future(anext(stream)) for stream in (one, two)]
        async with asyncio.timeout(PATIENCE):
            while len(feed) < 2:  # noqa: ASYNC110 - what tests wait for tells nobody
                await asyncio.sleep(0.001)
            await graph.posts.delete(alice, secret.id)
            update = await steps[0]
        assert isinstance(update, PostDeleted)
        assert update.post == secret.id
        assert not steps[1].done()
        steps[1].cancel()
        await asyncio.wait(steps)


async def test_deletions_that_race_are_one(graph: Graph, store_url: str) -> None:
    """The second would be matched by its words for streams that began after the first."""
    [alice] = await people(graph, "alice")
    [post] = await posts(graph, alice, SECRET)
    tab = await Graph.open(store_url, CHEAP, partial(HookedStore, single_slot=True))
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
    assert [event.body.post for event in events if isinstance(event.body, LoggedDeletion)] == [post]


async def test_a_deleted_post_answers_like_one_that_never_was(graph: Graph) -> None:
    """To look-ups by id, to deleting, and to an update that names it."""
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
