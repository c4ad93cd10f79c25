"""Readiness: what makes a process unavailable, and what an operator is warned about."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest

from graph import Graph, Tuning, keys
from graph.log.events import PostPublished
from graph.model import number_at, time_of
from graph.store import capacity
from server import health
from server.health import warnings_about
from server.settings import Settings
from tests.server.conftest import Api, serving
from tests.support.cluster import PRIMARIES, cluster_in
from tests.support.graph_worlds import PATIENCE, append_events, archive_log, background, counted
from tests.support.graphs import archive_url_of, open_graph
from tests.support.raw import open_blocking
from tests.support.stopped import stopped

BALLAST = 20_000_000
"""Bytes in the store, so that the buffers of connections are no part of its memory that counts."""


async def readiness(api: Api) -> tuple[int, Any]:
    """Return the status and the body of `/health/ready`."""
    response = await api.client.get("/health/ready")
    return response.status_code, response.json()


async def readiness_with(api: Api, problem: str) -> tuple[int, Any]:
    """Wait until the process notices a problem, and return its readiness.

    On a busy machine, a shard may not answer in time although it works.
    """
    async with asyncio.timeout(PATIENCE):
        while problem not in str((answer := await readiness(api))[1]):
            pass
    return answer


@pytest.fixture
def store(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a client of the store, whose limits are removed afterwards. Its memory is read for each request."""
    monkeypatch.setattr(capacity, "REFRESH_SECONDS", 0.0)
    with open_blocking(store_url) as client:
        client.setrange("ballast", BALLAST, "x")
        yield client
        client.config_set("maxmemory", 0)
        client.config_set("min-replicas-to-write", 0)
        client.delete("ballast")


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Return a function that stops the clock by which a process tells how old events are."""

    def stop(moment: datetime) -> None:
        class Stopped(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Self:
                return cls.fromtimestamp(moment.timestamp(), tz)

        monkeypatch.setattr("graph.log.backlog.datetime", Stopped)

    return stop


async def publish(graph: Graph, count: int) -> None:
    """Append posts and project them, without archiving them."""
    await append_events(graph, [PostPublished(1, f"post {n}") for n in range(count)])
    await graph.worker().drain()


async def test_a_process_is_ready_without_warnings(api: Api) -> None:
    assert await readiness(api) == (200, {"status": "ready"})


async def test_readiness_costs_one_round_trip(api: Api) -> None:
    """The check of the archive, with its own round trip, is not repeated for three seconds."""
    await readiness(api)
    async with counted(api.app.state.graph) as cost:
        await readiness(api)
    assert (cost.round_trips, cost.commands) == (1, 1)


async def test_a_store_that_is_being_rebuilt_is_not_ready(api: Api) -> None:
    """It becomes ready when the rebuild is complete. The reason says what to do."""
    await api.graph.store.run("SET", keys.REBUILD, "store:archive")
    status, body = await readiness(api)
    await api.graph.store.run("DEL", keys.REBUILD)
    assert (status, body["status"]) == (503, "unavailable")
    assert "run it again" in body["reason"]
    assert (await readiness(api))[0] == 200


async def test_a_store_that_is_nearly_full_is_not_ready(api: Api, store: Any) -> None:
    """It becomes ready when it has room again. The reason says what to do."""
    store.config_set("maxmemory", int(store.info("memory")["used_memory"] / 0.95))
    status, body = await readiness(api)
    store.config_set("maxmemory", 0)
    assert status == 503
    assert re.match(
        r"The store uses 9\d% of its memory, so changes .* are refused. Raise its `maxmemory`", body["reason"]
    )
    assert (await readiness(api))[0] == 200


async def test_a_store_that_refuses_writes_is_not_ready(api: Api, store: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Here it has too few replicas. The error text of the server is only in the log."""
    store.config_set("min-replicas-to-write", 5)
    status, body = await readiness(api)
    store.config_set("min-replicas-to-write", 0)
    assert status == 503
    assert body["reason"] == "The store refuses all changes, including deletions: " + health.REFUSALS["NOREPLICAS"]
    assert [text for text in caplog.messages if text.startswith("The store is refusing writes: NOREPLICAS")]
    assert (await readiness(api))[0] == 200


