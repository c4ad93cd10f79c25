"""A small demo world that is seeded once in each process of the tests, and then restored."""

from dataclasses import dataclass
from functools import cache

import pytest

from server.demo.people import demo_world
from server.demo.world import World
from tests.support.graphs import archive_file, open_graph
from tests.support.raw import open_blocking
from tests.support.worlds import BASE, PEOPLE, POSTS, settle_small_world


@dataclass(frozen=True)
class Snapshot:
    """What a store and its archive hold. No key of the world expires."""

    values: list[tuple[bytes, bytes]]
    archive: bytes

    @classmethod
    def of(cls, url: str) -> "Snapshot":
        """Return the snapshot of a store whose archive is closed."""
        with open_blocking(url, decode_responses=False) as client:
            keys = list(client.scan_iter(count=1000))
            with client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.dump(key)
                return cls(list(zip(keys, pipeline.execute(), strict=True)), archive_file(url).read_bytes())

    def restore(self, url: str) -> None:
        """Fill a store, and its archive, which is not open yet."""
        archive_file(url).write_bytes(self.archive)
        with open_blocking(url, decode_responses=False) as client, client.pipeline(transaction=False) as pipeline:
            for key, value in self.values:
                pipeline.restore(key, 0, value, replace=True)
            pipeline.execute()


SNAPSHOTS: dict[str, Snapshot] = {}


@cache
def known_world() -> World:
    """Return the events of the world."""
    return demo_world(BASE, people=PEOPLE, posts=POSTS)


@pytest.fixture
async def small_world(store_url: str) -> World:
    """Fill the store with a small demo world. Request it before `graph`, which opens the archive."""
    if store_url not in SNAPSHOTS:
        graph = await open_graph(store_url)
        await settle_small_world(graph)
        await graph.close()
        SNAPSHOTS[store_url] = Snapshot.of(store_url)
    else:
        SNAPSHOTS[store_url].restore(store_url)
    return known_world()
