"""The quota of filter terms of a user or an anonymous address."""

import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from graph import Graph
from graph.errors import StoreUnavailable
from resolvers.inputs import EventFilter
from server.settings import Settings
from tests.server.conftest import Api, serving, until
from tests.server.operations.test_quotas import begun, first_streamed, refused


def filtering(words: int) -> str:
    """Return a subscription with a number of words: one term each, and one for the filter."""
    entries = ", ".join(f'"word{n}"' for n in range(words))
    return f"subscription {{ events(filter: {{keywords: [{entries}]}}) {{ cursor }} }}"


@pytest.fixture
async def tight(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application with quotas of 300 terms for a user and three for an anonymous address."""
    async with serving(settings.model_copy(update={"max_filter_terms": 300}), graph) as api:
        yield api


async def test_filters_of_a_viewer_share_a_quota_over_all_transports(tight: Api) -> None:
    """Equal filters count separately. The message contains the current number; other users are not affected."""
    alice, bob = await tight.token("alice"), await tight.token("bob")
    async with tight.socket(alice) as socket, AsyncExitStack() as stack:
        assert (await begun(socket, "1", filtering(149)))["type"] == "next"
        assert "data" in (await first_streamed(tight, stack, alice, filtering(149))).data
        assert tight.quotas.terms.held == 300
        refusal = await begun(socket, "2", filtering(1))
        assert refused(refusal["payload"])
        assert refusal["payload"][0]["message"] == (
            "Your event filters have 300 terms and this one has 2; the limit is 300. "
            "End a subscription first, or use a smaller filter."
        )
        assert refused((await first_streamed(tight, stack, alice, filtering(1))).data["errors"])
        assert "data" in (await first_streamed(tight, stack, bob, filtering(200))).data


async def test_a_stream_does_not_keep_its_arguments(tight: Api) -> None:
    """They may be as large as a request, and the stream may last for days."""
    async with tight.socket(await tight.token("alice")) as socket:
        assert (await begun(socket, "1", filtering(100)))["type"] == "next"
        gc.collect()
        assert not [held for held in gc.get_objects() if isinstance(held, EventFilter)]


async def test_an_anonymous_address_has_a_hundredth_of_the_quota(tight: Api) -> None:
    """It is separate from the quotas of users."""
    async with tight.socket() as socket:
        assert (await begun(socket, "1", filtering(2)))["type"] == "next"
        [error] = (await begun(socket, "2", filtering(1)))["payload"]
        assert error["extensions"]["code"] == "RATE_LIMITED"
        assert "the limit is 3 for anonymous clients" in error["message"]
        async with tight.socket(await tight.token("alice")) as other:
            assert (await begun(other, "1", filtering(10)))["type"] == "next"


async def test_terms_are_released_when_a_stream_ends(tight: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream ends by completion, refusal, a lost connection, or a store outage. The index keeps nothing."""
    alice = await tight.token("alice")
    terms, feed = tight.quotas.terms, tight.app.state.graph.feed
    async with tight.socket(alice) as socket:
        for number in range(3):
            assert (await begun(socket, f"{number}", filtering(250)))["type"] == "next"
            await socket.send(type="complete", id=f"{number}")
            await until(lambda: not terms.held)
        await socket.subscribe("bad", filtering(100).replace('"word0"', '"!"'))
        assert (await socket.receive())["type"] == "error"
        assert terms.held == 0
        await begun(socket, "torn off", filtering(250))
        socket.connection.transport.abort()
        await until(lambda: not terms.held)
    async with AsyncExitStack() as stack:
        await first_streamed(tight, stack, alice, filtering(250))
        assert terms.held == 251
    await until(lambda: not terms.held)

    async def down() -> None:
        raise StoreUnavailable

    monkeypatch.setattr(feed._reader, "ready", down)
    async with AsyncExitStack() as stack:
        failed = await first_streamed(tight, stack, alice, filtering(250))
        assert failed.data["errors"][0]["extensions"]["code"] == "STORE_UNAVAILABLE"
    assert terms.held == 0
    assert not feed._filter_index._filters
    assert len(feed) == 0
