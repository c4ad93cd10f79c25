"""The state after the erasure of a deleted user: a tombstone, the hash of the login, and exact counts of others."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archive.name_codes import name_query
from graph.archive.rows import EventRow
from graph.erasure.eraser import CHECK_SECONDS, Eraser, Progress
from graph.log.account_events import login_hash
from graph.log.events import Followed, ListChanged
from graph.paging import Window
from graph.projections.mode import Mode
from tests.graph.erasure.erasing import (
    LOGIN,
    SECRET,
    World,
    delete,
    erase,
    left,
    members_of_lists,
    of_user,
    populate,
    settle,
)
from tests.support.graph_worlds import Counts, Open, append_events, befriend, cached, counts_of, people, state
from tests.support.stores import Crashed, Death


async def counts_of_posts(graph: Graph, *posts: int) -> list[tuple[int, int, int, int] | None]:
    """Return the counts of replies, reposts, quotes and likes of posts, None for deleted ones."""
    return [None if each is None else (*each,) for each in await graph.posts.counts(posts)]


async def assert_erased(graph: Graph, raw: Redis, world: World) -> None:
    """Assert that no data of the user is left, and that the counts of other users are exact."""
    assert await of_user(raw, world.gone) == {keys.user(world.gone): repr(await raw.hgetall(keys.user(world.gone)))}
    assert await raw.hkeys(keys.user(world.gone)) == ["deleted"]
    await graph.housekeeping.tidy()
    assert await left(raw, SECRET) == []
    assert await counts_of(graph, [world.gone, world.alice, world.bob, world.carol, world.dave]) == [
        Counts(0, 0, 0),
        Counts(1, 1, 2),
        Counts(1, 1, 1),
        Counts(0, 0, 0),
        Counts(0, 0, 0),
    ]
    found = await counts_of_posts(graph, world.alices, world.bobs, world.more, world.own, world.reply)
    assert found == [(0, 0, 0, 2), (0, 0, 0, 2), (0, 0, 0, 2), None, (0, 0, 0, 0)]
    for user in (world.alice, world.bob, world.carol, world.dave):
        for name in (keys.following(user), keys.followers(user), keys.muting(user), keys.blocking(user)):
            assert await raw.zscore(name, str(world.gone)) is None
    assert await members_of_lists(graph, world.alice) == [[world.bob]]
    assert await members_of_lists(graph, world.bob) == [[world.carol], []]
    assert await graph.archive.list_additions(world.gone, 0, 9) == []
    assert not (await graph.repair().run(correct=False)).examples


@pytest.mark.parametrize("hot", [100, 1], ids=["hot", "mostly archived"])
async def test_nothing_is_left_and_counts_are_exact(another: Open, raw: Redis, hot: int) -> None:
    graph = await another(hot_posts=hot, hot_slack=1)
    world = await populate(graph)
    before = await counts_of_posts(graph, world.alices, world.bobs, world.more)
    assert before == [(3, 1, 0, 3), (0, 0, 1, 3), (0, 1, 0, 3)]
    await delete(graph, world.gone)

    await erase(graph)

    await assert_erased(graph, raw, world)


async def test_nothing_is_left_in_the_file_of_the_archive_and_in_exports(graph: Graph) -> None:
    """SQLite overwrites deleted data, and empties its journal when the last connection closes."""
    world = await populate(graph)
    await delete(graph, world.gone)

    await erase(graph)

    for user in (world.alice, world.bob, world.carol, world.dave, world.gone):
        assert SECRET not in repr([line async for line in graph.export().lines(user)])
    assert [report.comment async for report in graph.moderation.reports()] == [""]
    await graph.archive.close()
    path = Path(str(graph.archive.database.url.database))
    assert SECRET.encode() not in b"".join(file.read_bytes().lower() for file in path.parent.glob(f"{path.name}*"))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_an_eraser_may_die_at_any_step(another: Open, raw: Redis, calls: Iterator[int], after: bool) -> None:
    """Another eraser completes the work: each one dies after more exchanges with the store than the one before."""
    graph = await another(hot_posts=2, hot_slack=1)
    world = await populate(graph)
    await delete(graph, world.gone)

    for call in calls:
        if not await raw.exists(keys.ERASING):
            break
        dying = await another(hot_posts=2, hot_slack=1)
        Death(dying.store, call, after=after)
        with suppress(Crashed):
            while await dying.eraser.step() is Progress.WORKED:
                pass
        await settle(graph)
    assert call > 10
    await assert_erased(graph, raw, world)


async def test_two_erasers_only_repeat_each_other(another: Open, raw: Redis) -> None:
    graph, other = await another(), await another()
    world = await populate(graph)
    await delete(graph, world.gone)

    while await raw.exists(keys.ERASING):
        await asyncio.gather(graph.eraser.step(), other.eraser.step())
        await settle(graph)

    await assert_erased(graph, raw, world)


@pytest.mark.parametrize("moment", ["during the erasure", "after the erasure"])
async def test_an_erased_user_who_was_added_to_a_list_meanwhile_is_removed_within_an_hour(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A user whom an earlier version has left there is removed too. Users who still wait for erasure come first."""
    world, now = await populate(graph), 0.0
    eraser = Eraser(graph.store, graph.log, graph.binding, graph.dead_letters, graph.eraser._lease, clock=lambda: now)
    assert await eraser.step() is Progress.IDLE
    mine = await graph.lists.create(world.alice, "another", [world.carol])
    late = ListChanged(world.alice, mine.id, added=(world.gone,))
    await delete(graph, world.gone)
    if moment == "during the erasure":
        read = graph.archive.list_additions

        async def add_after_read(user: int, after: int, limit: int) -> list[EventRow]:
            found = await read(user, after, limit)
            monkeypatch.undo()
            await append_events(graph, [late])
            return found

        monkeypatch.setattr(graph.archive, "list_additions", add_after_read)
        await erase(graph, eraser)
    else:
        await erase(graph, eraser)
        await append_events(graph, [late])
    await settle(graph)
    await delete(graph, world.dave, "dave")

    assert await erase(graph, eraser)
    assert eraser.erased == 2
    now = CHECK_SECONDS
    await erase(graph, eraser)

    assert await members_of_lists(graph, world.alice) == [[world.carol], [world.bob]]
    assert eraser.erased == 2
    assert await graph.archive.erased_list_members(9) == []
    assert not (await graph.repair().run(correct=False)).examples


