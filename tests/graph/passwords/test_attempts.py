"""Limits on failed log-ins: an attacker's network is refused, the user's is not, and no reply reveals logins."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.errors import Overloaded, ProblemCode, Rejected, StoreUnavailable
from graph.passwords.attempts import (
    FREE_ATTEMPTS,
    MAX_DELAY,
    NETWORK_SECONDS,
    REMEMBERED_FAILURES,
    REMEMBERED_NETWORKS,
    WINDOW_SECONDS,
    Attempts,
)
from tests.support.graph_worlds import PASSWORD, Open, codes, counted, people
from tests.support.stores import Fault, Stop, runs

WRONG = "wrong horse"
REFUSED = [ProblemCode.TOO_MANY_ATTEMPTS]
FAILED = [ProblemCode.WRONG_CREDENTIALS]


async def log_in(graph: Graph, login: str, password: str, network: str = "") -> list[ProblemCode]:
    """Try to log in, and return the codes of the rejection."""
    try:
        await graph.users.check_password(login, password, network)
    except Rejected as rejected:
        return codes(rejected)
    return []


async def age(raw: Redis, seconds: float) -> None:
    """Move the times of the counts in the store back."""
    for pattern in ("attempts:*", "networks:*"):
        async for key in raw.scan_iter(pattern):
            left = await raw.pttl(key) - seconds * 1000
            members: Any = await raw.zrange(key, 0, -1, withscores=True)
            for member, score in members:
                await raw.zadd(key, {member: score - seconds})
            await (raw.pexpire(key, int(left)) if left > 0 else raw.delete(key))


@pytest.mark.parametrize("login", ["alice", "nobody", "no login"])
async def test_after_ten_failures_only_that_network_is_refused(graph: Graph, raw: Redis, login: str) -> None:
    """The other networks are not refused, whether or not the login exists."""
    await people(graph, "alice", "bob")
    assert [await log_in(graph, login, WRONG, "attacker") for _ in range(FREE_ATTEMPTS)] == 10 * [FAILED]

    with pytest.raises(Rejected, match=r"Try again in 15 minutes\.") as rejected:
        await graph.users.check_password(login, PASSWORD, "attacker")

    assert codes(rejected.value) == REFUSED
    assert await log_in(graph, "alice", PASSWORD, "elsewhere") == []
    assert await log_in(graph, "bob", PASSWORD, "attacker") == []
    await age(raw, WINDOW_SECONDS + 1)
    assert await log_in(graph, "alice", PASSWORD, "attacker") == []


async def test_a_user_cannot_be_locked_out(graph: Graph) -> None:
    """Failures from 60 other networks neither refuse nor delay log-ins from the user's own network."""
    await people(graph, "alice")
    assert await log_in(graph, "alice", PASSWORD, "home") == []
    for n in range(60):
        with patch.object(asyncio, "sleep", no_sleep()):
            assert await log_in(graph, "alice", WRONG, f"attacker {n}") == FAILED

    sleep = no_sleep()
    with patch.object(asyncio, "sleep", sleep):
        assert await log_in(graph, "alice", PASSWORD, "home") == []
        assert sleep.slept == []
        assert await log_in(graph, "alice", PASSWORD, "on a journey") == []
        assert sleep.slept == [MAX_DELAY]


async def test_a_known_network_is_delayed_after_its_own_failure(graph: Graph) -> None:
    """Otherwise another user of that network could guess without delay. Successes never cause delays."""
    attempts = Attempts(graph.store)
    for n in range(REMEMBERED_FAILURES):
        await attempts.succeed(await attempts.begin("alice", f"office {n}"))
    assert (await attempts.begin("alice", "new")).delay == 0
    for n in range(REMEMBERED_FAILURES):
        await attempts.begin("alice", f"attacker {n}")
    known = f"office {REMEMBERED_FAILURES - 1}"

    delays = [(await attempts.begin("alice", known)).delay for _ in range(2)]

    assert delays == [0, MAX_DELAY]


async def test_a_network_is_known_for_a_month(graph: Graph, raw: Redis) -> None:
    """A log-in from another network removes it from the known ones."""
    attempts = Attempts(graph.store)
    await attempts.succeed(await attempts.begin("alice", "former"))
    await age(raw, NETWORK_SECONDS - 60)
    await attempts.succeed(await attempts.begin("alice", "current"))
    for n in range(REMEMBERED_FAILURES):
        await attempts.begin("alice", f"attacker {n}")
    assert (await attempts.begin("alice", "former")).delay == 0

    await age(raw, 120)
    await attempts.succeed(await attempts.begin("alice", "current"))
    for n in range(REMEMBERED_FAILURES):
        await attempts.begin("alice", f"attacker {n}")
    assert (await attempts.begin("alice", "former")).delay == MAX_DELAY


