"""Seeding in bulk leaves the same store as appending the same events one by one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from graph import Graph
from graph.archive.archive import Archive
from graph.log.events import UserCreated
from graph.projections.mode import Mode
from graph.store.store import Store
from server.seeding.load import Source, demo_source, load
from server.seeding.sources import seed_source
from tests.graph.rebuild.stores import content, empty_store
from tests.support.graphs import CHEAP

NOW = datetime.now(UTC).replace(microsecond=0)
YEAR_AGO = NOW - timedelta(days=365)
DEMO, LARGE = demo_source(people=24, posts=120), seed_source(60, 240, 8)
FOREVER = replace(CHEAP, push_limit=12, hot_age=timedelta(days=9999), tombstones_live=timedelta(days=9999))
"""Nothing is too old for the store, and few followers suffice for pull mode."""
AT_LENGTH = [pytest.param(*each, marks=pytest.mark.long) for each in ((DEMO, YEAR_AGO), (LARGE, NOW))]
SOURCES = [(DEMO, NOW), (LARGE, YEAR_AGO), *AT_LENGTH]


@pytest.mark.single_server("uses two databases of the server")
@pytest.mark.parametrize(("source", "base"), SOURCES)
async def test_the_store_is_the_same_as_after_one_event_at_a_time(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Source, base: datetime
) -> None:
    """All keys except passwords are equal. An author's delivery mode follows later follows only with the next post."""
    monkeypatch.setattr("server.seeding.load.BATCH", 70)
    await empty_store(store_url)
    bulk, single = [await opened(f"{store_url}?db={place}", tmp_path / f"{place}.sqlite") for place in range(2)]
    try:
        await load(bulk, source, now=base)
        for event in source.events(base):
            if isinstance(event.body, UserCreated):
                await single.users.claim_many([(event.body.login, event.body.nonce, None)])
            await single.projections.project([event], Mode.WORKER)
        found, expected = [await content(graph.store.url) for graph in (bulk, single)]
    finally:
        await bulk.close()
        await single.close()

    for keys in (found, expected):
        for key in list(keys):
            if key.startswith("login:"):
                keys[key].pop("secret")
            if source is DEMO and key.startswith("delivery:"):
                del keys[key]
    assert found == expected
    kinds = {key.split(":")[0] for key in found}
    assert kinds >= {"login", "user", "following", "followers", "posts", "post"}
    assert ("delivery" in kinds) == (source is LARGE)


async def opened(url: str, archive: Path) -> Graph:
    """Open a graph whose archive is a file."""
    return await Graph.open(url, Archive(f"sqlite:///{archive}"), FOREVER, partial(Store, single_slot=True))
