"""Metrics of subscriptions: what has started, and how long live events take."""

import time

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from graph.model import number_at, time_of
from server.auth import Tokens
from server.deliveries import Deliveries
from tests.server.conftest import KEY, Api

LIVE = "subscription ($after: String) { homeTimeline(after: $after) { __typename cursor } }"


async def counted(api: Api) -> tuple[float, float, float]:
    """Return the numbers of started subscriptions and delivered events, and the seconds that the deliveries took."""
    text = (await api.client.get("/metrics")).text
    samples = {each.name: each.value for family in text_string_to_metric_families(text) for each in family.samples}
    return (
        samples["fanline_streams_started_total"],
        samples["fanline_delivery_seconds_count"],
        samples["fanline_delivery_seconds_sum"],
    )


async def test_live_events_are_measured_and_replayed_ones_are_not(api: Api) -> None:
    """Each subscription that gets an event counts; checkpoints and replayed events do not."""
    session = await api.session("alice")
    token = Tokens([KEY]).issue(session)
    async with api.socket(token) as socket:
        await socket.subscribe("1", LIVE)
        cursor = (await socket.receive())["payload"]["data"]["homeTimeline"]["cursor"]
        assert await counted(api) == (1, 0, 0)
        begun = time.time()
        await api.graph.posts.publish(session.user, "live")
        await socket.receive()
        await socket.subscribe("2", LIVE, after=cursor)
        replayed = [(await socket.receive())["payload"]["data"]["homeTimeline"]["__typename"] for _ in range(2)]
        assert "PostAdded" in replayed
        await api.graph.posts.publish(session.user, "for both")
        for _ in range(2):
            await socket.receive()
        started, delivered, seconds = await counted(api)
        took = time.time() - begun + 0.001  # the log's times are whole milliseconds
    assert (started, delivered) == (2, 3)
    assert 0 < seconds < 3 * took


async def test_refused_subscriptions_are_not_counted(api: Api) -> None:
    async with api.socket() as socket:
        await socket.subscribe("1", LIVE)
        assert (await socket.receive())["type"] == "error"
    assert (await counted(api))[0] == 0


def test_a_clock_that_is_ahead_gives_no_negative_time() -> None:
    """The process that committed the event may have such a clock."""
    registry = CollectorRegistry()
    deliveries = Deliveries(registry)
    live_from = deliveries.start()
    deliveries.observe(live_from + (60_000 << 12), live_from)
    deliveries.observe(live_from - 1, live_from)
    assert number_at(time_of(live_from)) == live_from
    assert registry.get_sample_value("fanline_delivery_seconds_sum") == 0
    assert registry.get_sample_value("fanline_delivery_seconds_count") == 1
