"""Metrics for Prometheus: backlogs, live streams, and outages."""

import asyncio
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from graph import Graph
from graph.log.events import PostPublished
from graph.paging import CursorKind, encode_cursor
from server.embedded import EmbeddedStore
from server.setting_values import Env
from server.settings import Settings
from tests.server.conftest import Api, serving, until
from tests.server.endpoint.test_endpoint import error_of

TOKEN = "a-token-of-prometheus"


async def metrics(api: Api) -> dict[str, float]:
    """Read all metrics."""
    response = await api.client.get("/metrics")
    assert response.status_code == 200
    families = text_string_to_metric_families(response.text)
    return {sample.name: sample.value for family in families for sample in family.samples}


async def test_metrics_report_the_backlog_of_workers(settings: Settings, graph: Graph) -> None:
    """Unprojected events count as backlog until a worker has projected them."""
    async with serving(settings.model_copy(update={"worker": False}), graph) as api:
        [event] = await graph.log.append([PostPublished(1, "hi")])
        before = await metrics(api)
        await graph.worker().drain()
        after = await metrics(api)

    assert before["fanline_store_up"] == 1
    assert before["fanline_undrained_seconds"] > 0
    assert after["fanline_undrained_seconds"] == 0
    assert after["fanline_dead_letters"] == after["fanline_open_fan_out_tasks"] == 0
    assert after["fanline_store_commands_total"] > before["fanline_store_commands_total"]
    assert event.number == await graph.log.watermark()


async def test_metrics_count_live_streams(api: Api) -> None:
    """The current number of live streams, and the number of streams cut off as too slow."""
    session = await api.session("alice")
    stream = api.app.state.graph.feed.home(session.user)
    await anext(stream)
    pending = asyncio.ensure_future(anext(stream))
    async with asyncio.timeout(10):
        while (live := await metrics(api))["fanline_live_streams"] != 1:  # noqa: ASYNC110 - streams have no event to wait for
            await asyncio.sleep(0.01)
    pending.cancel()
    await asyncio.wait([pending])
    await stream.aclose()
    assert (await metrics(api))["fanline_live_streams"] == 0
    assert live["fanline_live_cut_off_total"] == 0


async def test_in_production_metrics_are_served_only_with_a_token(settings: Settings, graph: Graph) -> None:
    """Without a token in the settings the response is 404; with one, requests must send the same token."""
    closed = settings.model_copy(update={"env": Env.PRODUCTION})
    async with serving(closed, graph) as api:
        assert (await api.client.get("/metrics")).status_code == 404
    async with serving(closed.model_copy(update={"metrics_token": TOKEN}), graph) as api:
        answers = [
            await api.client.get("/metrics", headers=[(b"authorization", given.encode())])
            for given in ("", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", "Bearer ü")
        ]
        admitted = await api.client.get("/metrics", headers={"authorization": f"bearer {TOKEN}"})

    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    assert not any("fanline_" in answer.text for answer in answers)
    assert admitted.status_code == 200
    assert "fanline_store_up 1.0" in admitted.text


async def test_metrics_count_open_sockets(api: Api) -> None:
    """From the acknowledgement until the close."""
    async with api.open_socket(), api.socket():
        assert (await metrics(api))["fanline_open_sockets"] == 1
    await until(lambda: not api.quotas.sockets.held)
    assert (await metrics(api))["fanline_open_sockets"] == 0


async def test_metrics_answer_without_the_store(settings: Settings, tmp_path: Path, graph: Graph) -> None:
    """They report that the store is down."""
    store = EmbeddedStore(tmp_path / "away")
    store.start()
    async with serving(settings.model_copy(update={"store_url": store.url, "worker": False}), graph) as api:
        store.stop()
        assert (await metrics(api))["fanline_store_up"] == 0


PAGE = """query($after: String) {
  user(by: {login: "alice"}) { timeline { posts(first: 5, after: $after) { nodes { text } } } }
}"""


async def test_an_archive_that_is_down_is_counted_and_named(settings: Settings, tmp_path: Path, graph: Graph) -> None:
    """Hot posts are served, other pages fail with ARCHIVE_UNAVAILABLE, and moves continue after the outage."""
    (tmp_path / "blocked").mkdir()
    blocked = settings.model_copy(update={"archive_url": f"sqlite:///{tmp_path}/blocked", "hot_posts": 10})
    whole = settings.model_copy(update={"archive_url": f"sqlite:///{tmp_path}/archive.sqlite", "hot_posts": 10})
    author = (await graph.users.sign_up("alice", "correct horse")).id
    ids = [event.number for event in await graph.log.append([PostPublished(author, f"post {n}") for n in range(1020)])]
    async with serving(blocked, graph) as api:
        served: Graph = api.app.state.graph
        await served.worker().drain()
        assert served.archiver is not None
        running = asyncio.create_task(served.archiver.run())
        while not (failures := (await metrics(api))["fanline_archive_failures_total"]):
            continue
        running.cancel()
        assert failures >= 1
        assert (await metrics(api))["fanline_archivable_authors"] == 1
        assert texts(await api.ask(PAGE)) == [f"post {n}" for n in (1019, 1018, 1017, 1016, 1015)]

    async with serving(whole, graph) as api:
        served = api.app.state.graph
        assert served.archiver is not None
        await served.archiver.work()
        assert (await metrics(api))["fanline_archived_posts_total"] == 1000
        assert (await metrics(api))["fanline_archivable_authors"] == 0
        deep = encode_cursor(CursorKind.POST, ids[1002])
        assert texts(await api.ask(PAGE, None, after=deep)) == [f"post {n}" for n in (1001, 1000, 999, 998, 997)]

    async with serving(blocked, graph) as api:
        assert error_of(await api.ask(PAGE, None, after=deep))[0] == "ARCHIVE_UNAVAILABLE"
        assert texts(await api.ask(PAGE)) == [f"post {n}" for n in (1019, 1018, 1017, 1016, 1015)]


def texts(response: httpx.Response) -> list[str]:
    """Return the texts of a page."""
    return [node["text"] for node in response.json()["data"]["user"]["timeline"]["posts"]["nodes"]]
