"""Limits on the number of connections, per address and per process."""

import logging
import os
import resource
from dataclasses import replace

import pytest

from graph import Graph
from server.setting_values import Env
from server.settings import Settings
from server.transport import descriptors
from server.transport.connections import Connections
from tests.server.conftest import KEY, Api, serving, until
from tests.server.test_metrics import metrics
from tests.server.transport.conftest import HANDSHAKE, LONG, Raw, refused


@pytest.fixture
def limited(settings: Settings) -> Settings:
    """Return settings with limits."""
    return settings.model_copy(update={"rate_limits": True})


async def answers(connections: list[Raw]) -> list[int]:
    """Send a request over each connection. Return the statuses."""
    for raw in connections:
        await raw.send(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
    return [(await raw.response())[0] for raw in connections]


async def test_connections_of_an_address_are_limited(limited: Settings, graph: Graph) -> None:
    """The limit covers HTTP and WebSocket together. Closed connections make room."""
    async with serving(limited, graph) as api:
        held = [await Raw.open(api) for _ in range(100)]
        await held[0].upgrade()
        assert await answers(held[1:]) == [200] * 99
        beyond = [await Raw.open(api) for _ in range(100)]
        assert {(await raw.response())[0] for raw in beyond} == {429}
        assert refused(api) == {"address": 100}
        for raw in held:
            raw.close()
        await until(lambda: not len(api.app.state.connections))
        assert not api.app.state.connections._by_address
        await until(lambda: not api.server.server_state.connections)
        assert await answers([await Raw.open(api)]) == [200]


async def test_a_trusted_proxy_has_no_limit(limited: Settings, graph: Graph) -> None:
    """All clients of the proxy have its address."""
    trusting = limited.model_copy(update={"trusted_proxies": ("127.0.0.0/8",), "max_connections": 10})
    async with serving(trusting, graph) as api:
        assert await answers([await Raw.open(api) for _ in range(30)]) == [200] * 30
        assert refused(api) == {}


async def test_there_is_no_limit_in_development(api: Api) -> None:
    """This is the default."""
    assert await answers([await Raw.open(api) for _ in range(120)]) == [200] * 120


def test_the_limit_is_on_in_production() -> None:
    """It is on by default."""
    production = Settings(env=Env.PRODUCTION, secret=(KEY,))
    assert production.limits_rates
    assert not production.model_copy(update={"rate_limits": False}).limits_rates
    assert not Settings().limits_rates


async def test_a_network_of_ipv6_counts_as_one_address() -> None:
    """A client has a /64 network to itself."""
    connections = Connections(per_address=2)
    connections.timeouts = LONG
    hosts = [
        "2001:db8::1",
        "2001:db8::2",
        "2001:db8::3",
        "2001:db8:0:1::1",
        "::ffff:192.0.2.1",
        "192.0.2.1",
        "192.0.2.1",
    ]
    refusals = [connections.add(Idle(), host, 3) for host in hosts]
    assert [bool(reason) for reason in refusals] == [False, False, True, False, False, False, True]


class Idle:
    """A connection without a deadline."""

    deadline = float("inf")

    def expire(self, now: float) -> None:
        raise AssertionError


async def test_connections_leave_a_reserve_of_descriptors(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """Connections in the reserve are closed at once, with one log line for all. Open connections continue."""
    held = [await Raw.open(api) for _ in range(3)]
    assert await answers(held) == [200] * 3
    api.app.state.connections.ceiling = os.dup(0)
    os.close(api.app.state.connections.ceiling)
    beyond = [await Raw.open(api) for _ in range(50)]
    assert {await raw.rest() for raw in beyond} == {b""}
    assert refused(api)["descriptors"] >= 49  # the client's ends are descriptors of the same process
    assert await answers(held) == [200] * 3
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_the_limit_of_descriptors_is_raised() -> None:
    """It is raised to the system's limit, of which a reserve is kept."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 100, hard))
    descriptors.raise_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft
    assert descriptors.ceiling() <= soft - descriptors.MIN_RESERVE


async def test_metrics_count_refused_connections(api: Api, raw: Raw) -> None:
    """They are counted by reason, along with the number of open connections."""
    await raw.send(b"nonsense\r\n\r\n")
    await raw.rest()
    raw.close()
    await until(lambda: not len(api.app.state.connections))
    async with api.socket():
        seen = await metrics(api)
    assert seen["fanline_open_connections"] == 2
    assert seen["fanline_connections_refused_total"] == 1


async def test_a_socket_counts_once(api: Api, raw: Raw) -> None:
    """It replaces the connection of its handshake."""
    await raw.send(HANDSHAKE)
    await raw.until(b"\r\n\r\n")
    assert len(api.app.state.connections) == 1
    assert replace(LONG) == api.app.state.connections.timeouts