async def test_a_full_queue_refuses_before_the_store_is_asked(graph: Graph) -> None:
    """Therefore, refused requests write nothing."""

    def refuse(network: str) -> None:
        raise Overloaded("busy")

    async with counted(graph) as cost:
        with patch.object(graph.users.hashing, "check_room", refuse), pytest.raises(Overloaded):
            await graph.users.check_password("alice", PASSWORD)

    assert cost.round_trips == 0


async def test_a_success_removes_only_the_failures_of_its_network(graph: Graph) -> None:
    await people(graph, "alice")
    for _ in range(2):
        for _ in range(FREE_ATTEMPTS - 1):
            await log_in(graph, "alice", WRONG, "typing")
        assert await log_in(graph, "alice", PASSWORD, "typing") == []
    with patch.object(asyncio, "sleep", no_sleep()):
        for _ in range(FREE_ATTEMPTS):
            await log_in(graph, "alice", WRONG, "attacker")

    assert await log_in(graph, "alice", PASSWORD, "typing") == []
    assert await log_in(graph, "alice", PASSWORD, "attacker") == REFUSED


async def test_each_failure_counts_for_fifteen_minutes(graph: Graph, raw: Redis) -> None:
    """A later failure of the same network does not keep the earlier ones."""
    await people(graph, "alice")
    for _ in range(FREE_ATTEMPTS - 1):
        await log_in(graph, "alice", WRONG)
    await age(raw, WINDOW_SECONDS - 100)
    await log_in(graph, "alice", WRONG)
    assert await log_in(graph, "alice", PASSWORD) == REFUSED
    await age(raw, 101)

    assert await log_in(graph, "alice", PASSWORD) == []


async def test_refused_log_ins_do_not_extend_the_wait(graph: Graph, raw: Redis) -> None:
    """A client that continues to try succeeds once the failures are 15 minutes old."""
    await people(graph, "alice")
    for _ in range(FREE_ATTEMPTS):
        await log_in(graph, "alice", WRONG)
    await age(raw, WINDOW_SECONDS - 100)
    with pytest.raises(Rejected, match=r"Try again in 2 minutes\."):
        await graph.users.check_password("alice", PASSWORD)
    await age(raw, 101)

    assert await log_in(graph, "alice", PASSWORD) == []


async def test_concurrent_guesses_get_no_more_tries(graph: Graph, another: Open) -> None:
    """Guesses in two processes share one limit."""
    await people(graph, "alice")
    instances = [graph, await another()]

    outcomes = await asyncio.gather(*(log_in(instances[n % 2], "alice", WRONG, "attacker") for n in range(40)))

    assert outcomes.count(FAILED) == FREE_ATTEMPTS
    assert outcomes.count(REFUSED) == 30


async def test_concurrent_log_ins_with_the_right_password_succeed(graph: Graph) -> None:
    [alice] = await people(graph, "alice")

    found = await asyncio.gather(*(graph.users.check_password("alice", PASSWORD, "office") for _ in range(30)))

    assert {user.id for user in found} == {alice}


@pytest.mark.parametrize(
    ("login", "password"),
    [
        ("alice", WRONG),
        ("nobody", PASSWORD),
        ("claimed", PASSWORD),
        ("without", PASSWORD),
        ("al ice", PASSWORD),
        ("", ""),
        ("{alice}", PASSWORD),
        ("x" * 100_000, PASSWORD),
        ("alice", "\ud800"),
        ("alice", "x" * 100_000),
        ("alice", ""),
    ],
)
async def test_a_failed_log_in_does_not_reveal_the_reason(graph: Graph, login: str, password: str) -> None:
    """All failures have the same reply and the same cost: one round trip of one command, and one hash."""
    await people(graph, "alice")
    await graph.users.claim_many([("claimed", "n", await graph.users.hash_password(PASSWORD)), ("without", "n", None)])
    hashes = graph.users.hashing.hashes

    async with counted(graph) as cost:
        with pytest.raises(Rejected) as rejected:
            await graph.users.check_password(login, password)

    assert codes(rejected.value) == FAILED
    assert rejected.value.problems[0].field == ()
    assert (cost.round_trips, cost.commands) == (1, 1)
    assert graph.users.hashing.hashes - hashes == 1


async def test_a_log_in_takes_three_round_trips_and_a_hash(graph: Graph) -> None:
    """The first counts and looks up, the second removes the count, the third reads the user."""
    await people(graph, "alice")
    hashes = graph.users.hashing.hashes

    async with counted(graph) as cost:
        await graph.users.check_password("alice", PASSWORD)

    assert cost.round_trips == 3
    assert graph.users.hashing.hashes - hashes == 1


