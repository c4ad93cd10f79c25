"""Idempotency keys of sign-ups: a repeated request creates one account, and gets a session for it."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.accounts.sign_ups import SignedUp, nonce_of
from graph.errors import ProblemCode, Rejected
from graph.log.requests import hash_of
from graph.model import number_at
from graph.passwords.attempts import FREE_ATTEMPTS
from tests.support.graph_worlds import PASSWORD, Open, codes, people
from tests.support.stores import Crashed, Death, Stop, runs

KEY = "a key of the client"
TAKEN, MISMATCH = [ProblemCode.LOGIN_TAKEN], [ProblemCode.IDEMPOTENCY_MISMATCH]


async def outcome(
    graph: Graph, password: str = PASSWORD, name: str | None = "Alice", key: str | None = KEY, network: str = ""
) -> SignedUp | list[ProblemCode]:
    """Sign up as alice, and return the result or the codes of the refusal."""
    try:
        return await graph.sign_ups.sign_up("alice", password, name, network=network, idempotency_key=key)
    except Rejected as rejected:
        return codes(rejected)


async def signed_up(graph: Graph) -> int:
    """Sign up as alice, and return the id of the user."""
    found = await outcome(graph)
    assert isinstance(found, SignedUp)
    return found.user.id


async def accounts(raw: Redis) -> list[str]:
    return [key async for key in raw.scan_iter("user:*")]


async def test_a_repetition_returns_the_same_user(graph: Graph, another: Open) -> None:
    """This holds in any process. The password has been checked, so the session depends on its version."""
    first = await outcome(graph)
    assert isinstance(first, SignedUp)
    assert (first.is_new, first.password, first.user.name) == (True, None, "Alice")

    for instance in (graph, await another()):
        assert await outcome(instance) == SignedUp(first.user, 0, is_new=False)


async def test_without_the_key_the_login_is_taken(graph: Graph, raw: Redis) -> None:
    """The same holds with another key. The password is not checked, so no failure is counted."""
    await outcome(graph)
    before = graph.users.hashing.hashes

    assert await outcome(graph, key=None) == TAKEN
    assert await outcome(graph, key="another key") == TAKEN
    assert graph.users.hashing.hashes == before
    assert [key async for key in raw.scan_iter("attempts:*")] == []


async def test_an_account_without_a_key_is_taken(graph: Graph) -> None:
    await people(graph, "alice")

    assert await outcome(graph) == TAKEN


async def test_an_invalid_key_is_refused(graph: Graph, raw: Redis) -> None:
    """The key is reported together with the sign-up's other problems. Nothing is written."""
    assert await outcome(graph, password="short", key="") == [ProblemCode.PASSWORD_TOO_WEAK, ProblemCode.INVALID]
    assert await raw.exists(keys.login("alice")) == 0


async def test_another_name_or_password_does_not_fit_the_key(graph: Graph) -> None:
    """A later change of the name does not matter: the key belongs to the name of the sign-up."""
    user = await signed_up(graph)
    await graph.users.update_profile(user, name="Alice A.")

    assert await outcome(graph, password="another password") == MISMATCH
    assert await outcome(graph, name="Alice A.") == MISMATCH
    assert await outcome(graph, name=None) == MISMATCH
    assert await signed_up(graph) == user


async def test_a_wrong_name_costs_what_a_wrong_password_costs(graph: Graph, raw: Redis) -> None:
    """A stranger who has guessed the key cannot tell the two apart: each takes one hash, and counts as a failure."""
    await outcome(graph)
    for failures, name in enumerate(("Alice", "another name"), 1):
        before = graph.users.hashing.hashes
        assert await outcome(graph, "another password", name) == MISMATCH
        assert graph.users.hashing.hashes == before + 1
        assert await raw.zcard(keys.attempts("alice")) == failures


async def test_repetitions_count_as_log_ins(graph: Graph) -> None:
    """Wrong passwords block the network, for log-ins too, but no other network."""
    user = await signed_up(graph)
    for _ in range(FREE_ATTEMPTS):
        assert await outcome(graph, password="another password", network="n") == MISMATCH

    assert await outcome(graph, network="n") == [ProblemCode.TOO_MANY_ATTEMPTS]
    with pytest.raises(Rejected) as rejected:
        await graph.users.log_in("alice", PASSWORD, "n")
    assert codes(rejected.value) == [ProblemCode.TOO_MANY_ATTEMPTS]
    found = await outcome(graph, network="other")
    assert isinstance(found, SignedUp)
    assert found.user.id == user


async def test_the_current_password_counts(graph: Graph) -> None:
    """The session that starts has the version of the current password."""
    user = await signed_up(graph)
    await graph.passwords.change(user, PASSWORD, "the next password", network="", user_agent=None)

    assert await outcome(graph) == MISMATCH
    found = await outcome(graph, password="the next password")
    assert isinstance(found, SignedUp)
    assert found.password
    assert (await graph.sessions.start(user, password=found.password)).user == user


@pytest.mark.parametrize("count", [2, 20])
async def test_concurrent_requests_with_one_key_make_one_account(
    graph: Graph, another: Open, raw: Redis, count: int
) -> None:
    """All requests get a session, in both processes."""
    instances = [graph, await another()]

    found = await asyncio.gather(*(outcome(instances[n % 2]) for n in range(count)))

    users = [each.user.id for each in found if isinstance(each, SignedUp)]
    assert len(users) == count
    assert await accounts(raw) == [keys.user(users[0])]
    for each in found:
        assert isinstance(each, SignedUp)
        assert (await graph.sessions.start(each.user.id, password=each.password)).user == users[0]
    assert [each.is_new for each in found if isinstance(each, SignedUp)].count(True) == 1


