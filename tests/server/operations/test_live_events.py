"""Events of many streams of one viewer: what they look up, what they cost, and how they wait."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from graph import Graph
from graph.archive.usage import USAGE
from graph.feed import combined_stream
from graph.log.events import PostPublished
from graph.model import User
from graph.store.near_cache import Moment
from resolvers import ids
from server.operations.live_events import AT_ONCE, STARTS, EventTurns
from server.operations.quotas import CHECKPOINT, DELIVERY, EventPoints, share
from server.settings import Settings
from tests.server.conftest import Clock, until
from tests.server.operations.readers import OWN, SHARED, Reader, Readers, data_of, node
from tests.support.graph_worlds import PATIENCE, befriend, counted

NOTIFIED = """subscription { notifications { __typename ... on NotificationAdded {
  ALIAS: cursor
  edge { node {
    actorsCount actors(limit: 10) { login name } ... on PostNotification { post { text author { name } } }
  } }
  feed { unreadCount entries(first: 10) { nodes { id } } }
} } }"""
THREAD = """subscription ($postId: ID!) { thread(postId: $postId) {
  ... on PostChanged { post { likesCount repliesCount } } ... on ReplyAdded { reply { text } }
} }"""
STREAMS = 20


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combined_stream, "SEND_SECONDS", 0.2)


@pytest.fixture
def _one_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make streams share an alarm even if the machine is so busy that they receive the event more than 10 ms apart."""
    monkeypatch.setattr(combined_stream, "EARLY_SECONDS", PATIENCE)


@pytest.fixture
async def charged(graph: Graph, settings: Settings) -> AsyncIterator[Readers]:
    """Return readers in a process that limits rates."""
    limited = settings.model_copy(update={"rate_limits": True})
    async with AsyncExitStack() as stack:
        yield Readers(graph, limited, stack)


