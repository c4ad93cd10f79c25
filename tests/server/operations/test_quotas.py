"""Quotas, turns and points of events of a user or an anonymous address."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from graph import Graph
from server.errors import RateLimited
from server.operations.quotas import MAX_WAITING, EventPoints, Quota, QuotaExceeded, Turns
from server.settings import Settings
from server.transport.networks import network_of
from tests.server.conftest import Api, Socket, Streamed, events, serving, until
from tests.support.graph_worlds import PATIENCE

LIVE = "subscription { homeTimeline { cursor } }"
ANYBODYS = 'subscription { events(filter: {keywords: ["x"]}) { cursor } }'


@pytest.fixture
async def strict(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application whose quotas are two."""
    async with serving(settings.model_copy(update={"max_streams": 2}), graph) as api:
        yield api


async def begun(socket: Socket, id: str, query: str = LIVE) -> Any:
    """Subscribe and return the first message."""
    await socket.subscribe(id, query)
    message = await socket.receive()
    assert message["id"] == id
    return message


async def first_streamed(api: Api, stack: AsyncExitStack, token: str | None, query: str = LIVE) -> Streamed:
    """Subscribe by server-sent events and return the first event."""
    response = await stack.enter_async_context(api.stream(query, token))
    return await anext(await stack.enter_async_context(aclosing(events(response))))


def refused(errors: Any) -> bool:
    """Return True if the only error is that of a quota."""
    [error] = errors
    return bool(error["extensions"]["code"] == "RATE_LIMITED" and error["extensions"]["requestId"])


async def test_subscriptions_of_a_viewer_are_limited_over_all_transports(strict: Api) -> None:
    """One more is refused with RATE_LIMITED on each transport. Other subscriptions and users are not affected."""
    alice, bob = await strict.token("alice"), await strict.token("bob")
    async with strict.socket(alice) as one, strict.socket(alice) as two, AsyncExitStack() as stack:
        assert (await begun(one, "1"))["type"] == "next"
        assert "data" in (await first_streamed(strict, stack, alice)).data
        refusal = await begun(two, "2")
        assert refusal["type"] == "error"
        assert refused(refusal["payload"])
        assert refused((await first_streamed(strict, stack, alice)).data["errors"])
        await two.subscribe("3", "{ viewer { user { login } } }")
        assert (await two.receive())["payload"] == {"data": {"viewer": {"user": {"login": "alice"}}}}
        async with strict.socket(bob) as other:
            assert (await begun(other, "1"))["type"] == "next"


async def test_subscriptions_to_one_field_are_limited(settings: Settings, graph: Graph) -> None:
    """Aliases and fragments do not evade the limit. Other fields and users are not affected. Ending one makes room."""
    documents = [
        LIVE,
        "subscription { mine: homeTimeline { cursor } }",
        "subscription { ...Mine } fragment Mine on Subscription { ... on Subscription { homeTimeline { cursor } } }",
    ]
    async with serving(settings.model_copy(update={"max_streams_per_field": 2}), graph) as api:
        alice = await api.token("alice")
        async with api.socket(alice) as socket, api.socket(await api.token("bob")) as other:
            for at, document in enumerate(documents):
                message = await begun(socket, f"{at}", document)
                assert message["type"] == ("next" if at < 2 else "error")
            assert refused(message["payload"])
            [error] = message["payload"]
            expected = (
                "You have 2 live subscriptions to 'homeTimeline', which is the limit for one field. End one first."
            )
            assert error["message"] == expected
            assert (await begun(socket, "another", "subscription { notifications { cursor } }"))["type"] == "next"
            assert (await begun(other, "1"))["type"] == "next"
            assert api.quotas.streams.held == 4
            await socket.send(type="complete", id="1")
            await until(lambda: api.quotas.streams.held == 3)
            assert (await begun(socket, "3"))["type"] == "next"


async def test_anonymous_subscriptions_of_an_address_are_limited(strict: Api) -> None:
    """Subscriptions of users from the same address do not count."""
    async with strict.socket() as socket, AsyncExitStack() as stack:
        assert (await begun(socket, "1", ANYBODYS))["type"] == "next"
        assert "data" in (await first_streamed(strict, stack, None, ANYBODYS)).data
        assert refused((await begun(socket, "2", ANYBODYS))["payload"])
        assert "data" in (await first_streamed(strict, stack, await strict.token("alice"), ANYBODYS)).data


async def test_a_subscription_counts_until_it_ends(strict: Api) -> None:
    """It ends by completion, an error at the start, a close, or a lost connection."""
    alice = await strict.token("alice")
    quota = strict.quotas.streams
    async with strict.socket(alice) as socket:
        for number in range(4):
            assert (await begun(socket, f"{number}"))["type"] == "next"
            await socket.send(type="complete", id=f"{number}")
            await until(lambda: not quota.held)
            broken = LIVE.replace("homeTimeline", 'homeTimeline(after: "x")')
            assert (await begun(socket, "broken", broken))["type"] == "error"
            await until(lambda: not quota.held)
        await begun(socket, "a")
        await begun(socket, "b")
        assert quota.held == 2
    await until(lambda: not quota.held)
    async with strict.socket(alice) as socket:
        await begun(socket, "a")
        socket.connection.transport.abort()
        await until(lambda: not quota.held)
    async with AsyncExitStack() as stack:
        await first_streamed(strict, stack, alice)
        assert quota.held == 1
    await until(lambda: not quota.held)


