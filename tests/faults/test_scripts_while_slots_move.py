"""In a slot that moves key by key, a script cannot reuse a key that it has deleted or emptied."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest
from redis.crc import key_slot

from graph.store.commands import Command, Word, script
from graph.store.store import Store
from tests.conftest import need
from tests.faults.cluster_load import tag_on
from tests.support.cluster import Cluster, Node, cluster_in, until
from tests.support.graph_worlds import PATIENCE, background, reached
from tests.support.slot_moves import finish, is_agreed, move, move_at_once

pytestmark = pytest.mark.slow

SLOTS = 20
"""The slots that a program for resharding moves."""


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
    """To the old node, a key that a script has deleted during the move seems to be on the new node."""
    source, target = joined.primaries[:2]
    tag = tag_on(joined, source, "middle")
    slot, kept = key_slot(tag.encode()), f"{{{tag}}}:kept"
    again = "redis.call('DEL', KEYS[1]) return redis.call('INCRBY', KEYS[1], ARGV[1])"
    await store.run("SET", kept, 1)
    await asyncio.to_thread(move, slot, source, target, up_to="none")

    assert await store.run("EVAL", again, 1, kept, 7) == 7
    assert await store.read([("GET", kept)]) == ["7"]

    for giver, taker in ((source, target), (target, source)):
        await asyncio.to_thread(move, slot, giver, taker, up_to="")
        await asyncio.to_thread(finish, joined, slot, taker)
    assert await store.run("GET", kept) == "7"


@pytest.mark.parametrize("how", ["key by key", "at once", "by redis-cli"])
async def test_durable_writes_do_not_keep_a_slot_from_moving(joined: Cluster, how: str) -> None:
    """The slot moves there and back while it is being written to. No write is lost, and no key blocks the move."""
    need(how != "by redis-cli" or shutil.which("redis-cli") is not None, "redis-cli")
    strict = Store(joined.url, wait_for_replicas=1)
    source, target = sorted(joined.primaries, key=first_slot)[:2]  # so that the same slots come back
    tag = tag_in(range(first_slot(source), first_slot(source) + SLOTS))
    slot = key_slot(tag.encode())
    moves = {"key by key": move_by_keys, "at once": move_at_once, "by redis-cli": reshard}
    acknowledged = 0

    async def write() -> None:
        nonlocal acknowledged
        while True:
            await strict.run("INCRBY", f"{{{tag}}}:{acknowledged % 20}", 1)
            acknowledged += 1

    try:
        async with background(write()):
            for giver, taker in ((source, target), (target, source)) * 3:
                await reached(lambda: number(acknowledged), acknowledged + 10)
                await asyncio.to_thread(moves[how], joined, slot, giver, taker)
                await reached(lambda: number(acknowledged), acknowledged + 1)
        counts = await strict.read([("GET", f"{{{tag}}}:{n}") for n in range(20)])
    finally:
        await strict.close()
    assert sum(map(int, counts)) >= acknowledged


def move_by_keys(cluster: Cluster, slot: int, source: Node, target: Node) -> None:
    """Move a slot key by key, including keys that are written meanwhile."""
    move(slot, source, target, up_to="")
    while names := source.run("CLUSTER", "GETKEYSINSLOT", slot, 10):
        source.run("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *names)
    finish(cluster, slot, target)


def reshard(cluster: Cluster, slot: int, source: Node, target: Node) -> None:
    """Move the first slots of the source, which include this one, as an operator would."""
    words = ["--cluster-from", source.id, "--cluster-to", target.id, "--cluster-slots", str(SLOTS), "--cluster-yes"]
    command = ["redis-cli", "--cluster", "reshard", f"127.0.0.1:{source.port}", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    until(lambda: is_agreed(cluster, slot, target))


def first_slot(node: Node) -> int:
    """Return the lowest slot that a node owns."""
    return min(
        int(first)
        for line in node.run("CLUSTER NODES").values()
        if line["node_id"] == node.id
        for first, *_ in line["slots"]
    )


def tag_in(slots: range) -> str:
    """Return a hash tag whose slot is among these."""
    return next(tag for tag in map(str, count()) if key_slot(tag.encode()) in slots)


async def number(value: int) -> int:
    """Return a number."""
    return value


@dataclass(frozen=True)
class Case:
    """A script with its keys, the commands that prepare them, and their final content. Keys begin with `@`.

    If `may_fail` is set, the script may fail after doing all its work; it is then repeated after the slot has moved.
    """

    name: str
    keys: str
    before: list[Command]
    words: list[Word]
    after: dict[str, dict[str, object]]
    may_fail: bool = False


OTHERS = ("@gone", "@held", "@blocking", "@unblocked", "@blockers", "@unblockers")
BLOCK = "@blocking @unblocked @blockers @unblockers @following @unfollowed @held @followers @lost @waiting"
CASES = [
    Case("delete_post", "@p", [("HSET", "@p", "text", "x", "likes", 1)], [7], {"@p": {"deleted": "7"}}),
    Case("free_post", "@p", [("HSET", "@p", "text", "x", "likes", 1)], [""], {"@p": {"likes": "1"}}),
    Case(
        "delete_user",
        "@u @session @details",
        [("HSET", key, "a", 1) for key in ("@u", "@session", "@details")],
        [33],
        {"@u": {"deleted": "33"}, "@session": {}, "@details": {}},
    ),
    Case(
        "restore_login",
        "@login",
        [("HSET", "@login", "secret", "old", "nonce", "n1", "user", 1, "winner", 1)],
        ["new", "n2", 2, 2],
        {"@login": {"secret": "new", "nonce": "n2", "user": "2"}},
    ),
    Case(
        "remove",
        "@gone @set",
        [("ZADD", key, 1, "a", 2, "b") for key in ("@set", "@gone")],
        [9, 0, "a", 3],
        {"@set": {"b": 2.0}, "@gone": {"f": 3.0}},
    ),
    Case(
        "block",
        BLOCK,
        [
            *(("ZADD", key, 1, 77) for key in BLOCK.split() if key not in ("@unblocked", "@following", "@followers")),
            ("ZADD", "@unblocked", 5, 9),
            ("ZADD", "@following", 6, 9, 2, 78),
            ("ZADD", "@followers", 7, 9, 2, 78),
        ],
        [0, 9, 10, "block"],
        {
            "@blocking": {"77": 1.0, "9": 10.0},
            "@unblocked": {},
            "@following": {"78": 2.0},
            "@unfollowed": {"77": 1.0, "9": 6.0},
            "@followers": {"78": 2.0},
            "@lost": {"77": 1.0, "9": 7.0},
        },
        may_fail=True,
    ),
    Case(
        "repair_element",
        "@set @gone",
        [("ZADD", "@set", 5, "m"), ("ZADD", "@gone", 1, "z")],
        ["m", 5, 6, ""],
        {"@set": {"m": 6.0}, "@gone": {"z": 1.0}},
    ),
    Case(
        "repair_follow",
        " ".join(("@set", *OTHERS)),
        [("ZADD", "@set", 5, 9), *(("ZADD", key, 1, 77) for key in OTHERS)],
        [9, 1, 5, 1, 6, 10],
        {"@set": {"9": 6.0}, "@gone": {"77": 1.0}, "@held": {"77": 1.0}},
    ),
    Case("repair_fields", "@h", [("HSET", "@h", "a", 1)], ["a", "=1", "", "b", "", "=2"], {"@h": {"b": "2"}}),
    Case(
        "finish_rebuild",
        "@home",
        [("ZADD", "@home", "inf", "rTOKEN")],
        ["TOKEN", 0, 100, 800, 2, 11, 12, 3],
        {"@home": {"11": 11.0, "12": 12.0, "a3": -1.0, "f": 0.0}},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_scripts_lose_nothing_in_a_slot_that_moves(case: Case, store: Store, joined: Cluster) -> None:
    """Scripts never empty a key and then use it again, and they write the version of an element last."""
    source, target = joined.primaries[:2]
    tag = tag_on(joined, source, case.name)
    slot = key_slot(tag.encode())

    def named(command: Iterable[Word]) -> Command:
        return tuple(word.replace("@", f"{{{tag}}}:") if isinstance(word, str) else word for word in command)

    await store.send([named(command) for command in case.before])
    await asyncio.to_thread(move, slot, source, target, up_to="none")
    source.run("CONFIG", "RESETSTAT")

    call = store.run(*script(case.name).call([str(key) for key in named(case.keys.split())], *case.words))
    async with background(call) as running:
        if case.may_fail:
            while not running.done() and not refusals(source):  # noqa: ASYNC110 - the server has no event to wait for
                await asyncio.sleep(0.01)
        else:
            await running
            assert "errorstat_ERR" not in source.run("INFO", "errorstats")
        await asyncio.to_thread(move, slot, source, target, up_to="")
        await asyncio.to_thread(finish, joined, slot, target)
        await running

    assert {key: await held(store, str(named([key])[0])) for key in case.after} == case.after
    await asyncio.to_thread(move, slot, target, source, up_to="")
    await asyncio.to_thread(finish, joined, slot, source)


def refusals(primary: Node) -> set[str]:
    """Return the kinds of errors that a primary has returned, except for unknown scripts."""
    return {*primary.run("INFO", "errorstats")} - {"errorstat_NOSCRIPT"}


async def held(store: Store, key: str) -> dict[str, object]:
    """Return the fields of a hash or the members of a set with their scores, or nothing if the key is absent."""
    if await store.run("TYPE", key) == "hash":
        return dict(await store.run("HGETALL", key))
    return dict(await store.run("ZRANGE", key, 0, -1, "WITHSCORES"))


async def test_a_step_of_a_promotion_stays_open_in_a_slot_that_moves(store: Store, joined: Cluster) -> None:
    """Even a promotion's only step stays open, and the watermark waits for it."""
    source, target = joined.primaries[:2]
    tag = tag_on(joined, source, "promotion")
    slot, (steps, opened) = key_slot(tag.encode()), [f"{{{tag}}}:{name}" for name in ("steps", "open")]
    await store.run("XGROUP", "CREATE", steps, "workers", 0, "MKSTREAM")
    finished = await store.run("XADD", steps, "*", "post", 100)
    await store.run("XREADGROUP", "GROUP", "workers", "w", "STREAMS", steps, ">")
    await store.run("ZADD", opened, 100, finished)
    await asyncio.to_thread(move, slot, source, target, up_to="none")

    added = await store.run(*script("add_promotion_step").call([steps, opened], "workers", finished, 100, 7, 1, 50))

    assert added == 1
    await asyncio.to_thread(move, slot, source, target, up_to="")
    await asyncio.to_thread(finish, joined, slot, target)
    [(entry, _)] = await store.run("XRANGE", steps, "-", "+")
    assert entry != finished
    assert await held(store, opened) == {entry: 100.0}
    await asyncio.to_thread(move, slot, target, source, up_to="")
    await asyncio.to_thread(finish, joined, slot, source)