async def test_a_degraded_process_can_stay_ready(
    settings: Settings, graph: Graph, store: Any, stop_at: Callable[[datetime], None]
) -> None:
    """If so configured, what makes other processes unavailable is only a warning, except an unusable store."""
    tolerant = settings.model_copy(update={"ready_while_degraded": True, "worker_lag": timedelta(milliseconds=1)})
    async with serving(tolerant, graph) as api:
        store.config_set("maxmemory", int(store.info("memory")["used_memory"] / 0.95))
        await append_events(graph, [PostPublished(1, "waiting")])
        stop_at(time_of(await graph.log.last()) + timedelta(seconds=0.9))
        status, body = await readiness(api)
        store.set(keys.REBUILD, "store:archive")
        rebuilding, _ = await readiness(api)
        store.delete(keys.REBUILD)
    assert status == 200
    assert body["status"] == "ready"
    full, late = body["warnings"]
    assert full.startswith("The store uses 9")
    assert late.startswith("The worker is 0 seconds behind the log")
    assert rebuilding == 503


@pytest.mark.slow
async def test_a_cluster_without_the_shard_of_the_log_is_degraded(
    settings: Settings, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other shards serve pages. Without any shard, no process is ready, whatever it tolerates.

    The memory of the store is read for each request: a reading from the last second would count shards that answered
    then.
    """
    monkeypatch.setattr(capacity, "REFRESH_SECONDS", 0.0)
    with cluster_in(tmp_path) as cluster:
        changed = {"store_url": cluster.url, "archive_url": archive_url_of(cluster.url)}
        strict, tolerant = (
            settings.model_copy(update={**changed, "ready_while_degraded": tolerates}) for tolerates in (False, True)
        )
        async with serving(strict, graph) as one, serving(tolerant, graph) as other:
            first = cluster.primaries.index(cluster.owner(keys.LOG))
            with stopped(*(node.pid for node in cluster.nodes[first::PRIMARIES])):
                without_log = [await readiness_with(api, health.NO_LOG) for api in (one, other)]
            with stopped(*(node.pid for node in cluster.nodes)):
                without_any = [await readiness_with(api, health.NO_STORE) for api in (one, other)]
    assert without_log == [
        (503, {"status": "unavailable", "reason": health.NO_LOG}),
        (200, {"status": "ready", "warnings": [health.NO_LOG]}),
    ]
    assert without_any == [(503, {"status": "unavailable", "reason": health.NO_STORE})] * 2


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 seconds"), (1.9, "1 second"), (119, "119 seconds"), (120, "2 minutes"), (7_200_000, "120,000 minutes")],
)
def test_a_lag_is_told_in_words(seconds: float, words: str) -> None:
    assert health.duration(seconds) == words


async def test_a_store_whose_clock_is_ahead_is_not_ready(api: Api) -> None:
    """Here the log was written with such a clock. Half an hour is tolerated."""
    api.graph.log.clock = lambda: datetime.now(UTC) + timedelta(days=30)
    api.graph.log.seen = number_at(datetime.now(UTC) + timedelta(minutes=30))
    await publish(api.graph, 1)
    assert (await readiness(api))[0] == 200
    api.graph.log.seen = number_at(datetime.now(UTC) + timedelta(hours=2))
    await publish(api.graph, 1)
    status, body = await readiness(api)
    assert status == 503
    assert "is 2.0 hours ahead of this process" in body["reason"]


async def test_a_full_log_is_not_ready(api: Api) -> None:
    """It is not ready from the length at which changes are refused."""
    api.app.state.graph.log.limit = 10
    await publish(api.graph, 8)
    assert (await readiness(api))[0] == 200
    await publish(api.graph, 1)
    status, body = await readiness(api)
    assert status == 503
    assert "The log holds 9 of 10 events, so changes" in body["reason"]


async def test_a_store_that_was_emptied_is_not_ready(api: Api, store_url: str) -> None:
    """The archive holds events that the store lacks. The reason names `fanline rebuild`."""
    await publish(api.graph, 1)
    await archive_log(api.graph)
    assert (await readiness(api))[0] == 200
    with open_blocking(store_url) as client:
        client.flushall()
    status, body = await readiness(api)
    assert status == 503
    assert "`fanline rebuild`" in body["reason"]


async def test_an_archive_of_another_store_is_not_ready(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild of another store has bound the archive to it."""
    monkeypatch.setattr(health, "CHECK_SECONDS", 0.0)
    assert (await readiness(api))[0] == 200
    state = await api.graph.archive.state()
    await api.graph.archive.bind("another", replacing=state.store, unused_only=False)
    status, body = await readiness(api)
    assert status == 503
    assert "The archive belongs to another store" in body["reason"]


async def test_a_process_is_ready_without_the_archive(settings: Settings, tmp_path: Path, graph: Graph) -> None:
    """A warning says what does not work."""
    (tmp_path / "blocked").mkdir()
    blocked = settings.model_copy(update={"archive_url": f"sqlite:///{tmp_path}/blocked"})
    async with serving(blocked, graph) as api:
        status, body = await readiness(api)
    assert status == 200
    assert [warning.partition(".")[0] for warning in body["warnings"]] == ["The archive does not answer"]


async def test_a_lagging_archive_is_a_warning(settings: Settings, graph: Graph) -> None:
    """The age of the oldest event decides, until the archive has caught up."""
    impatient = settings.model_copy(update={"archive_lag": timedelta(milliseconds=1)})
    async with serving(impatient, graph) as api:
        await publish(graph, 3)
        await asyncio.sleep(0.01)
        _, behind = await readiness(api)
        await archive_log(graph)
        caught_up = await readiness(api)
    [warning] = behind["warnings"]
    assert "3 events are not archived" in warning
    assert "Check that a worker is running" in warning
    assert caught_up == (200, {"status": "ready"})


async def test_many_unarchived_events_are_a_warning(store_url: str) -> None:
    """The warning starts at half the log's limit, whatever their age. A log that is nearly full is another warning."""
    graph = await open_graph(store_url, Tuning(log_limit=10))
    try:
        found = []
        for _ in range(9):
            await publish(graph, 1)
            found.append(list(warnings_about(await graph.backlog(), timedelta(days=1), graph.log.limit)))
    finally:
        await graph.close()
    assert [len(warnings) for warnings in found] == [0] * 5 + [1] * 3 + [2]
    assert "6 events are not archived" in found[5][0]
    assert "The log holds 9 of 10 events" in found[8][1]
    assert "FANLINE_LOG_LIMIT" in found[8][1]


@pytest.mark.parametrize(("setting", "who"), [("worker_lag", "worker"), ("max_archive_lag", "archive")])
async def test_a_process_far_behind_the_log_is_not_ready(
    settings: Settings, graph: Graph, setting: str, who: str, stop_at: Callable[[datetime], None]
) -> None:
    """The age of the oldest event decides, until the worker or the archiver has caught up."""
    impatient = settings.model_copy(update={setting: timedelta(milliseconds=1)})
    async with serving(impatient, graph) as api:
        await append_events(graph, [PostPublished(1, "waiting")])
        stop_at(time_of(await graph.log.last()) + timedelta(seconds=0.9))
        status, behind = await readiness(api)
        await graph.worker().drain()
        await archive_log(graph)
        caught_up = await readiness(api)
    assert status == 503
    assert behind["reason"].startswith(f"The {who} is 0 seconds behind the log. Check that a worker is running")
    assert caught_up == (200, {"status": "ready"})


async def test_a_stopped_archiver_is_a_warning(api: Api) -> None:
    """The warning has the reason: here, the archive lacks events that the log no longer holds."""
    await publish(api.graph, 2)
    await api.graph.store.run("SET", keys.TRIMMED, await api.graph.log.watermark())
    async with background(api.graph.archiver.run()), asyncio.timeout(PATIENCE):
        while not (await api.graph.backlog()).alarm:  # noqa: ASYNC110 - the archiver sends no notification
            await asyncio.sleep(0.01)
    _, body = await readiness(api)
    [warning] = body["warnings"]
    assert warning.startswith("The archiver has stopped: The log begins after event")
    assert "Restore a newer backup" in warning


async def test_an_archive_that_hangs_delays_readiness_briefly(
    settings: Settings, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time limit applies, and only one request waits per check, even if the database accepts connections."""
    monkeypatch.setattr("server.lifespan.TIMEOUT_SECONDS", 2 * PATIENCE)
    monkeypatch.setattr(health, "ARCHIVE_SECONDS", 0.2)
    monkeypatch.setattr(health, "CHECK_SECONDS", 2 * PATIENCE)
    monkeypatch.setattr(capacity, "REFRESH_SECONDS", 2 * PATIENCE)
    database = SilentDatabase()
    async with database.served() as url, serving(settings.model_copy(update={"archive_url": url}), graph) as api:
        database.is_closed.clear()
        async with asyncio.timeout(PATIENCE):
            found = [await readiness(api)]
            async with counted(api.app.state.graph) as cost:
                found += [await readiness(api) for _ in range(9)]
        hung = database.connections
        database.is_closed.set()
    assert hung == 1
    assert (cost.round_trips, cost.commands) == (9, 9)
    assert {(status, *body["warnings"]) for status, body in found} == {(200, health.NO_ARCHIVE)}


class SilentDatabase:
    """A server that accepts connections and never answers. While it is closed, it ends connections at once."""

    def __init__(self) -> None:
        self.connections = 0
        self.is_closed = asyncio.Event()
        self.is_closed.set()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Accept connections, and yield the URL."""
        async with await asyncio.start_server(self._hang, "127.0.0.1") as server:
            yield f"postgresql://fanline@127.0.0.1:{server.sockets[0].getsockname()[1]}/fanline"

    async def _hang(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += not self.is_closed.is_set()
        await self.is_closed.wait()
        writer.close()
