"""Shared runs: one execution of an event for all subscriptions with the same operation."""

import asyncio
from typing import Any

import pytest
from graphql import GraphQLObjectType

from graph.errors import StoreUnavailable
from graph.paging import CursorKind, encode_cursor
from resolvers import ids
from schema import schema
from tests.server.operations.readers import OWN, SHARED, TIMELINE, Readers, data_of, fail_once, node, paused
from tests.support.graph_worlds import PATIENCE, counted

FILTERED = """subscription ($filter: EventFilter!, $named: Boolean = false) {
  events(filter: $filter) {
    __typename ... on PostAdded { post { text author { login name @include(if: $named) } } }
  }
}"""


@pytest.mark.parametrize("sockets", [2, 20])
async def test_an_event_is_executed_once_for_all_of_a_group(readers: Readers, sockets: int) -> None:
    """It takes as many round trips and commands as for one reader, and all viewers get the same bytes."""
    author, bob, carol = await readers.users("author", "bob", "carol")
    for user in (bob, carol):
        await readers.graph.follows.follow(user.id, [author.id])
    one = await readers.subscribe(bob)
    await readers.tell(author, [one], "first")
    async with counted(readers.graph) as alone:
        await readers.tell(author, [one], "second")
    several = [one, *[await readers.subscribe((bob, carol)[n % 2]) for n in range(1, sockets)]]
    async with counted(readers.graph) as together:
        told = await readers.tell(author, several, "third")
    assert (together.round_trips, together.commands) == (alone.round_trips, alone.commands)
    assert {id(each.payload) for each in told} == {id(told[0].payload)}
    assert told[0].payload is not None
    assert node(told[0]) == {"text": "third", "author": {"login": "author", "followersCount": 2}}


async def test_streams_of_timelines_share_executions(readers: Readers) -> None:
    """This holds for several viewers, and for timelines of users and lists."""
    author, bob, carol = await readers.users("author", "bob", "carol")
    friends = await readers.graph.lists.create(bob.id, "friends", [author.id])
    own = ids.encode(ids.Kind.USER_TIMELINE, author.id)
    several = [await readers.subscribe(user, TIMELINE, timelineId=own) for user in (author, bob, carol)]
    await readers.tell(author, several[:1], "first")
    for reader in several[1:]:
        await reader.next()
    async with counted(readers.graph) as alone:
        await readers.tell(author, several, "second")
    listed = ids.encode(ids.Kind.LIST_TIMELINE, friends.id)
    several.append(await readers.subscribe(bob, TIMELINE, timelineId=listed))
    async with counted(readers.graph) as together:
        told = await readers.tell(author, several, "third")
    assert together.round_trips == alone.round_trips
    assert [node(each)["text"] for each in told] == ["third"] * 4
    assert len({id(each.payload) for each in told[:3]}) == 1


async def test_each_viewer_has_what_depends_on_the_viewer(readers: Readers) -> None:
    author, bob = await readers.users("author", "bob")
    await readers.graph.follows.follow(bob.id, [author.id])
    told = await readers.tell(author, [await readers.subscribe(user, OWN) for user in (author, bob)])
    assert [node(each)["author"]["relationship"]["state"] for each in told] == ["YOU", "FOLLOWING"]


@pytest.mark.parametrize("sockets", [2, 20])
async def test_what_depends_on_the_viewer_is_looked_up_once_for_all(readers: Readers, sockets: int) -> None:
    """Twenty sockets take as many round trips as two."""
    author, bob, carol = await readers.users("author", "bob", "carol")
    for user in (bob, carol):
        await readers.graph.follows.follow(user.id, [author.id])
    users = [(author, bob, carol)[n % 3] for n in range(20)]
    several = [await readers.subscribe(user, OWN) for user in users[:2]]
    await readers.tell(author, several, "first")
    async with counted(readers.graph) as two:
        await readers.tell(author, several, "second")
    several += [await readers.subscribe(user, OWN) for user in users[2:sockets]]
    async with counted(readers.graph) as all_:
        told = await readers.tell(author, several, "third")
    assert all_.round_trips == two.round_trips
    states = [node(each)["author"]["relationship"]["state"] for each in told]
    assert states == ["YOU" if user is author else "FOLLOWING" for user in users[:sockets]]
    assert None not in [each.payload for each in told]


async def test_arguments_of_the_root_do_not_matter_and_others_do(readers: Readers) -> None:
    """Two filters that match the same post share its execution. A condition is part of the operation."""
    [author] = await readers.users("author")
    filters: list[dict[str, Any]] = [{"keywords": ["hello"]}, {"keywords": ["world"]}]
    several = [await readers.subscribe(author, FILTERED, filter=each) for each in filters]
    several.append(await readers.subscribe(author, FILTERED, filter=filters[0], named=True))
    one, other, named = await readers.tell(author, several, "hello world")
    assert one.payload is not None
    assert one.payload is other.payload
    assert node(one)["author"] == {"login": "author"}
    assert node(named)["author"] == {"login": "author", "name": "Author"}


