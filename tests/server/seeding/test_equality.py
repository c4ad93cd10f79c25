"""Seeding in bulk leaves the same store as the same events one by one."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.archive.archive import Archive
from graph.log.events import UserCreated
from graph.log.numbers import entry_id
from graph.model import number_at
from graph.projections.mode import Mode
from server.seeding.load import Source, demo_source, load
from server.seeding.sources import seed_source
from tests.conftest import CHEAP

NOW = datetime.now(UTC).replace(microsecond=0)
YEAR_AGO = NOW - timedelta(days=365)
DEMO, LARGE = demo_source(people=24, posts=300), seed_source(60, 240, 8)


@pytest.fixture
async def graphs(store_url: str, tmp_path: Path) -> AsyncIterator[tuple[Graph, Graph]]:
    """Open two graphs in separate stores, where few posts or followers suffice for the archive or pull mode."""
    tuning = replace(CHEAP, push_limit=12, hot_posts=3, archive_batch=3)
    opened = [
        await Graph.open(f"{store_url}?db={n}", tuning, archive=Archive(f"sqlite+aiosqlite:///{tmp_path}/{n}.sqlite"))
        for n in range(2)
    ]
    yield opened[0], opened[1]
    for graph in opened:
        await graph.close()


@pytest.mark.parametrize(("source", "base"), [(DEMO, YEAR_AGO), (DEMO, NOW), (LARGE, YEAR_AGO), (LARGE, NOW)])
async def test_the_store_is_the_same_as_after_one_event_at_a_time(
    graphs: tuple[Graph, Graph], monkeypatch: pytest.MonkeyPatch, source: Source, base: datetime
) -> None:
    """All keys are equal, including the log, its positions, the delivery modes and the authors with posts to archive.

    The last two may differ if follows or deletions come between an author's posts, because a batch applies its follows
    first and its deletions last.
    """
    monkeypatch.setattr("server.seeding.load.BATCH", 70)
    bulk, single = graphs
    await load(bulk, source, now=base)
    await append_one_by_one(single, source, base)

    found, expected = await everything(bulk), await everything(single)

    if source is DEMO:
        found, expected = (without(keys, "delivery:", "{log}:archivable") for keys in (found, expected))
    assert found == expected
    kinds = {key.split(":")[0] for key in found}
    assert kinds >= {"{log}", "login", "user", "following", "followers", "posts", "post"}
    assert ("delivery" in kinds) == ("{log}:archivable" in found) == (source is LARGE)
    entries, last, added, *_ = found["{log}"]
    events = list(source.events(base))
    assert (last, added) == (entry_id(events[-1].number), len(events))
    kept = [event for event in events if event.number > number_at(datetime.now(UTC) - CHEAP.log_retention)]
    assert len(entries) <= len(kept)
    assert bool(entries) == (base == NOW)


def without(keys: dict[str, Any], *prefixes: str) -> dict[str, Any]:
    """Return the keys that do not begin with these prefixes."""
    return {key: value for key, value in keys.items() if not key.startswith(prefixes)}


async def append_one_by_one(graph: Graph, source: Source, base: datetime) -> None:
    """Append and project events one by one, as the API does but with their own times, then trim the log."""
    for event in source.events(base):
        if isinstance(event.body, UserCreated):
            await graph.users.claim_many([(event.body.login, event.body.nonce, None)])
        appended = await graph.log.append([event.body], times=[event.at])
        assert appended == [event]
        await graph.projections.project(appended, Mode.WORKER)
    await graph.imports.advance_watermark(event.number)
    await graph.housekeeping.tidy()


async def everything(graph: Graph) -> dict[str, Any]:
    """Return all keys except the note of the seeding, idempotency keys and passwords."""
    found: dict[str, Any] = {}
    async with Redis.from_url(graph.store.url, decode_responses=True) as raw:
        async for key in raw.scan_iter(count=1000):
            kind = await raw.type(key)
            if key.startswith(("{log}:idempotency:", "{log}:import")):
                continue
            assert await raw.ttl(key) == -1, key
            if key == "{log}:archivable":
                found[key] = set(await raw.zrange(key, 0, -1))  # the scores may name different posts
            elif kind == "zset":
                found[key] = await raw.zrange(key, 0, -1, withscores=True)
            elif kind == "hash":
                found[key] = {field: value for field, value in (await raw.hgetall(key)).items() if field != "secret"}
            elif kind == "stream":
                about, groups = await raw.xinfo_stream(key), await raw.xinfo_groups(key)
                places = [(group["name"], group["last-delivered-id"], group["pending"]) for group in groups]
                found[key] = (await raw.xrange(key), about["last-generated-id"], about["entries-added"], places)
            else:
                found[key] = await raw.get(key)
    return found