async def test_operations_of_a_socket_are_limited(strict: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused; after another has ended there is room again."""
    monkeypatch.setattr(strict.websockets, "max_subscriptions_per_connection", 1)
    async with strict.socket(await strict.token("alice")) as socket:
        assert (await begun(socket, "1"))["type"] == "next"
        refusal = await begun(socket, "2", "{ __typename }")
        assert refusal["type"] == "error"
        assert refused(refusal["payload"])
        await socket.send(type="complete", id="1")
        assert (await begun(socket, "3", "{ __typename }"))["type"] == "next"


async def test_sockets_of_a_viewer_are_limited(strict: Api) -> None:
    """One more is closed with 1013, so that clients retry later. A closed socket makes room."""
    alice, bob = await strict.token("alice"), await strict.token("bob")
    async with strict.socket(alice) as stays, strict.open_socket() as third:
        async with strict.socket(alice):
            await third.send(type="connection_init", payload={"authorization": f"Bearer {alice}"})
            assert await third.closed() == (1013, "Too many WebSockets. Close one first.")
            async with strict.socket(bob), strict.socket():
                pass
        await until(lambda: strict.quotas.sockets.held == 1)
        async with strict.socket(alice):
            assert (await begun(stays, "1"))["type"] == "next"


async def test_unacknowledged_sockets_do_not_count(strict: Api) -> None:
    for _ in range(3):
        async with strict.open_socket() as socket:
            await socket.send(type="connection_init", payload={"authorization": "Bearer x"})
            assert (await socket.closed())[0] == 4403
    assert strict.quotas.sockets.held == 0


def test_a_quota_applies_to_each_holder() -> None:
    """After a release there is room again. `held` is the sum of all holders."""
    quota = Quota(1)
    release = quota.acquire("a")
    quota.acquire("b")
    with pytest.raises(QuotaExceeded):
        quota.acquire("a")
    assert quota.held == 2
    release()
    quota.acquire("a")
    assert quota.held == 2


def test_a_quota_counts_weights() -> None:
    """A weight is acquired, refused and released as a whole."""
    quota = Quota(10)
    release = quota.acquire("a", 7)
    with pytest.raises(QuotaExceeded):
        quota.acquire("a", 4)
    assert quota.held_by("a") == 7
    quota.acquire("a", 3)
    release()
    assert (quota.held_by("a"), quota.held_by("b"), quota.held) == (3, 0, 3)


@pytest.mark.parametrize(
    ("host", "holder"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("", ""),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(host: str, holder: str) -> None:
    """A client has 2^64 IPv6 addresses. IPv4 addresses count separately, in every notation."""
    assert network_of(host) == holder


async def test_turns_are_taken_in_order() -> None:
    """Two operations run and the others wait; the longest-waiting operation is next."""
    turns, order = Turns(2), []

    async def run(name: int) -> None:
        await turns.acquire("a")
        order.append(name)
        await asyncio.sleep(0)
        turns.release("a")

    await asyncio.gather(*(run(number) for number in range(10)))
    assert order == list(range(10))
    assert not turns._running
    assert not turns._waiting


async def test_the_turn_of_a_cancelled_operation_goes_to_the_next() -> None:
    """It may be cancelled while it waits, or in the event-loop iteration of its turn."""
    turns = Turns(1)
    await turns.acquire("a")
    first, second, third = [asyncio.ensure_future(turns.acquire("a")) for _ in range(3)]
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    turns.release("a")
    second.cancel()  # it has its turn already, and does not know yet
    await asyncio.wait([first, second])
    await asyncio.wait_for(third, PATIENCE)
    turns.release("a")
    assert not turns._running


async def test_too_many_waiting_operations_are_refused() -> None:
    """The limit bounds memory. Other holders do not wait."""
    turns = Turns(1)
    await turns.acquire("a")
    waiting = [asyncio.ensure_future(turns.acquire("a")) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited, match="Send fewer at the same time"):
        await turns.acquire("a")
    await turns.acquire("b")
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)


async def test_a_bucket_holds_the_points_of_a_minute() -> None:
    """A charge beyond them is a debt, and nobody else pays it."""
    points = EventPoints(60)
    points.charge("a", 60)
    assert points.delay("a") == 0
    points.charge("a", 1)
    assert 0 < points.delay("a") <= 1
    assert points.left("a") <= 0 < points.left("b") == 60
    assert points.delay("b") == 0


async def test_all_that_wait_for_points_go_on_together() -> None:
    """A stream that ends meanwhile does not affect the others."""
    points = EventPoints(60_000)
    points.charge("a", 60_100)
    waiting = [asyncio.create_task(points.wait("a")) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    done, _ = await asyncio.wait(waiting[1:], return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)
    assert all(task.done() for task in waiting)
    assert points.delay("a") == 0
    assert len(done) >= 1


async def test_full_buckets_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket in debt is kept."""
    points = EventPoints(60_000_000)
    points.charge("in debt", 10**9)
    for at in range(5_000):
        points.charge(f"{at}", 1)
        if at % 100 == 0:
            await asyncio.sleep(0.001)  # the clock of uvloop shows milliseconds
    assert points.delay("in debt")
    assert len(points._full_at) <= 2_100