async def test_a_reader_that_asks_later_gets_no_older_counts(readers: Readers) -> None:
    """It lags: the others already have the event, and the author has gained a follower since."""
    author, bob = await readers.users("author", "bob")
    prompt, late = both = [await readers.subscribe(author) for _ in range(2)]
    await readers.tell(author, both, "both are live")
    [told] = await readers.tell(author, [prompt])
    await readers.graph.follows.follow(bob.id, [author.id])
    assert node(told)["author"]["followersCount"] == 0
    assert node(await late.next())["author"]["followersCount"] == 1


async def test_readers_at_different_events_get_their_own(readers: Readers) -> None:
    """They ask in the same iteration of the event loop, one of them for the previous event."""
    [author] = await readers.users("author")
    document = SHARED.replace("__typename", "cursor")
    prompt, late = both = [await readers.subscribe(author, document) for _ in range(2)]
    await readers.tell(author, both, "both are live")
    await readers.tell(author, [prompt], "first")
    await readers.graph.posts.publish(author.id, "second")
    await readers.graph.posts.publish(author.id, "third")
    told = await asyncio.gather(prompt.next(), late.next())
    assert [node(each)["text"] for each in told] == ["second", "first"]
    numbers = [encode_cursor(CursorKind.LOG, each.number or 0) for each in told]
    assert [data_of(each)["homeTimeline"]["cursor"] for each in told] == numbers


async def test_a_replay_gives_the_same_results(readers: Readers) -> None:
    [author] = await readers.users("author")
    reader = await readers.subscribe(author)
    [told] = await readers.tell(author, [reader])
    begin = await readers.graph.log.newest(await readers.graph.log.last(), 2)
    again = await readers.subscribe(author, after=encode_cursor(CursorKind.LOG, begin[0].number - 1))
    assert (await again.next()).payload == told.payload


async def test_a_reader_that_leaves_takes_nothing_from_the_others(readers: Readers) -> None:
    """It leaves while the execution runs. The last one that leaves cancels the execution."""
    [author] = await readers.users("author")
    several = [await readers.subscribe(author) for _ in range(3)]
    async with paused(readers.execution) as pause:
        waiting = [asyncio.create_task(reader.next()) for reader in several]
        await readers.graph.posts.publish(author.id, "hello")
        await pause.reached.wait()
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        assert not pause.cancelled
        pause.go_on.set()
        assert [node(await each)["text"] for each in waiting[1:]] == ["hello", "hello"]
    async with paused(readers.execution) as pause:
        waiting = [asyncio.create_task(reader.next()) for reader in several[1:]]
        await readers.graph.posts.publish(author.id, "bye")
        await pause.reached.wait()
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        async with asyncio.timeout(PATIENCE):
            await pause.ended.wait()
        assert pause.cancelled


async def test_an_outage_is_reported_to_all_with_their_own_request_ids(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    author, bob = await readers.users("author", "bob")
    await readers.graph.follows.follow(bob.id, [author.id])
    several = [await readers.subscribe(user) for user in (author, bob)]
    fail_once(monkeypatch, readers.graph, StoreUnavailable("a test"))
    told = await readers.tell(author, several)
    [errors, others] = [[error.extensions or {} for error in each.result.errors or ()] for each in told]
    assert [error["code"] for error in errors] == [error["code"] for error in others] == ["STORE_UNAVAILABLE"]
    assert [error["requestId"] for error in (*errors, *others)] == ["of author", "of bob"]


async def test_any_other_failure_leaves_each_reader_to_itself(
    readers: Readers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    author, bob = await readers.users("author", "bob")
    await readers.graph.follows.follow(bob.id, [author.id])
    several = [await readers.subscribe(user) for user in (author, bob)]
    fail_once(monkeypatch, readers.graph, ZeroDivisionError("a bug"))
    told = await readers.tell(author, several)
    assert [(each.payload, each.result.errors) for each in told] == [(None, None)] * 2
    assert "A shared execution failed" in caplog.text


async def test_a_wrong_declaration_shows_nobody_what_belongs_to_another(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field that depends on the viewer fails in a shared run, and each reader executes the event itself."""
    user_type = schema._schema.type_map["User"]
    assert isinstance(user_type, GraphQLObjectType)
    field = user_type.fields["relationship"].extensions["strawberry-definition"]
    monkeypatch.setattr(field, "metadata", {**field.metadata, "independent": True})
    author, bob = await readers.users("author", "bob")
    await readers.graph.follows.follow(bob.id, [author.id])
    told = await readers.tell(author, [await readers.subscribe(user, OWN) for user in (author, bob)])
    assert [node(each)["author"]["relationship"]["state"] for each in told] == ["YOU", "FOLLOWING"]
