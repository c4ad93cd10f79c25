"""The data of deleted users in the log and the store."""

import asyncio

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import AccountDeleted, FolloweesDeleted, Rejected
from graph.log.account_events import UserDeleted, UserErased, login_hash
from graph.log.events import (
    Event,
    EventBody,
    Followed,
    Liked,
    PasswordChanged,
    PermissionGranted,
    PostPublished,
    ProfileChanged,
)
from graph.log.log import IdempotencyKey
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.model import FollowOutcome, FollowRefusal, Permission
from graph.projections.mode import Mode
from tests.support.graph_worlds import PASSWORD, Open, append_events, befriend, codes, counted, people
from tests.support.stores import Crashed, Death, Stop, runs


def deletion(user: int, login: str) -> UserDeleted:
    """Return the event that deletes a user."""
    return UserDeleted(user, login_hash(login))


async def test_the_log_refuses_events_of_a_deleted_user(graph: Graph, raw: Redis) -> None:
    """The log refuses events as soon as the deletion is appended, before anything is projected, and writes nothing."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await append_events(graph, [deletion(bob, "bob")])
    length = await raw.xlen(keys.LOG)

    batches: list[list[EventBody]] = [
        [PostPublished(bob, "later")],
        [deletion(bob, "bob")],
        [UserSuspended(bob)],
        [Followed(alice, carol), Liked(bob, 1, alice), Followed(alice, bob)],
    ]
    for bodies in batches:
        with pytest.raises(AccountDeleted):
            await append_events(graph, bodies, IdempotencyKey("-", "k"))
    with pytest.raises(FolloweesDeleted) as refused:
        await append_events(graph, [Followed(alice, carol), Followed(carol, bob)], IdempotencyKey("-", "k"))

    assert refused.value.users == {bob}
    assert await raw.xlen(keys.LOG) == length
    assert await raw.exists(keys.idempotency("-", "k")) == 0
    await append_events(graph, [Followed(alice, carol), Liked(alice, 1, bob)])


async def test_the_log_accepts_what_the_erasure_appends(graph: Graph) -> None:
    [bob] = await people(graph, "bob")
    await append_events(graph, [deletion(bob, "bob")])

    [event] = await graph.commit([UserErased(bob)], erasing=True)

    assert await graph.log.get(event.number) == event


async def test_a_repeated_append_answers_as_before_the_deletion(graph: Graph) -> None:
    """An append repeated because its reply was lost gets the same reply as before the deletion."""
    [bob] = await people(graph, "bob")
    key = IdempotencyKey(bob, "k")
    first = await append_events(graph, [PostPublished(bob, "hi")], key)
    gone = await append_events(graph, [deletion(bob, "bob")], IdempotencyKey(bob, "d"))

    assert await append_events(graph, [PostPublished(bob, "hi")], key) == first
    assert await append_events(graph, [deletion(bob, "bob")], IdempotencyKey(bob, "d")) == gone


async def test_a_user_who_is_deleted_meanwhile_is_not_followed(graph: Graph, another: Open) -> None:
    """The follow of the deleted user is refused, and the others succeed."""
    slow = await another()
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    stop = Stop(slow.store, runs("append"))
    following = asyncio.create_task(slow.follows.follow(alice, [bob, alice, carol, dave]))
    await stop.reached.wait()
    await graph.commit([deletion(bob, "bob"), deletion(dave, "dave")])
    stop.resume()

    assert await following == [
        FollowRefusal.NOT_FOUND,
        FollowRefusal.SELF,
        FollowOutcome.FOLLOWED,
        FollowRefusal.NOT_FOUND,
    ]
    assert list(await graph.follows.followed_by(alice)) == [carol]


async def test_a_deletion_leaves_a_tombstone_a_reservation_and_notes(graph: Graph, raw: Redis) -> None:
    """Nothing else remains of the profile, the login and the sessions. The projection takes 4 round trips."""
    [bob] = await people(graph, "bob")
    await graph.users.check_password("bob", PASSWORD)
    session = await graph.sessions.start(bob, "a browser")
    await graph.sessions.start(bob)

    async with counted(graph) as cost:
        [event] = await graph.commit([deletion(bob, "bob")])

    assert cost.round_trips == 5
    number = str(event.number)
    assert await raw.hgetall(keys.user(bob)) == {"deleted": number}
    assert await raw.get(keys.reserved(login_hash("bob"))) == number
    assert await raw.hgetall(keys.SUSPENDED) == {str(bob): number}
    assert await raw.hgetall(keys.DELETED) == {str(bob): number}
    assert await raw.zrange(keys.ERASING, 0, -1, withscores=True) == [(str(bob), event.number)]
    assert [key async for key in raw.scan_iter("*bob*")] == []
    assert [key async for key in raw.scan_iter("session:*")] == []
    assert not await graph.sessions.is_live(bob, session.id)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(5))
async def test_a_worker_completes_a_deletion_after_a_crash(
    graph: Graph, another: Open, raw: Redis, step: int, after: bool
) -> None:
    """A worker completes a deletion after a crash at any step."""
    dying = await another()
    [bob] = await people(dying, "bob")
    death = Death(dying.store, step, after=after)
    with pytest.raises(Crashed):
        await dying.commit([deletion(bob, "bob")])
    assert death.happened

    await graph.worker().drain()

    if step or after:
        assert await raw.hkeys(keys.user(bob)) == ["deleted"]
        assert [key async for key in raw.scan_iter("*bob*")] == []
        assert await raw.exists(keys.reserved(login_hash("bob"))) == 1
    else:
        assert (await graph.users.check_password("bob", PASSWORD)).id == bob


async def test_earlier_events_change_nothing_after_a_deletion(graph: Graph, raw: Redis) -> None:
    [bob] = await people(graph, "bob")
    events = [event async for event in graph.log.replay(0, bob)]
    bodies: list[EventBody] = [ProfileChanged(bob, "Bob"), UserSuspended(bob), UserUnsuspended(bob)]
    bodies += [PermissionGranted(bob, Permission.FIREHOSE.value), PasswordChanged(bob, "bob", "nonce")]
    events += await append_events(graph, bodies)
    [event] = await graph.commit([deletion(bob, "bob")])

    for late in events:
        await graph.projections.project([late], Mode.WORKER)

    assert await raw.hgetall(keys.user(bob)) == {"deleted": str(event.number)}
    assert await raw.hgetall(keys.SUSPENDED) == {str(bob): str(event.number)}
    assert [key async for key in raw.scan_iter("*bob*")] == []


async def test_no_session_begins_after_a_deletion(graph: Graph, another: Open) -> None:
    """No session begins, even if the password was checked before the deletion."""
    slow = await another()
    [bob] = await people(graph, "bob")
    stop = Stop(slow.store, runs("start_session"))
    starting = asyncio.create_task(slow.sessions.start(bob))
    await stop.reached.wait()
    await graph.commit([deletion(bob, "bob")])
    stop.resume()

    with pytest.raises(Rejected) as rejected:
        await starting

    assert [code.name for code in codes(rejected.value)] == ["WRONG_CREDENTIALS"]
    assert await graph.sessions.live_sessions(bob) == []


async def test_a_login_of_another_user_is_not_freed(graph: Graph, raw: Redis) -> None:
    """After a failover of the profile's shard, a deleted user may have a login that now belongs to another user."""
    alice, bob = await people(graph, "alice", "bob")
    await raw.hset(keys.user(bob), "login", "alice")

    await graph.commit([deletion(bob, "bob")])

    assert (await graph.users.check_password("alice", PASSWORD)).id == alice


