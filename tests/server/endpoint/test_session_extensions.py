"""Browser sessions are extended while they are in use."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from graph import Graph, keys
from graph.errors import StoreFull
from graph.model import Credentials
from server.auth import Tokens
from server.settings import Settings
from tests.conftest import SharedStore
from tests.server.conftest import KEY, Api, events, serving
from tests.server.endpoint.test_session_cookies import LOG_OUT, OWN, VIEWER, ask, cookie_of, token
from tests.support.cluster import nodes_of
from tests.support.graph_worlds import PATIENCE
from tests.support.stopped import stopped

__all__ = ["token"]

LIVE = "subscription { homeTimeline { __typename } }"


@pytest.fixture
def older(token: str) -> str:
    """Return a token of the same session that expires in two days."""
    viewer = Tokens([KEY]).verify(token)
    return Tokens([KEY]).issue(Credentials(viewer.session, viewer.user, datetime.now(UTC) + timedelta(days=2)))


async def test_a_session_in_use_is_extended_once_a_day(api: Api, graph: Graph, token: str, older: str) -> None:
    """It is extended in the store and in the cookie. An ended session is not extended."""
    viewer = Tokens([KEY]).verify(older)
    soon = viewer.expires_at
    assert "set-cookie" not in (await ask(api, VIEWER, token, **OWN)).headers

    renewed = str(cookie_of(await ask(api, VIEWER, older, **OWN)).value)

    assert Tokens([KEY]).verify(renewed).expires_at > soon + timedelta(days=20)
    [expiry] = await graph.store.read([("HGET", keys.sessions(viewer.user), viewer.session)])
    assert int(expiry) > time.time() + 20 * 86_400
    await graph.sessions.end(viewer.user)
    assert await graph.sessions.renew(viewer.user, viewer.session, soon) is None


async def test_a_failed_request_extends_no_session(
    settings: Settings, graph: Graph, older: str, running_store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During an outage of the store, an extension would make the request wait once more."""
    renewals: list[object] = []

    async def renew(*call: object) -> None:
        renewals.append(call)

    monkeypatch.setattr(type(graph.sessions), "renew", renew)
    async with serving(settings.model_copy(update={"deadline": timedelta(milliseconds=50)}), graph) as api:
        with stopped(*(node.pid for node in nodes_of(running_store))):
            failed = await ask(api, VIEWER, older, **OWN)
        assert (failed.status_code, renewals) == (503, [])


async def test_an_event_stream_extends_the_session(api: Api, token: str, older: str) -> None:
    """A page that stays open for weeks may send nothing else."""
    async with api.stream(LIVE, cookie=f"fanline_session={older}", **OWN) as response:
        renewed = Tokens([KEY]).verify(cookie_of(response).value)
    assert renewed.session == Tokens([KEY]).verify(token).session


async def test_an_event_stream_outlives_the_token_of_an_extended_session(
    api: Api, older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends without an error and without `complete`, so that the client reconnects with the extended cookie."""
    loop, timers = asyncio.get_running_loop(), list[tuple[float, Callable[[], object]]]()
    call_later = loop.call_later

    def record(seconds: float, callback: Callable[..., object], *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        if getattr(callback, "__name__", "") == "_end_early":
            timers.append((seconds, partial(callback, *arguments)))
        return call_later(seconds, callback, *arguments, **options)

    monkeypatch.setattr(loop, "call_later", record)
    async with api.stream(LIVE, cookie=f"fanline_session={older}", **OWN) as response:
        extended = cookie_of(response).value
        received = events(response)
        assert (await anext(received)).name == "next"
        [(seconds, end_early)] = timers
        left = (Tokens([KEY]).verify(older).expires_at - datetime.now(UTC)).total_seconds()
        assert seconds == pytest.approx(left, abs=PATIENCE)
        end_early()
        assert [each.name async for each in received] == []
    async with api.stream(LIVE, cookie=f"fanline_session={extended}", **OWN) as response:
        assert (await anext(events(response))).name == "next"


async def test_an_extension_does_not_shorten_a_session(api: Api, graph: Graph, token: str) -> None:
    """Another process, whose clock is ahead, may have extended it."""
    viewer = Tokens([KEY]).verify(token)
    later = int(time.time()) + 40 * 86_400
    await graph.store.run("HSET", keys.sessions(viewer.user), viewer.session, str(later))
    assert await graph.sessions.renew(viewer.user, viewer.session, datetime.now(UTC) + timedelta(days=2))
    assert await graph.store.run("HGET", keys.sessions(viewer.user), viewer.session) == str(later)


async def test_a_log_out_wins_over_extensions(api: Api, graph: Graph, older: str) -> None:
    """Two tabs extend the session while a third one logs out."""
    viewer = Tokens([KEY]).verify(older)
    documents = [*[VIEWER] * 5, LOG_OUT, *[VIEWER] * 5]
    await asyncio.gather(*(ask(api, document, older, **OWN) for document in documents))
    assert await graph.store.run("HGET", keys.sessions(viewer.user), viewer.session) is None
    assert (await ask(api, VIEWER, older, **OWN)).status_code == 401


async def test_a_failed_extension_does_not_fail_the_request(
    api: Api, older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operation was executed. A later request tries again."""

    async def full(*_: object) -> None:
        raise StoreFull

    with monkeypatch.context() as patch:
        patch.setattr(type(api.app.state.graph.sessions), "renew", full)
        response = await ask(api, VIEWER, older, **OWN)
    assert (response.status_code, "set-cookie" in response.headers) == (200, False)
    assert "set-cookie" in (await ask(api, VIEWER, older, **OWN)).headers
