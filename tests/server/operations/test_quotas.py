"""What one viewer, or one anonymous address, may hold open: beyond it the newcomer is refused, and nobody else."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from graph import Graph
from server.operations.quotas import Quota, QuotaExceeded, network_of
from server.settings import Settings
from tests.server.conftest import Api, Socket, Streamed, events, serving, until

LIVE = "subscription { homeTimeline { cursor } }"
ANYBODYS = 'subscription { events(filter: {keywords: ["x"]}) { cursor } }'


@pytest.fixture
async def strict(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application that lets everybody hold two of each kind."""
    async with serving(settings.model_copy(update={"max_streams": 2}), graph) as api:
        yield api


async def begun(socket: Socket, id: str, query: str = LIVE) -> Any:
    """Subscribe; give what comes first."""
    await socket.subscribe(id, query)
    message = await socket.receive()
    assert message["id"] == id
    return message


async def first_streamed(api: Api, stack: AsyncExitStack, token: str | None, query: str = LIVE) -> Streamed:
    """Subscribe by server-sent events; give what comes first."""
    response = await stack.enter_async_context(api.stream(query, token))
    return await anext(await stack.enter_async_context(aclosing(events(response))))


def refused(errors: Any) -> bool:
    """Tell whether these errors are the one that says so."""
    [error] = errors
    return bool(error["extensions"]["code"] == "RATE_LIMITED" and error["extensions"]["requestId"])


async def test_a_viewer_has_so_many_subscriptions_over_all_transports(strict: Api) -> None:
    """One more is refused with RATE_LIMITED, on each transport; the others go on, other people are not concerned."""
    alice, bob = await strict.token("alice"), await strict.token("bob")
    async with strict.socket(alice) as one, strict.socket(alice) as two, AsyncExitStack() as stack:
        assert (await begun(one, "1"))["type"] == "next"
        assert "data" in (await first_streamed(strict, stack, alice)).data
        refusal = await begun(two, "2")
        assert refusal["type"] == "error"
        assert refused(refusal["payload"])
        assert refused((await first_streamed(strict, stack, alice)).data["errors"])
        await two.subscribe("3", "{ viewer { login } }")
        assert (await two.receive())["payload"] == {"data": {"viewer": {"login": "alice"}}}
        async with strict.socket(bob) as other:
            assert (await begun(other, "1"))["type"] == "next"


async def test_an_address_has_so_many_anonymous_subscriptions(strict: Api) -> None:
    """They do not count for those who say who they are."""
    async with strict.socket() as socket, AsyncExitStack() as stack:
        assert (await begun(socket, "1", ANYBODYS))["type"] == "next"
        assert "data" in (await first_streamed(strict, stack, None, ANYBODYS)).data
        assert refused((await begun(socket, "2", ANYBODYS))["payload"])
        assert "data" in (await first_streamed(strict, stack, await strict.token("alice"), ANYBODYS)).data


async def test_a_subscription_counts_until_it_ends_however_it_does(strict: Api) -> None:
    """Completed by the client, failed from the start, left by closing, torn off: each makes room at once."""
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


async def test_a_socket_runs_so_many_operations(strict: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused alone; when another has ended there is room again."""
    monkeypatch.setattr(strict.websockets, "max_subscriptions_per_connection", 1)
    async with strict.socket(await strict.token("alice")) as socket:
        assert (await begun(socket, "1"))["type"] == "next"
        refusal = await begun(socket, "2", "{ __typename }")
        assert refusal["type"] == "error"
        assert refused(refusal["payload"])
        await socket.send(type="complete", id="1")
        assert (await begun(socket, "3", "{ __typename }"))["type"] == "next"


async def test_a_viewer_has_so_many_sockets(strict: Api) -> None:
    """One more is closed with 1013, which tells clients to try again later; a socket that left makes room."""
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


async def test_sockets_that_were_never_let_in_do_not_count(strict: Api) -> None:
    """A wrong token, or none in time, leaves nothing behind."""
    for _ in range(3):
        async with strict.open_socket() as socket:
            await socket.send(type="connection_init", payload={"authorization": "Bearer x"})
            assert (await socket.closed())[0] == 4403
    assert strict.quotas.sockets.held == 0


def test_a_quota_is_each_holders_own() -> None:
    """Who lets go may hold again; the sum is of all."""
    quota = Quota(1)
    release = quota.acquire("a")
    quota.acquire("b")
    with pytest.raises(QuotaExceeded):
        quota.acquire("a")
    assert quota.held == 2
    release()
    quota.acquire("a")
    assert quota.held == 2


def test_what_is_held_may_weigh_more_than_one() -> None:
    """A weight fits or is refused as a whole, and is given back as a whole."""
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
    """Or a client would have 2^64 of them; IPv4 addresses count one by one, however they are written."""
    assert network_of(host) == holder