async def test_of_concurrent_requests_with_different_passwords_one_succeeds(graph: Graph, another: Open) -> None:
    """The same key does not give a stranger the account that is being created."""
    instances = [graph, await another()]
    passwords = [f"{PASSWORD} {n}" for n in range(FREE_ATTEMPTS)]

    found = await asyncio.gather(*(outcome(instances[n % 2], password) for n, password in enumerate(passwords)))

    [winner] = [n for n, each in enumerate(found) if isinstance(each, SignedUp)]
    assert [each for each in found if not isinstance(each, SignedUp)] == (len(found) - 1) * [MISMATCH]
    assert await graph.users.check_password("alice", passwords[winner])


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(9))
async def test_a_crashed_sign_up_can_be_repeated(
    graph: Graph, another: Open, raw: Redis, step: int, after: bool
) -> None:
    """After a crash at any step, a repetition gets the account, even if a worker has completed it meanwhile."""
    dying = await another()
    await people(dying, "bob")  # loads the scripts, so that the steps are those of the sign-up
    Death(dying.store, step, after=after)
    try:
        await outcome(dying)
        crashed = False
    except Crashed:
        crashed = True
    if step % 2:
        await graph.worker().drain()

    wrong = await outcome(graph, "another password") if await raw.exists(keys.login("alice")) else MISMATCH
    user = await signed_up(graph)
    await graph.worker().drain()

    assert crashed or step > 6
    assert wrong == MISMATCH
    assert (await graph.users.check_password("alice", PASSWORD)).id == user
    assert await signed_up(graph) == user
    assert len(await accounts(raw)) == 2


async def test_a_repetition_shows_the_profile(graph: Graph, another: Open) -> None:
    """The profile is shown although the first request has created only the account so far."""
    dying = await another()
    stop = Stop(dying.store, runs("set_profile"))
    request = asyncio.create_task(outcome(dying))
    await stop.reached.wait()
    request.cancel()

    user = await signed_up(graph)

    assert [found and found.name for found in await graph.users.get_many([user])] == ["Alice"]


async def test_a_sign_up_without_a_key_can_complete_the_account(graph: Graph, another: Open, raw: Redis) -> None:
    """The sign-up has the same password. The repetition with the key then gets the same account."""
    dying = await another()
    stop = Stop(dying.store, runs("append"))
    request = asyncio.create_task(outcome(dying))
    await stop.reached.wait()
    request.cancel()

    account = await outcome(graph, key=None)

    assert isinstance(account, SignedUp)
    assert await signed_up(graph) == account.user.id
    assert len(await accounts(raw)) == 1


@pytest.mark.parametrize("is_remembered", [True, False])
async def test_the_login_of_a_deleted_account_stays_taken(graph: Graph, another: Open, is_remembered: bool) -> None:
    """This holds for a process that remembers the login's user and for one that does not."""
    user = await signed_up(graph)
    other = await another()
    await graph.account_deletion.delete(user, PASSWORD)

    assert await outcome(graph if is_remembered else other) == TAKEN
    assert await outcome(graph, password="another password") == TAKEN


async def test_an_account_that_is_deleted_meanwhile_is_taken(graph: Graph, another: Open) -> None:
    """The account is deleted after the repetition has found it and before it checks the password."""
    user = await signed_up(graph)
    other = await another()
    stop = Stop(other.store, runs("begin_attempt"))
    repeated = asyncio.create_task(outcome(other))
    await stop.reached.wait()
    await graph.account_deletion.delete(user, PASSWORD)
    stop.resume()

    assert await repeated == TAKEN


async def test_a_key_is_valid_for_a_day(graph: Graph, raw: Redis) -> None:
    await signed_up(graph)
    for hours, expected in ((25, TAKEN), (23, MISMATCH)):
        await raw.hset(keys.login("alice"), "user", number_at(datetime.now(UTC) - timedelta(hours=hours)))
        assert await outcome(graph, password="another password") == expected


async def test_the_append_can_be_repeated_for_a_day(graph: Graph, raw: Redis) -> None:
    """If only the profile is missing, the repetition projects the first request's event. No key contains the nonce."""
    await signed_up(graph)
    nonce = nonce_of("alice", "Alice", KEY)

    assert await raw.ttl(keys.idempotency("-", hash_of(nonce))) > 23 * 3600
    assert [name async for name in raw.scan_iter(f"*{nonce}*")] == []


def test_the_nonce_depends_on_the_login_the_key_and_the_name() -> None:
    """With another name, the first part, which identifies the request, is the same. The password has no effect."""
    same = partial(nonce_of, "alice", "Alice", KEY)
    nonces = [nonce_of("alice", "Alice", "k"), nonce_of("bob", "Alice", KEY), nonce_of("alice", "Bob", KEY)]

    assert same() == same()
    assert len({same(), *nonces}) == 4
    assert [each[:22] == same()[:22] for each in nonces] == [False, False, True]
    assert [each[22:] == same()[22:] for each in nonces] == [False, True, False]
