"""Data that clients can add to the store: it expires, or its size is limited."""

from collections import Counter

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.accounts.sessions import MAX_SESSIONS
from graph.log.events import PostPublished
from graph.log.requests import request_of
from graph.passwords import attempts
from graph.passwords.attempts import REMEMBERED_FAILURES, REMEMBERED_NETWORKS
from graph.rates import Rate
from tests.support.graph_worlds import PASSWORD, befriend, cached, outcomes_of, people, posts


async def lasting(raw: Redis) -> Counter[str]:
    """Return the numbers of keys that do not expire, by the first part of their names."""
    kept: Counter[str] = Counter()
    async for name in raw.scan_iter(count=1000):
        kept[name.partition(":{")[0]] += await raw.ttl(name) == -1
    return kept


async def test_all_that_clients_without_an_account_write_expires(graph: Graph, raw: Redis) -> None:
    """Failed log-ins, even for logins that do not exist, claims of logins, and rates expire."""
    before = await lasting(raw)

    await outcomes_of(
        *(graph.users.check_password(f"nobody{n}", "wrong", f"network{n % 3}") for n in range(20)),
        *(graph.users.check_password("not a login", "wrong", f"network{n}") for n in range(20)),
    )
    await graph.users.claim_many([(f"claimed{n}", f"nonce{n}", None) for n in range(20)])
    await graph.rates.charge("address:192.0.2.1", [(Rate("points", 60, 60, 60), 10)]).decisions()

    after = await lasting(raw)
    assert {"attempts", "login", "rate"} <= set(after)
    assert +after == +before


async def test_what_a_user_writes_again_and_again_stays_small(
    graph: Graph, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions, networks and failed log-ins are limited. Retries of a request share one key, which expires."""
    monkeypatch.setattr(attempts, "DELAY_STEP", 0.0)
    [alice] = await people(graph, "alice")
    for n in range(MAX_SESSIONS + 10):
        await graph.sessions.start(alice)
        await graph.posts.publish(alice, "once", idempotency_key="k")
        await outcomes_of(
            graph.users.check_password("alice", PASSWORD, f"network{n}"),
            graph.users.check_password("alice", "wrong", f"other{n}"),
        )

    assert await raw.hlen(keys.sessions(alice)) == MAX_SESSIONS
    assert await raw.zcard(keys.networks("alice")) == REMEMBERED_NETWORKS
    assert await raw.zcard(keys.attempts("alice")) <= REMEMBERED_FAILURES
    assert await raw.ttl(keys.idempotency(alice, request_of(PostPublished, alice, "k"))) > 0
    assert await raw.ttl(keys.sessions(alice)) > 0
    assert await raw.xlen(keys.LOG) == 2


async def test_caches_expire(graph: Graph, raw: Redis) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await posts(graph, bob, "one")
    await cached(graph, alice, bob)

    assert await raw.exists(keys.home(alice), keys.home(bob)) == 2
    assert (await lasting(raw))["home"] == 0