def points_of(readers: Readers) -> EventPoints:
    points = readers.quotas.event_points
    assert points is not None
    return points


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the points that holders spend on events."""
    found, charge = Counter[str](), EventPoints.charge

    def charge_and_count(points: EventPoints, holder: str, amount: int) -> None:
        found[holder] += amount
        charge(points, holder, amount)

    monkeypatch.setattr(EventPoints, "charge", charge_and_count)
    return found


def under_aliases(document: str, count: int) -> list[str]:
    """Return documents that select the same fields under different aliases."""
    return [document.replace("text", f"a{at}: text").replace("ALIAS", f"a{at}") for at in range(count)]


async def replies(readers: Readers, author: User, post: int, streams: Sequence[Reader]) -> list[Any]:
    """Reply to a post, and return the data that each stream of its author gets."""
    waiting = [asyncio.create_task(stream.next()) for stream in streams]
    await asyncio.sleep(0)
    await readers.graph.posts.publish(author.id, "a reply", reply_to=post)
    return [data_of(each)["notifications"] for each in await asyncio.gather(*waiting)]


async def settle(readers: Readers, clock: Clock) -> None:
    """Let the worker finish, and let streams of notifications send again."""
    await readers.graph.worker().drain()
    clock.advance(1)


@pytest.mark.usefixtures("_one_alarm")
async def test_notifications_are_read_once_for_all_streams_of_a_viewer(readers: Readers, clock: Clock) -> None:
    """Twenty streams that select the same fields under different aliases take as many commands as one."""
    alice, bob = await readers.users("alice", "bob")
    post = await readers.graph.posts.publish(alice.id, "hello")
    documents = under_aliases(NOTIFIED, STREAMS)
    several = [await readers.subscribe(alice, documents[0])]
    await replies(readers, bob, post.id, several)
    await settle(readers, clock)
    async with counted(readers.graph) as alone:
        await replies(readers, bob, post.id, several)
    several += [await readers.subscribe(alice, document) for document in documents[1:]]
    await settle(readers, clock)
    async with counted(readers.graph) as together:
        told = await replies(readers, bob, post.id, several)
    assert {each["feed"]["unreadCount"] for each in told} == {3}
    assert [f"a{at}" in each for at, each in enumerate(told)] == [True] * STREAMS
    assert together.commands <= alone.commands + 2, (alone, together)


@pytest.mark.parametrize("document", [SHARED, OWN], ids=["independent", "own"])
@pytest.mark.parametrize("viewers", [1, 2])
async def test_a_post_is_looked_up_once_for_each_viewer(readers: Readers, document: str, viewers: int) -> None:
    """Twenty home streams under different aliases take as many commands as one.

    In groups of several viewers, relationships are read for each alias, in one round trip.
    """
    author, *users = await readers.users("author", "bob", "carol")
    users = users[:viewers]
    for user in users:
        await befriend(readers.graph, user.id, author.id)
    documents = under_aliases(document, STREAMS)
    several = [await readers.subscribe(user, documents[0]) for user in users]
    await readers.tell(author, several, "first")
    async with counted(readers.graph) as alone:
        await readers.tell(author, several, "second")
    several += [await readers.subscribe(user, each) for each in documents[1:] for user in users]
    async with counted(readers.graph) as together:
        await readers.tell(author, several, "third")
    more = 3 * viewers * (STREAMS - 1) if document == OWN and viewers > 1 else 0
    assert (together.round_trips, together.commands) == (alone.round_trips, alone.commands + more)


async def test_an_event_shows_nothing_that_was_read_for_the_one_before(readers: Readers) -> None:
    author, bob = await readers.users("author", "bob")
    await befriend(readers.graph, bob.id, author.id)
    document = OWN.replace("login followersCount", "login name").replace("relationship", "name relationship")
    several = [await readers.subscribe(bob, each) for each in under_aliases(document, 5)]
    told = await readers.tell(author, several, "first")
    assert {node(each)["author"]["name"] for each in told} == {"Author"}
    await readers.graph.users.update_profile(author.id, name="Another")
    await readers.graph.worker().drain()
    told = await readers.tell(author, several, "second")
    assert {node(each)["author"]["name"] for each in told} == {"Another"}


async def test_a_stream_that_asks_later_reads_for_itself(readers: Readers) -> None:
    """It lags: the name has changed since the others got the event."""
    author, bob = await readers.users("author", "bob")
    await befriend(readers.graph, bob.id, author.id)
    document = OWN.replace("relationship", "name relationship")
    prompt, late = [await readers.subscribe(bob, each) for each in under_aliases(document, 2)]
    await readers.tell(author, [prompt, late], "both are live")
    [told] = await readers.tell(author, [prompt])
    await readers.graph.users.update_profile(author.id, name="Another")
    await readers.graph.worker().drain()
    assert node(told)["author"]["name"] == "Author"
    assert node(await late.next())["author"]["name"] == "Another"


async def test_an_event_costs_its_viewer_points(charged: Readers, spent: Counter[str]) -> None:
    """An unshared event costs the price of its document, a checkpoint a few points; other users pay nothing."""
    author, bob = await charged.users("author", "bob")
    await befriend(charged.graph, bob.id, author.id)
    document = OWN.replace("text", "b: text")
    stream = await charged.subscribe(bob, document)
    assert spent == {f"user:{bob.id}": CHECKPOINT}
    spent.clear()
    await charged.tell(author, [stream])
    [(holder, price)] = spent.items()
    assert holder == f"user:{bob.id}"
    assert price > CHECKPOINT
    streams = [stream, *[await charged.subscribe(bob, each) for each in under_aliases(OWN, 4)]]
    spent.clear()
    await charged.tell(author, streams)
    assert spent == {holder: 5 * price}


async def test_an_event_that_many_share_costs_each_a_share(charged: Readers, spent: Counter[str]) -> None:
    author, bob, carol = await charged.users("author", "bob", "carol")
    for user in (bob, carol):
        await befriend(charged.graph, user.id, author.id)
    document = SHARED.replace("login", "login " + " ".join(f"a{at}: followersCount" for at in range(60)))
    one = await charged.subscribe(bob, document)
    spent.clear()
    await charged.tell(author, [one])
    price = spent[f"user:{bob.id}"]
    others = [await charged.subscribe(carol, document) for _ in range(9)]
    spent.clear()
    await charged.tell(author, [one, *others])
    assert share(price, 10) < price
    assert spent == {f"user:{bob.id}": share(price, 10), f"user:{carol.id}": 9 * share(price, 10)}


def test_a_share_is_never_more_than_the_price() -> None:
    assert (share(500, 1), share(500, 10), share(20, 2)) == (500, DELIVERY + 50, 20)


DEBT_SECONDS = 20


def put_in_debt(readers: Readers, user: User) -> None:
    """Charge a user for so many events that the next must wait for DEBT_SECONDS."""
    points, holder = points_of(readers), f"user:{user.id}"
    points.charge(holder, round(points.left(holder) + DEBT_SECONDS * 5_000))
    assert points.delay(holder)


async def test_a_viewer_without_points_gets_notifications_later_and_combined(charged: Readers, clock: Clock) -> None:
    """Nothing is lost, and the notification is current when it is sent."""
    alice, *fans = await charged.users("alice", "bob", "carol", "dave")
    stream = await charged.subscribe(alice, NOTIFIED.replace("ALIAS", "a"))
    put_in_debt(charged, alice)
    waiting = asyncio.create_task(stream.next())
    for fan in fans:
        await befriend(charged.graph, fan.id, alice.id)
    await charged.graph.users.update_profile(fans[-1].id, name="Another")
    assert not waiting.done()
    clock.advance(DEBT_SECONDS)
    told = data_of(await waiting)["notifications"]
    assert told["edge"]["node"]["actorsCount"] == len(fans)
    assert told["edge"]["node"]["actors"][0]["name"] == "Another"


async def test_a_viewer_without_points_gets_a_thread_later_and_combined(charged: Readers, clock: Clock) -> None:
    """The counts are current when they are sent."""
    alice, *fans = await charged.users("alice", "bob", "carol", "dave")
    post = await charged.graph.posts.publish(alice.id, "hello")
    stream = await charged.subscribe(alice, THREAD, postId=ids.encode(ids.Kind.POST, post.id))
    put_in_debt(charged, alice)
    waiting = asyncio.create_task(stream.next())
    for fan in fans:
        await charged.graph.likes.like(fan.id, post.id)
    await charged.graph.posts.publish(alice.id, "a reply", reply_to=post.id)
    assert not waiting.done()
    clock.advance(DEBT_SECONDS)
    told = [data_of(await waiting)["thread"], data_of(await stream.next())["thread"]]
    assert told == [{"post": {"likesCount": 3, "repliesCount": 1}}, {"reply": {"text": "a reply"}}]


async def test_a_viewer_without_points_gets_a_gap_when_the_buffer_is_full(charged: Readers, clock: Clock) -> None:
    """The stream continues after it."""
    author, bob = await charged.users("author", "bob")
    await befriend(charged.graph, bob.id, author.id)
    document = "subscription { homeTimeline { __typename ... on Gap { reason } } }"
    stream = await charged.subscribe(bob, document)
    await charged.tell(author, [stream])
    put_in_debt(charged, bob)
    waiting = asyncio.create_task(stream.next())
    await asyncio.sleep(0)
    for _ in range(4):
        events = await charged.graph.commit([PostPublished(author.id, "𝄞" * 1000) for _ in range(50)])
    await until(lambda: charged.graph.feed._reader.head >= events[-1].number)
    assert not waiting.done()
    clock.advance(DEBT_SECONDS)
    assert data_of(await waiting)["homeTimeline"] == {"__typename": "Gap", "reason": "SLOW_CONSUMER"}
    while data_of(await stream.next())["homeTimeline"]["__typename"] != "Checkpoint":
        pass
    [told] = await charged.tell(author, [stream])
    assert data_of(told)["homeTimeline"]["__typename"] == "PostAdded"


async def test_a_courier_delivers_nothing_to_a_viewer_without_points(charged: Readers) -> None:
    """The task of the subscription sends the event that came first, and waits before the next."""
    author, bob = await charged.users("author", "bob")
    await befriend(charged.graph, bob.id, author.id)
    sent: list[bytes] = []

    def send_now(payload: bytes) -> bool:
        sent.append(payload)
        return True

    stream = await charged.subscribe(bob, SHARED, send_now)
    waiting = asyncio.create_task(stream.next())
    await until(lambda: len(charged.graph.feed) > 0)
    await charged.graph.posts.publish(author.id, "first")
    await until(lambda: bool(sent))
    put_in_debt(charged, bob)
    await charged.graph.posts.publish(author.id, "second")
    assert node(await waiting)["text"] == "second"
    assert len(sent) == 1


async def test_events_read_the_archive_in_the_name_of_their_viewer(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An execution for several viewers has its own name."""
    author, bob, carol = await readers.users("author", "bob", "carol")
    for user in (bob, carol):
        await befriend(readers.graph, user.id, author.id)
    get_many, callers = readers.graph.users.get_many, Counter[str | None]()

    def look_up(ids: Sequence[int], moment: Moment | None = None) -> Any:
        usage = USAGE.get()
        callers[None if usage is None else usage.caller] += 1
        return get_many(ids, moment)

    monkeypatch.setattr(readers.graph.users, "get_many", look_up)
    alone = await readers.subscribe(bob, OWN)
    await readers.tell(author, [alone])
    assert [*callers] == [f"user:{bob.id}"]
    callers.clear()
    shared = [await readers.subscribe(user, SHARED) for user in (bob, carol)]
    await readers.tell(author, shared)
    assert callers["live events"] == 1
    assert None not in callers