async def test_a_refusal_takes_one_round_trip_and_no_hash(graph: Graph) -> None:
    for _ in range(FREE_ATTEMPTS):
        await log_in(graph, "alice", WRONG)
    hashes = graph.users.hashing.hashes

    async with counted(graph) as cost:
        assert await log_in(graph, "alice", WRONG) == REFUSED

    assert (cost.round_trips, cost.commands, graph.users.hashing.hashes) == (1, 1, hashes)


async def test_counts_expire_and_contain_no_address(graph: Graph, raw: Redis) -> None:
    """The number of counts is limited for each login."""
    await people(graph, "alice")
    attempts = Attempts(graph.store)
    for n in range(REMEMBERED_FAILURES + 20):
        await attempts.begin("alice", f"192.0.2.{n}")
    for n in range(REMEMBERED_NETWORKS + 5):
        await attempts.succeed(await attempts.begin("alice", f"198.51.100.{n}"))

    stored = {key async for key in raw.scan_iter("*alice*")} - {"login:{alice}"}
    assert "networks:{alice}" in stored
    for key in stored:
        assert 0 < await raw.ttl(key) <= (NETWORK_SECONDS if key.startswith("networks") else WINDOW_SECONDS)
        assert "192.0" not in key
        assert "198.51" not in key
    assert await raw.zcard("attempts:{alice}") <= REMEMBERED_FAILURES
    assert await raw.zcard("networks:{alice}") == REMEMBERED_NETWORKS


async def test_an_attempt_that_never_ran_is_not_counted(graph: Graph, raw: Redis) -> None:
    """The queue is full, or the client disconnects before its turn."""
    await people(graph, "alice")
    hashing = graph.users.hashing

    async def refuse(network: str) -> None:
        raise Overloaded("busy")

    with patch.object(hashing, "turn", refuse), pytest.raises(Overloaded):
        await graph.users.check_password("alice", WRONG, "busy")
    waiting = asyncio.Event()

    async def wait(network: str) -> None:
        waiting.set()
        await asyncio.Event().wait()

    with patch.object(hashing, "turn", wait):
        leaving = asyncio.create_task(graph.users.check_password("alice", WRONG, "busy"))
        await waiting.wait()
        leaving.cancel()
        await asyncio.wait([leaving])

    assert leaving.cancelled()
    assert [key async for key in raw.scan_iter("attempts:*")] == []


async def test_cancelling_during_the_hash_does_not_remove_the_count(graph: Graph, raw: Redis) -> None:
    await people(graph, "alice")
    hashing, began = graph.users.hashing, asyncio.Event()
    verify = hashing.verify

    async def begin(secret: str | None, password: str) -> bool:
        began.set()
        return await verify(secret, password)

    with patch.object(hashing, "verify", begin):
        leaving = asyncio.create_task(graph.users.check_password("alice", WRONG, "attacker"))
        await began.wait()
        leaving.cancel()
        await asyncio.wait([leaving])

    assert await raw.zcard("attempts:{alice}") == 1


async def test_without_the_store_log_ins_fail(another: Open, graph: Graph) -> None:
    """The log-in fails with StoreUnavailable at each step, and is counted at most once."""
    await people(graph, "alice")
    process = await another()
    for step in ("begin_attempt", "end_attempt"):
        for after in (False, True):
            Fault(process.store, runs(step), after=after)
            with pytest.raises(StoreUnavailable):
                await process.users.check_password("alice", PASSWORD)

    assert await log_in(process, "alice", PASSWORD) == []


async def test_a_repeated_command_counts_once(graph: Graph, raw: Redis) -> None:
    """redis-py repeats a command whose reply was lost."""
    attempts = Attempts(graph.store)
    for _ in range(FREE_ATTEMPTS - 1):
        await attempts.begin("alice", "a")
    with patch("graph.passwords.attempts.secrets.token_hex", return_value="same"):
        for _ in range(3):
            await attempts.begin("alice", "a")

    assert await raw.zcard("attempts:{alice}") == FREE_ATTEMPTS


async def test_attempts_of_different_networks_do_not_wait_for_each_other(another: Open, graph: Graph) -> None:
    await people(graph, "alice")
    process = await another()
    stop = Stop(process.store, runs("begin_attempt"))
    hanging = asyncio.create_task(log_in(process, "alice", WRONG, "attacker"))
    await stop.reached.wait()

    assert await log_in(process, "alice", PASSWORD, "home") == []
    assert not hanging.done()
    stop.resume()
    assert await hanging == FAILED


class no_sleep:  # noqa: N801 - stands for a function
    """A replacement for asyncio.sleep that records the seconds and returns at once."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        if seconds:
            self.slept.append(seconds)
