"""Account deletion: what ends, which requests are refused, and what is hidden."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import AccountDeleted, ProblemCode, Rejected
from graph.log.account_events import UserDeleted, login_hash
from graph.model import FollowRefusal, Permission
from graph.passwords.attempts import FREE_ATTEMPTS
from tests.support.graph_worlds import (
    PASSWORD,
    Open,
    append_events,
    befriend,
    codes,
    counted,
    home,
    outcomes_of,
    people,
    posts,
    state,
)
from tests.support.stores import Stop, runs


async def refusal(graph: Graph, login: str, password: str = PASSWORD) -> list[ProblemCode]:
    """Return why a sign-up is refused."""
    with pytest.raises(Rejected) as rejected:
        await graph.users.sign_up(login, password)
    return codes(rejected.value)


async def test_a_deletion_ends_the_account(graph: Graph, another: Open, raw: Redis) -> None:
    """In every process, sessions end, log-ins fail, and the profile is gone. It takes 8 round trips and 1 hash."""
    alice, bob = await people(graph, "alice", "bob")
    session = await graph.sessions.start(bob)
    other = await another()
    assert await other.users.ids_of_logins(["bob"]) == [bob]

    hashes = graph.users.hashing.hashes
    async with counted(graph) as cost:
        await graph.account_deletion.delete(bob, PASSWORD)

    assert (cost.round_trips, graph.users.hashing.hashes - hashes) == (8, 1)
    for process in (graph, other):
        assert not await process.sessions.is_live(bob, session.id)
        assert await process.users.visible(process.visibility.of(alice), [bob]) == [None]
        with pytest.raises(Rejected) as rejected:
            await process.users.check_password("bob", PASSWORD)
        assert codes(rejected.value) == [ProblemCode.WRONG_CREDENTIALS]
    last = await graph.log.get(await graph.log.last())
    assert last is not None
    assert last.body == UserDeleted(bob, login_hash("bob"))
    assert "bob" not in str(await raw.xrevrange(keys.LOG, count=1))


async def test_a_log_in_with_a_deleted_login_costs_what_an_unknown_one_costs(graph: Graph) -> None:
    [bob] = await people(graph, "bob")
    await graph.account_deletion.delete(bob, PASSWORD)
    costs = []
    for login in ("bob", "unknown"):
        hashes = graph.users.hashing.hashes
        async with counted(graph) as cost:
            with pytest.raises(Rejected) as rejected:
                await graph.users.check_password(login, PASSWORD)
        assert codes(rejected.value) == [ProblemCode.WRONG_CREDENTIALS]
        costs.append((cost.round_trips, cost.commands, graph.users.hashing.hashes - hashes))
    assert costs[0] == costs[1]


@pytest.mark.parametrize("password", ["wrong password", "", "\ud800", "x" * 1000])
async def test_a_wrong_password_writes_nothing(graph: Graph, raw: Redis, password: str) -> None:
    """The problem names the field, and the account stays."""
    [bob] = await people(graph, "bob")
    session = await graph.sessions.start(bob)
    kept = ("{log}", "{suspended}:version", "attempts:")
    last, before = await graph.log.last(), await state(raw, kept)

    with pytest.raises(Rejected) as rejected:
        await graph.account_deletion.delete(bob, password)

    [problem] = rejected.value.problems
    assert (problem.code, problem.field) == (ProblemCode.WRONG_CREDENTIALS, ("password",))
    assert (await graph.log.last(), await state(raw, kept)) == (last, before)
    assert await graph.sessions.is_live(bob, session.id)


async def test_wrong_passwords_count_as_failed_log_ins(graph: Graph) -> None:
    """After too many wrong passwords from a network, even the right password is refused there."""
    [bob] = await people(graph, "bob")
    await outcomes_of(*(graph.account_deletion.delete(bob, "wrong", network="a") for _ in range(FREE_ATTEMPTS)))

    with pytest.raises(Rejected) as rejected:
        await graph.account_deletion.delete(bob, PASSWORD, network="a")

    assert codes(rejected.value) == [ProblemCode.TOO_MANY_ATTEMPTS]
    assert rejected.value.problems[0].field == ("password",)
    await graph.account_deletion.delete(bob, PASSWORD, network="b")


async def test_a_second_deletion_writes_nothing(graph: Graph, another: Open, raw: Redis) -> None:
    """A second deletion writes nothing, whether the first is complete, not yet projected, or concurrent."""
    alice, bob = await people(graph, "alice", "bob")
    other = await another()
    first, second = await outcomes_of(
        graph.account_deletion.delete(bob, PASSWORD, network="a"),
        other.account_deletion.delete(bob, PASSWORD, network="b"),
    )
    assert None in (first, second)
    assert any(isinstance(each, AccountDeleted | Rejected) for each in (first, second))
    await append_events(graph, [UserDeleted(alice, login_hash("alice"))])
    length = await raw.xlen(keys.LOG)

    for user in (alice, bob):
        for password in (PASSWORD, "a guess"):
            with pytest.raises(AccountDeleted):
                await graph.account_deletion.delete(user, password)

    assert await raw.xlen(keys.LOG) == length


async def test_an_unknown_user_has_no_account(graph: Graph) -> None:
    with pytest.raises(Rejected) as rejected:
        await graph.account_deletion.delete(7, PASSWORD)
    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]


REQUESTS: dict[str, Callable[[Graph, int, int, int], Awaitable[Any]]] = {
    "post": lambda graph, bob, _alice, _post: graph.posts.publish(bob, "later"),
    "reply": lambda graph, bob, _alice, post: graph.posts.publish(bob, "later", reply_to=post),
    "like": lambda graph, bob, _alice, post: graph.likes.like(bob, post),
    "repost": lambda graph, bob, _alice, post: graph.reposts.repost(graph.visibility.of(bob), bob, post),
    "follow": lambda graph, bob, alice, _post: graph.follows.follow(bob, [alice]),
    "block": lambda graph, bob, alice, _post: graph.blocks.block(bob, alice),
    "list": lambda graph, bob, _alice, _post: graph.lists.create(bob, "list", []),
    "profile": lambda graph, bob, _alice, _post: graph.users.update_profile(bob, name="Robert"),
    "password": lambda graph, bob, _alice, _post: graph.passwords.change(bob, PASSWORD, "a new password"),
    "log-out": lambda graph, bob, _alice, _post: graph.sessions.end(bob),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_what_is_under_way_is_refused(graph: Graph, another: Open, name: str) -> None:
    """A request that began before the deletion is refused like a request of an ended session."""
    slow = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.sessions.start(bob)
    [post] = await posts(graph, alice, "hi")
    stop = Stop(slow.store, runs("append"))
    request = asyncio.ensure_future(REQUESTS[name](slow, bob, alice, post))
    await stop.reached.wait()
    await graph.account_deletion.delete(bob, PASSWORD)
    last = await graph.log.last()
    stop.resume()

    with pytest.raises(AccountDeleted):
        await request

    assert await graph.log.last() == last


async def test_operators_find_no_account_that_is_deleted_meanwhile(graph: Graph) -> None:
    """If the log is ahead of the profile, it refuses the operators' events. Posts can still be removed."""
    [bob] = await people(graph, "bob")
    [post] = await posts(graph, bob, "hi")
    await append_events(graph, [UserDeleted(bob, login_hash("bob"))])

    for refused in (graph.moderation.suspend(bob), graph.users.grant(bob, Permission.FIREHOSE)):
        with pytest.raises(Rejected) as rejected:
            await refused
        assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
    removed = await graph.moderation.remove(post)
    assert removed is not None
    assert removed.id == post


