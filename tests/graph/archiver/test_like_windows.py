"""Sets of likes are cut to the hot window, and the archive completes pages, counts and answers."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.archiver.like_counts import LikeCount, set_count
from graph.errors import ArchiveUnavailable
from graph.log.events import Event, Liked
from graph.log.log import Log
from graph.model import MAX_NUMBER
from graph.paging import Window
from graph.posts.like_pages import LIKERS
from graph.projections.mode import Mode
from graph.store.commands import script
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import Open, archive_log, crowd, outcomes_of, posts

HOT, SLACK = 3, 2
SMALL: dict[str, Any] = {"hot_posts": HOT, "hot_slack": SLACK, "tombstones_live": timedelta(0)}


@pytest.fixture
async def small(another: Open) -> Graph:
    """Return a graph whose sets of likes are cut soon."""
    return await another(**SMALL)


async def settle(graph: Graph) -> None:
    """Project and archive everything, and cut the sets that are too long."""
    await graph.worker().drain()
    await archive_log(graph)


async def likers(graph: Graph, post: int, size: int = 2) -> list[int]:
    """Return the users who like a post, newest like first, read from both ends. Check the count."""
    downwards: list[int] = []
    window = Window(size, forward=True)
    while True:
        [page] = await graph.likes.pages.of_posts(SYSTEM, [post], window)
        downwards += [like.user for like in page.items]
        if not page.has_next:
            break
        window = Window(size, forward=True, high=page.items[-1].number)
    upwards: list[int] = []
    window = Window(size, forward=False)
    while True:
        [page] = await graph.likes.pages.of_posts(SYSTEM, [post], window)
        upwards[:0] = [like.user for like in page.items]
        if not page.has_previous:
            break
        window = Window(size, forward=False, low=page.items[0].number)
    [found] = await graph.posts.get_many(SYSTEM, [post])
    assert found is not None
    assert downwards == upwards
    assert found.likes == len(downwards)
    return downwards


async def liked_by(graph: Graph, post: int, users: Sequence[int]) -> None:
    """Let users like a post, in this order."""
    for user in users:
        await graph.likes.like(user, post)


async def hot(raw: Redis, key: str) -> list[int]:
    """Return the members of a set, oldest first, without the floor."""
    members: Any = await raw.zrange(key, 0, -1)
    return [int(member) for member in members if member != "f"]


async def test_the_oldest_likes_of_a_post_are_only_in_the_archive(small: Graph, raw: Redis) -> None:
    author, *fans = await crowd(small, 9)
    [post] = await posts(small, author, "hi")
    await liked_by(small, post, fans[:5])
    await settle(small)
    assert await hot(raw, keys.likes(post)) == fans[:5]

    await liked_by(small, post, fans[5:])
    await settle(small)

    assert await hot(raw, keys.likes(post)) == fans[-HOT:]
    assert await raw.get(keys.cold_likes(post)) == "5"
    assert await likers(small, post) == fans[::-1]


async def test_a_like_below_the_floor_is_counted_once(small: Graph, raw: Redis) -> None:
    """The like is undone, repeated, and projected again, before and after the archive has it."""
    author, *fans = await crowd(small, 9)
    [post] = await posts(small, author, "hi")
    await liked_by(small, post, fans)
    await settle(small)
    last = await small.log.last()
    await small.likes.like(fans[0], post)
    assert await small.log.last() == last

    await small.likes.unlike(fans[0], post)
    assert await likers(small, post) == fans[:0:-1]
    await settle(small)
    assert await likers(small, post) == fans[:0:-1]
    await small.likes.like(fans[0], post)
    assert await likers(small, post) == [fans[0], *fans[:0:-1]]
    await settle(small)
    assert await likers(small, post) == [fans[0], *fans[:0:-1]]

    events = [event async for event in small.log.replay(post, MAX_NUMBER)]
    await small.projections.project(events[::-1], Mode.WORKER)
    assert await likers(small, post) == [fans[0], *fans[:0:-1]]


async def test_a_repeated_like_replaces_the_archived_one(small: Graph) -> None:
    """After two tabs have liked a post at the same time, the like counts once, with the later time."""
    author, *fans = await crowd(small, 9)
    [post] = await posts(small, author, "hi")
    await liked_by(small, post, fans)
    await settle(small)

    await small.commit([Liked(fans[0], post, author)])
    assert await likers(small, post) == [fans[0], *fans[:0:-1]]
    await settle(small)
    assert await likers(small, post) == [fans[0], *fans[:0:-1]]


async def test_old_likes_of_a_viewer_are_asked_of_the_archive(small: Graph, raw: Redis) -> None:
    author, fan, *_ = await crowd(small, 3)
    written = await posts(small, author, *map(str, range(10)))
    for post in written[:8]:
        await small.likes.like(fan, post)
    await settle(small)
    assert await hot(raw, keys.liked(fan)) == written[5:8]
    await small.likes.unlike(fan, written[1])

    expected = [post < written[8] and post != written[1] for post in written]
    assert await small.likes.liked_among(fan, written) == expected
    for size in (1, 100):
        page = await small.likes.pages.of_user(SYSTEM, fan, Window(size, forward=True))
        assert [liked.post.id for liked in page.items] == [*written[7:1:-1], written[0]][:size]
        page = await small.likes.pages.of_user(SYSTEM, fan, Window(size, forward=False))
        assert [liked.post.id for liked in page.items] == [*written[7:1:-1], written[0]][-size:]
    await settle(small)
    assert await small.likes.liked_among(fan, written) == expected


async def test_what_the_archive_must_answer_waits_for_it(small: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The like is committed, and a worker counts it once the archive answers. New posts do not need the archive."""
    author, *fans = await crowd(small, 9)
    [post] = await posts(small, author, "hi")
    await liked_by(small, post, fans)
    await settle(small)
    [other] = await posts(small, author, "other")

    async def fail(*_: object) -> Any:
        raise ArchiveUnavailable("an outage of the test")

    with monkeypatch.context() as outage:
        outage.setattr(Archive, "_transaction", fail)
        await small.likes.unlike(fans[0], post)
        await small.likes.like(author, post)
        await small.likes.like(fans[0], other)
        assert await likers(small, other) == [fans[0]]
        with pytest.raises(ArchiveUnavailable):
            await likers(small, post)
    assert small.commit.left_to_worker == 2

    await settle(small)
    assert await likers(small, post) == [author, *fans[:0:-1]]


