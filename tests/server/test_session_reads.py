"""Counts how often a subscription reads its session from the store: once, when it starts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from graph import keys
from server.auth import Tokens
from tests.server.conftest import KEY, Api, events, until
from tests.support.graph_worlds import PATIENCE
from tests.support.raw import open_raw

pytestmark = pytest.mark.single_server("watches the server with MONITOR")

SUBSCRIPTIONS = {
    "home timeline": "subscription { homeTimeline { __typename cursor } }",
    "events": 'subscription { events(filter: {keywords: ["rain"]}) { __typename cursor } }',
}


@asynccontextmanager
async def session_reads(store_url: str, user: int) -> AsyncIterator[list[str]]:
    """Collect the commands on the sessions of a user that the store executes."""
    commands: list[str] = []
    last = f"the last command about {user}"

    async def collect(monitoring: asyncio.Event) -> None:
        async with Redis.from_url(store_url, decode_responses=True).monitor() as monitor:
            monitoring.set()
            while last not in (command := (await monitor.next_command())["command"]):
                if keys.sessions(user) in command:
                    commands.append(command)

    monitoring = asyncio.Event()
    collecting = asyncio.create_task(collect(monitoring))
    await asyncio.wait_for(monitoring.wait(), PATIENCE)
    yield commands
    async with open_raw(store_url) as client:
        await client.echo(last)
    await asyncio.wait_for(collecting, PATIENCE)


async def live(api: Api) -> None:
    """Wait until the server has one live subscription."""
    await until(lambda: len(api.app.state.graph.feed) == 1)


@pytest.mark.parametrize("query", SUBSCRIPTIONS.values(), ids=SUBSCRIPTIONS)
async def test_an_event_stream_reads_its_session_once(api: Api, store_url: str, query: str) -> None:
    session = await api.log_in("alice")
    token = Tokens([KEY]).issue(session)
    async with session_reads(store_url, session.user) as reads, api.stream(query, token) as response:
        assert "data" in (await anext(events(response))).data
        await live(api)
    assert reads == [f"HGET {keys.sessions(session.user)} {session.id}"]


@pytest.mark.parametrize("query", SUBSCRIPTIONS.values(), ids=SUBSCRIPTIONS)
async def test_a_subscription_on_an_open_socket_reads_the_session_once(api: Api, store_url: str, query: str) -> None:
    session = await api.log_in("alice")
    async with (
        api.socket(Tokens([KEY]).issue(session)) as socket,
        session_reads(store_url, session.user) as reads,
    ):
        await socket.subscribe("1", query)
        assert (await socket.receive())["type"] == "next"
        await live(api)
    assert reads == [f"HGET {keys.sessions(session.user)} {session.id}"]


async def test_a_socket_reads_its_session_once_before_it_is_acknowledged(api: Api, store_url: str) -> None:
    session = await api.log_in("alice")
    async with session_reads(store_url, session.user) as reads, api.socket(Tokens([KEY]).issue(session)):
        pass
    assert reads == [f"HGET {keys.sessions(session.user)} {session.id}"]


async def test_a_refused_subscription_counts_for_the_network_from_then_on(api: Api) -> None:
    """The process remembers that the session has ended, so a stolen token uses no quota of its user."""
    session = await api.session("alice")
    await api.graph.sessions.end(session.user, session.id)
    async with api.stream(SUBSCRIPTIONS["events"], Tokens([KEY]).issue(session)) as response:
        assert response.status_code == 401
    assert api.app.state.graph.sessions.has_ended(session.user, session.id)
