"""Scripts in a slot that moves key by key cannot touch a key again that they have deleted or emptied."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.crc import key_slot

from graph.store.commands import Command, Word, script
from graph.store.store import Store
from tests.faults.cluster_load import tag_on
from tests.support.cluster import Cluster, cluster_in
from tests.support.slot_moves import finish, move

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster."""
    with cluster_in(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
async def store(joined: Cluster) -> AsyncIterator[Store]:
    store = Store(joined.url)
    yield store
    await store.close()


async def test_scripts_that_fail_in_the_middle_are_repeated(store: Store, joined: Cluster) -> None:
    """While its slot moves, a key that a script has deleted is on the new node, as far as the old one knows."""
    source, target = joined.primaries[:2]
    tag = tag_on(joined, source, "middle")
    slot, kept = key_slot(tag.encode()), f"{{{tag}}}:kept"
    again = "redis.call('DEL', KEYS[1]) return redis.call('INCRBY', KEYS[1], ARGV[1])"
    await store.run("SET", kept, 1)
    await asyncio.to_thread(move, slot, source, target, upto="none")

    assert await store.run("EVAL", again, 1, kept, 7) == 7
    assert await store.read([("GET", kept)]) == ["7"]

    for giver, taker in ((source, target), (target, source)):
        await asyncio.to_thread(move, slot, giver, taker, upto="")
        await asyncio.to_thread(finish, joined, slot, taker)
    assert await store.run("GET", kept) == "7"


@pytest.mark.parametrize(
    ("name", "before", "words", "after"),
    [
        ("delete_post", ("HSET", "text", "x", "likes", 1), [7], {"deleted": "7"}),
        ("free_post", ("HSET", "text", "x", "likes", 1), [""], {"likes": "1"}),
        ("remove", ("ZADD", 1, "a", 2, "b"), [9, "a", 3], {"f": 3.0}),
    ],
)
async def test_scripts_lose_nothing_in_a_slot_that_moves(
    name: str, before: Command, words: list[Word], after: dict[str, object], store: Store, joined: Cluster
) -> None:
    """They never empty a key of which they need a part again."""
    source, target = joined.primaries[:2]
    tag = tag_on(joined, source, name)
    slot, names = key_slot(tag.encode()), [f"{{{tag}}}:{n}" for n in range(2 if name == "remove" else 1)]
    await store.send([(before[0], each, *before[1:]) for each in names])
    await asyncio.to_thread(move, slot, source, target, upto="none")
    source.run("CONFIG", "RESETSTAT")

    await store.run(*script(name).call(names, *words))

    assert "errorstat_ERR" not in source.run("INFO", "errorstats")
    for giver, taker in ((source, target), (target, source)):
        await asyncio.to_thread(move, slot, giver, taker, upto="")
        await asyncio.to_thread(finish, joined, slot, taker)
    last = names[-1]
    found = await store.run(*(("HGETALL", last) if before[0] == "HSET" else ("ZRANGE", last, 0, -1, "WITHSCORES")))
    assert dict(found) == after