async def test_the_archive_must_reach_the_floor(small: Graph) -> None:
    """Answers from an old archive that was restored are not used."""
    author, fan, *_ = await crowd(small, 3)
    await settle(small)
    watermark = (await small.archive.state()).watermark
    assert await small.archive.likers([(author, watermark, [fan])]) == [set()]
    with pytest.raises(ArchiveUnavailable):
        await small.archive.likers([(author, watermark + 1, [fan])])


async def test_floors_that_change_are_asked_about_again(small: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    author, *fans = await crowd(small, 9)
    [post] = await posts(small, author, "hi")
    await liked_by(small, post, fans)
    await settle(small)
    ask = Archive.likers
    asked: list[Any] = []

    async def cut_meanwhile(self: Archive, reads: Any) -> Any:
        answer = await ask(self, reads)
        asked.append(reads)
        if len(asked) == 1:
            await small.hot_window.likes._cut(LIKERS, post, asked[0][0][1], 1, small.log.known_watermark)
        return answer

    monkeypatch.setattr(Archive, "likers", cut_meanwhile)
    await small.likes.unlike(fans[0], post)

    assert asked[0][0][1] < asked[-1][0][1]
    assert await likers(small, post) == fans[:0:-1]


async def test_the_scan_cuts_old_likes_and_corrects_counts(another: Open, raw: Redis) -> None:
    graph = await another(**SMALL, hot_age=timedelta(seconds=-1), hot_newest=1)
    author, *fans = await crowd(graph, 5)
    [post] = await posts(graph, author, "hi")
    await liked_by(graph, post, fans)
    await settle(graph)

    await graph.scan.run_pass()
    assert await hot(raw, keys.likes(post)) == fans[-1:]
    assert await likers(graph, post) == fans[::-1]

    await raw.set(keys.cold_likes(post), "7")
    await graph.scan.run_pass()
    assert await raw.get(keys.cold_likes(post)) == "3"
    assert await likers(graph, post) == fans[::-1]


async def test_the_scan_deletes_likes_that_a_late_projection_left(small: Graph, raw: Redis) -> None:
    author, fan, *_ = await crowd(small, 3)
    [post] = await posts(small, author, "hi")
    await small.likes.like(fan, post)
    [like] = [event async for event in small.log.replay(post, MAX_NUMBER)]
    await small.posts.delete(author, post)
    await settle(small)
    await raw.delete(keys.post(post))
    await small.projections.project([like], Mode.WORKER)
    assert await raw.exists(keys.likes(post))

    await small.scan.run_pass()
    assert not await raw.exists(keys.likes(post))


async def test_a_cut_inserts_likes_that_the_archive_lacks(small: Graph, raw: Redis) -> None:
    author, *fans = await crowd(small, 9)
    [post] = await posts(small, author, "hi")
    await settle(small)
    low = (await small.archive.state()).watermark
    await small.commit([Liked(fan, post, author) for fan in fans])
    await small.worker().drain()
    up_to = await small.log.last()
    state = await small.archive.state()
    await small.archive.append([], [], store=state.store or "", watermark=low, up_to=up_to)

    await small.hot_window.likes.cut_full(LIKERS, [post], up_to)

    assert await hot(raw, keys.likes(post)) == fans[-HOT:]
    assert await likers(small, post) == fans[::-1]


async def test_processes_that_cut_and_change_at_once_count_right(another: Open) -> None:
    """Four processes concurrently like, unlike, archive and repeat events."""
    graphs = [await another(**SMALL) for _ in range(3)]
    graph = graphs[0]
    author, *fans = await crowd(graph, 12)
    [post] = await posts(graph, author, "hi")
    await liked_by(graph, post, fans)
    await settle(graph)
    for step in range(3):
        changes = [
            (each.likes.unlike if (place + step) % 2 else each.likes.like)(fan, post)
            for place, fan in enumerate(fans)
            for each in [graphs[place % 3]]
        ]
        done = await outcomes_of(*changes, archive_log(graphs[1]), archive_log(graphs[2]))
        assert not [each for each in done if isinstance(each, Exception)]
        await settle(graph)
        await repeated(graph, post)
        assert sorted(await likers(graph, post)) == sorted(
            fan for place, fan in enumerate(fans) if not (place + step) % 2
        )


async def repeated(graph: Graph, post: int) -> None:
    """Project the whole log again, in reverse order."""
    log: Log = graph.log
    events: list[Event] = [event async for event in log.replay(post, MAX_NUMBER)]
    await graph.projections.project(events[::-1], Mode.WORKER)


async def test_a_cut_that_was_overtaken_or_finds_another_like_removes_nothing(small: Graph, raw: Redis) -> None:
    author, *fans = await crowd(small, 8)
    [post] = await posts(small, author, "hi")
    await liked_by(small, post, fans)
    await settle(small)
    name, floor = keys.likes(post), int(await raw.zscore(keys.likes(post), "f") or 0)
    fan = (await hot(raw, name))[0]
    number = int(await raw.zscore(name, str(fan)) or 0)
    cut = script("cut_likes")

    overtaken = await small.store.run(*cut.call([name, keys.cold_likes(post)], 0, number, fan, number))
    differs = await small.store.run(*cut.call([name, keys.cold_likes(post)], floor, number, fan, number - 1))

    assert (overtaken, differs) == ("overtaken", "differs")
    assert len(await likers(small, post)) == len(fans)


async def test_a_count_that_has_changed_is_not_corrected(small: Graph, raw: Redis) -> None:
    """An unlike of an archived like is projected between the comparison and the correction."""
    author, *fans = await crowd(small, 8)
    [post] = await posts(small, author, "hi")
    await liked_by(small, post, fans)
    await settle(small)
    archived = str(await raw.get(keys.cold_likes(post)))
    compared = LikeCount(post, int(await raw.zscore(keys.likes(post), "f") or 0), archived)
    await small.likes.unlike(fans[0], post)
    await small.worker().drain()

    outcomes = await small.store.send([set_count(compared, int(archived))])

    assert outcomes == [0]
    assert len(await likers(small, post)) == len(fans) - 1
