"""Metrics for Prometheus: backlogs, live streams, and outages."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from graph import Graph, keys
from graph.log.events import PostPublished
from graph.paging import CursorKind, encode_cursor
from server.embedded import EmbeddedStore
from server.metrics import forget_dead_processes
from server.setting_values import Env
from server.settings import Settings
from tests.server.conftest import Api, serving, until
from tests.server.endpoint.test_endpoint import error_of
from tests.support.graph_worlds import PATIENCE, append_events, background, counted
from tests.support.graphs import archive_file, archive_url_of

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
        [event] = await append_events(graph, [PostPublished(1, "hi")])
        before = await metrics(api)
        await graph.worker().drain()
        after = await metrics(api)

    assert before["fanline_store_up"] == 1
    assert before["fanline_unprojected_seconds"] > 0
    assert after["fanline_unprojected_seconds"] == 0
    assert after["fanline_dead_letters"] == after["fanline_open_fan_out_tasks"] == 0
    assert after["fanline_store_commands_total"] > before["fanline_store_commands_total"]
    assert event.number == await graph.log.watermark()


async def test_metrics_report_the_memory_of_the_store(api: Api) -> None:
    """It is reported as the used part of its limit."""
    assert 0 < (await metrics(api))["fanline_store_fullness"] < 0.5


async def test_metrics_count_live_streams(api: Api) -> None:
    """The current number of live streams, and the number of streams cut off as too slow."""
    session = await api.session("alice")
    stream = api.app.state.graph.feed.home(session.user)
    await anext(stream)
    pending = asyncio.ensure_future(anext(stream))
    async with asyncio.timeout(PATIENCE):
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
    """A socket counts from the acknowledgement until the close."""
    async with api.open_socket(), api.socket():
        assert (await metrics(api))["fanline_open_sockets"] == 1
    await until(lambda: not api.quotas.sockets.held)
    assert (await metrics(api))["fanline_open_sockets"] == 0


async def test_metrics_answer_without_the_store(settings: Settings, tmp_path: Path, graph: Graph) -> None:
    """They report that the store is down."""
    store = EmbeddedStore(tmp_path / "away")
    store.start()
    away = settings.model_copy(update={"store_url": store.url, "archive_url": archive_url_of(store.url)})
    async with serving(away, graph) as api:
        store.stop()
        assert (await metrics(api))["fanline_store_up"] == 0


COUNTED = "{ viewer { user { timeline { entries(first: 2) { nodes { author { name followersCount } } } } } } }"
PAGE = """query($after: String) {
  user(by: {login: "alice"}) { timeline { entries(first: 5, after: $after) { nodes { ... on Post { text } } } } }
}"""


async def test_metrics_report_the_lag_and_the_work_of_the_archiver(settings: Settings, graph: Graph) -> None:
    """They come from the store, so any process reports them, whichever process archives."""
    async with serving(settings, graph) as api:
        await append_events(graph, [PostPublished(1, "hi"), PostPublished(1, "again")])
        await graph.worker().drain()
        before = await metrics(api)
        await graph.archiver.work()
        after = await metrics(api)

    assert before["fanline_unarchived_events"] == 2
    assert before["fanline_unarchived_seconds"] > 0
    assert after["fanline_unarchived_events"] == after["fanline_unarchived_seconds"] == 0
    assert (before["fanline_archived_events_total"], after["fanline_archived_events_total"]) == (0, 2)
    assert (before["fanline_archive_batches_total"], after["fanline_archive_batches_total"]) == (0, 1)
    assert after["fanline_archive_batch_seconds_total"] > 0
    assert (after["fanline_log_events"], after["fanline_log_limit"]) == (2, 2_000_000)


@pytest.mark.single_server("a cluster has no near cache")
async def test_metrics_count_what_the_near_cache_finds(settings: Settings, graph: Graph) -> None:
    """Misses, entries and invalidations are counted too. The setting turns the cache on."""
    async with serving(settings.model_copy(update={"near_cache": 100}), graph) as api:
        token = await api.token("alice")
        alice, bob = await graph.users.ids_of_logins(["alice"]), await graph.users.sign_up("bob", "correct horse")
        await graph.posts.publish(alice[0] or 0, "hello")
        for _ in range(2):
            await api.ask(COUNTED, token)
        await graph.follows.follow(bob.id, [alice[0] or 0])
        first = await metrics(api)
        await api.ask(COUNTED, token)
        second = await metrics(api)

    assert first["fanline_near_cache_hits_total"] > 0
    assert first["fanline_near_cache_entries"] > 0
    assert second["fanline_near_cache_misses_total"] > first["fanline_near_cache_misses_total"] > 0
    assert second["fanline_near_cache_invalidations_total"] > 0


async def test_a_scrape_costs_one_round_trip(api: Api) -> None:
    async with counted(api.app.state.graph) as cost:
        await metrics(api)
    assert (cost.round_trips, cost.commands) == (1, 1)


async def test_every_metric_is_documented(api: Api) -> None:
    """The table in operations.md has exactly the metrics that are served."""
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")
    rows = re.findall(r"^\| (`fanline_.+?) \|", page, re.M)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    response = await api.client.get("/metrics")
    families = re.findall(r"^# TYPE (fanline_\w+) ", response.text, re.M)
    assert documented == set(families)


async def test_metrics_report_a_stopped_archiver(api: Api) -> None:
    running = await metrics(api)
    await api.graph.store.run("SET", keys.ALARM, "a reason")
    assert (running["fanline_archiver_stopped"], (await metrics(api))["fanline_archiver_stopped"]) == (0, 1)


async def test_an_archive_that_is_down_is_counted_and_named(settings: Settings, tmp_path: Path, graph: Graph) -> None:
    """Hot posts are served, other pages fail with ARCHIVE_UNAVAILABLE, and the archiver continues after the outage."""
    folder, file = tmp_path / "archive", tmp_path / "archive" / "archive.sqlite"
    folder.mkdir()
    shutil.copy(archive_file(settings.store_url or ""), file)
    few = settings.model_copy(update={"archive_url": f"sqlite:///{file}", "hot_posts": 10})
    author = (await graph.users.sign_up("alice", "correct horse")).id
    ids = [
        event.number for event in await append_events(graph, [PostPublished(author, f"post {n}") for n in range(1020)])
    ]
    folder.rename(tmp_path / "away")
    folder.write_text("")
    async with serving(few, graph) as api:
        served: Graph = api.app.state.graph
        await served.worker().drain()
        async with background(served.archiver.run()):
            while not (failures := (await metrics(api))["fanline_archive_failures_total"]):
                continue
        assert failures >= 1
        assert (await metrics(api))["fanline_unarchived_events"] == 1021
        assert texts(await api.ask(PAGE)) == [f"post {n}" for n in (1019, 1018, 1017, 1016, 1015)]

        folder.unlink()
        (tmp_path / "away").rename(folder)
        await served.archiver.work()
        assert (await metrics(api))["fanline_archived_events_total"] == 1021
        assert (await metrics(api))["fanline_trimmed_posts_total"] >= 499
        assert (await metrics(api))["fanline_unarchived_events"] == 0
        deep = encode_cursor(CursorKind.POST, ids[300])
        assert texts(await api.ask(PAGE, None, after=deep)) == [f"post {n}" for n in (299, 298, 297, 296, 295)]

    folder.rename(tmp_path / "away")
    folder.write_text("")
    async with serving(few, graph) as api:
        assert error_of(await api.ask(PAGE, None, after=deep))[0] == "ARCHIVE_UNAVAILABLE"
        assert texts(await api.ask(PAGE)) == [f"post {n}" for n in (1019, 1018, 1017, 1016, 1015)]


def texts(response: httpx.Response) -> list[str]:
    """Return the texts of a page."""
    return [node["text"] for node in response.json()["data"]["user"]["timeline"]["entries"]["nodes"]]


def test_gauges_of_dead_processes_are_removed(tmp_path: Path) -> None:
    """Those of living processes stay, and so do all counters."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = [f"gauge_livesum_{os.getpid()}.db", f"counter_{dead.pid}.db"]
    for name in (*names, f"gauge_livesum_{dead.pid}.db"):
        (tmp_path / name).touch()

    forget_dead_processes(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