async def test_a_login_is_never_used_again(graph: Graph, another: Open, raw: Redis) -> None:
    """The login stays reserved in every process and letter case, for any password. Refused sign-ups leave no claim."""
    other = await another()
    [bob] = await people(graph, "bob")
    await graph.account_deletion.delete(bob, PASSWORD)

    for process in (graph, other):
        for login in ("bob", "BOB"):
            assert await refusal(process, login) == [ProblemCode.LOGIN_TAKEN]
            assert await refusal(process, login, "another password") == [ProblemCode.LOGIN_TAKEN]
    assert await raw.exists(keys.login("bob")) == 0
    assert await other.users.is_reserved("Bob")
    assert not await other.users.is_reserved("bobby")
    assert not await other.users.is_reserved("-")


async def test_a_sign_up_beside_a_deletion_does_not_get_the_login(graph: Graph, another: Open) -> None:
    """Whenever the deletion happens, the login stays reserved: a sign-up that claims it later finds the reservation."""
    for step in ("claim_login", "append"):
        other = await another()
        [user] = await people(graph, login := f"user_{step}"[:12])
        stop = Stop(other.store, runs(step))
        signing = asyncio.create_task(other.users.sign_up(login, PASSWORD))
        await asyncio.wait([signing, asyncio.create_task(stop.reached.wait())], return_when=asyncio.FIRST_COMPLETED)
        await graph.account_deletion.delete(user, PASSWORD)
        stop.resume()
        with pytest.raises(Rejected) as rejected:
            await signing
        assert codes(rejected.value) == [ProblemCode.LOGIN_TAKEN]


async def test_a_login_that_a_failover_brings_back_is_freed_by_a_log_in(graph: Graph, raw: Redis) -> None:
    [bob] = await people(graph, "bob")
    login: dict[Any, Any] = await raw.hgetall(keys.login("bob"))
    await graph.account_deletion.delete(bob, PASSWORD)
    await raw.hset(keys.login("bob"), mapping=login)

    with pytest.raises(Rejected) as rejected:
        await graph.users.check_password("bob", PASSWORD)

    assert codes(rejected.value) == [ProblemCode.WRONG_CREDENTIALS]
    assert await raw.exists(keys.login("bob")) == 0


async def test_everything_of_a_deleted_user_is_hidden_at_once(graph: Graph, another: Open) -> None:
    """All data is hidden in all processes, even in those that have already returned it."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    await befriend(graph, bob, alice)
    [by_bob] = await posts(graph, bob, "by bob")
    [by_carol] = await posts(graph, carol, "by carol")
    await graph.reposts.repost(graph.visibility.of(carol), carol, by_bob)
    other = await another()
    for process in (graph, other):
        assert len(await home(process, alice)) == 3

    await graph.account_deletion.delete(bob, PASSWORD)

    for process in (graph, other):
        assert await home(process, alice) == [by_carol]
    for process in (graph, other):
        view = process.visibility.of(alice)
        assert await process.posts.get_many(view, [by_bob]) == [None]
        assert await process.follows.follow(carol, [bob]) == [FollowRefusal.NOT_FOUND]
        assert (await process.posts.publish(alice, "@bob")).mentions == ()
        with pytest.raises(Rejected) as rejected:
            await process.posts.publish(alice, "re", reply_to=by_bob)
        assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