async def test_the_eraser_waits_for_earlier_events(graph: Graph, raw: Redis) -> None:
    """A follow was committed before the deletion and is projected later."""
    alice, bob = await people(graph, "alice", "bob")
    [late] = await append_events(graph, [Followed(bob, alice)])
    await delete(graph, bob, "bob")

    assert await graph.eraser.step() is Progress.WAITING
    assert await raw.xlen(keys.LOG) == 4

    await erase(graph)
    assert await raw.exists(keys.followers(alice)) == 0
    await graph.projections.project([late], Mode.WORKER)
    assert await raw.exists(keys.followers(alice), keys.following(bob)) == 0


async def test_the_eraser_waits_for_the_archive(graph: Graph, raw: Redis) -> None:
    """Otherwise texts of the user that are archived later would stay in the archive."""
    world = await populate(graph)
    await graph.users.update_profile(world.gone, name=f"{SECRET} again")
    await delete(graph, world.gone)

    for _ in range(5):
        await graph.worker().drain()
        progress = await graph.eraser.step()

    assert progress is Progress.WAITING
    assert await raw.zcard(keys.ERASING) == 1


async def test_late_events_change_nothing_after_the_erasure(graph: Graph, raw: Redis) -> None:
    """Late events of the user or about the user change nothing in any slot."""
    world = await populate(graph)
    events = [event async for event in graph.log.replay(0, await graph.log.last())]
    await delete(graph, world.gone)
    await erase(graph)
    before = await state(raw)

    for event in events:
        await graph.projections.project([event], Mode.WORKER)

    after = await state(raw)
    assert after == before


async def comparable(raw: Redis) -> dict[str, object]:
    """Return a store's content without tombstones, logins and notifications. A rebuild restores only some of these."""
    found = await state(raw, but=["{log}", "{suspended}:version", "home:", "session:", "login:", "notifications:"])
    return {key: value for key, value in found.items() if not key.endswith(":gone") and value != {"f": 0}}


async def test_a_rebuild_gives_the_same_store(graph: Graph, raw: Redis) -> None:
    """The tombstone, the reserved login and the floors are rebuilt. Another deleted user still waits for erasure."""
    world = await populate(graph)
    [other] = await people(graph, "other")
    await befriend(graph, other, world.alice)
    await delete(graph, world.gone)
    await erase(graph)
    number = await delete(graph, other, "other")
    await settle(graph)
    await graph.housekeeping.tidy()
    before = await comparable(raw)

    await raw.flushall()
    report = await graph.rebuild().run()
    graph.binding.forget()

    assert report.damaged == 0
    assert await comparable(raw) == before
    assert await raw.zscore(keys.gone(keys.liked(world.gone)), "f")
    assert await raw.zrange(keys.ERASING, 0, -1, withscores=True) == [(str(other), number)]
    assert await left(raw, SECRET) == []
    assert not (await graph.repair().run(correct=False)).examples
    await erase(graph)
    assert await graph.users.followers_counts([world.alice]) == [1]


async def test_the_login_stays_reserved_and_the_names_are_forgotten(graph: Graph) -> None:
    world = await populate(graph)
    await delete(graph, world.gone)
    await erase(graph)

    [credential] = (await graph.archive.credentials([world.gone])).values()
    assert (credential.login, credential.hash) == (login_hash(LOGIN), None)
    assert await graph.archive.named(name_query(SECRET).codes(), Window(10, forward=True)) == ([], None)


async def test_a_page_that_a_deleted_user_still_reads_leaves_no_cache(graph: Graph, raw: Redis) -> None:
    """The request had passed its checks, and no step would remove its cache before it expires."""
    world = await populate(graph)
    await delete(graph, world.gone)
    await erase(graph)

    await cached(graph, world.gone)

    assert not await raw.exists(keys.home(world.gone))