async def test_an_erased_user_is_no_longer_to_be_erased(graph: Graph, raw: Redis) -> None:
    """The user is not erased again, even if the deletion is projected again. The log's note stays."""
    [bob] = await people(graph, "bob")
    deleted = await graph.commit([deletion(bob, "bob")])
    [erased] = await graph.commit([UserErased(bob)], erasing=True)

    await graph.projections.project(deleted, Mode.WORKER)

    assert await raw.exists(keys.ERASING) == 0
    assert await raw.hgetall(keys.DELETED) == {str(bob): str(-erased.number)}
    with pytest.raises(AccountDeleted):
        await append_events(graph, [PostPublished(bob, "hi")])


async def test_a_failed_shard_of_the_log_gets_its_notes_back(graph: Graph, raw: Redis) -> None:
    """The notes come back when the deletion is projected again after the failover."""
    alice, bob = await people(graph, "alice", "bob")
    [event] = await graph.commit([deletion(bob, "bob")])
    await raw.delete(keys.DELETED, keys.ERASING)

    await graph.projections.project([Event(event.number, event.body)], Mode.WORKER)

    assert await raw.hgetall(keys.DELETED) == {str(bob): str(event.number)}
    assert await raw.zscore(keys.ERASING, str(bob)) == event.number
    await befriend(graph, alice, bob)
    assert await graph.follows.followed_by(alice) == {}