async def test_few_executions_start_in_one_iteration_of_the_event_loop() -> None:
    """All of them start eventually, even if others are cancelled while they wait."""
    turns, started = EventTurns(), Counter[int]()
    iteration = 0

    async def start() -> None:
        await turns.start()
        started[iteration] += 1

    tasks = [asyncio.create_task(start()) for _ in range(100)]
    tasks[50].cancel()
    async with asyncio.timeout(PATIENCE):
        while not all(task.done() for task in tasks):
            iteration += 1
            await asyncio.sleep(0)
    assert started.total() == 99
    assert max(started.values()) <= 2 * STARTS
    assert len(started) >= 99 // (2 * STARTS)


async def test_a_holder_runs_few_executions_at_once() -> None:
    """Another holder does not wait for them."""
    turns, go_on, running = EventTurns(), asyncio.Event(), Counter[str]()

    async def run(holder: str) -> None:
        async with turns.turn(holder):
            running[holder] += 1
            await go_on.wait()

    tasks = [asyncio.create_task(run(holder)) for holder in ["a"] * 20 + ["b"]]
    for _ in range(50):
        await asyncio.sleep(0)
    assert running == {"a": AT_ONCE, "b": 1}
    go_on.set()
    await asyncio.gather(*tasks)
    assert running == {"a": 20, "b": 1}
