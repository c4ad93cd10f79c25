"""Tests of pages across the archive floor, and of reads during a cut."""

from itertools import count

import pytest

from graph import keys
from graph.errors import ArchiveUnavailable
from graph.visibility.views import SYSTEM
from tests.graph.archiver.world import FULL, HOT, ArchiveWorld, Meanwhile, queries_of
from tests.support.graph_worlds import (
    counts_of,
    crowd,
    home,
    home_upwards,
    ids,
    many_posts,
    newest,
    oldest,
    own,
)
from tests.support.stores import Fault, sends


@pytest.mark.parametrize("cache", [False, True], ids=["merged", "cached"])
@pytest.mark.parametrize("forward", [True, False], ids=["newest first", "oldest first"])
async def test_a_home_page_misses_no_post_that_is_cut_meanwhile(
    world: ArchiveWorld, forward: bool, cache: bool
) -> None:
    """The cut happens between any two calls of the read."""
    for call in count():
        reader = await world.restore()
        if not cache:
            await world.raw.delete(keys.home(world.alice))
        window = newest(7) if forward else oldest(7)
        meanwhile = Meanwhile(reader, call, world.archive)

        page = await reader.timelines.home(world.alice, window)
        await reader.timelines.wait_for_rebuilds()

        assert ids(page.items) == (world.home()[:7] if forward else world.home()[-7:])
        if not meanwhile.happened:
            break
    assert call >= 2


@pytest.mark.parametrize("forward", [True, False], ids=["newest first", "oldest first"])
async def test_a_users_timeline_misses_no_post_that_is_cut_meanwhile(world: ArchiveWorld, forward: bool) -> None:
    """The cut happens between any two calls of the timeline or of a look-up."""
    for call in count():
        reader = await world.restore()
        written = world.posts[world.bob]
        meanwhile = Meanwhile(reader, call, world.archive)
        assert await own(reader, world.bob, 3, forward=forward) == written[::-1]
        if not meanwhile.happened:
            break
    for call in count():
        reader = await world.restore()
        meanwhile = Meanwhile(reader, call, world.archive)
        assert [post and post.id for post in await reader.posts.get_many(SYSTEM, written)] == written
        if not meanwhile.happened:
            break


async def test_pages_skip_redacted_rows(world: ArchiveWorld) -> None:
    """Only the last page is short."""
    await world.publish(world.bob, 2 * FULL)
    await world.archive()
    archived = [post for post in world.posts[world.bob] if post <= await world.floor_of(world.bob)]
    await world.delete(world.bob, *range(1, len(archived) - 1))
    await world.check_pages()

    await world.check()


async def test_a_merge_reads_the_archived_posts_of_one_author_among_many(world: ArchiveWorld) -> None:
    """That author's hot posts are newer, and the archived ones older, than the other authors' posts."""
    graph = world.process(home_size=2, single_slot=False)
    viewer, *others, busy = await crowd(graph, 10)
    await graph.follows.follow(viewer, [*others, busy])
    written = await many_posts(graph, busy, 1)
    for other in others:
        written += await many_posts(graph, other, 3)
    written += await many_posts(graph, busy, FULL - 1)
    await world.archive(graph)
    assert await world.hot_of(busy) == written[-HOT:]

    for size in (1, 4, 9):
        await world.raw.delete(keys.home(viewer))
        assert await home(graph, viewer, size) == written[::-1]
        assert await home_upwards(graph, viewer, size) == written[::-1]
        await graph.timelines.wait_for_rebuilds()


async def test_no_query_follows_the_posts_of_an_author_whose_archived_posts_are_deleted(world: ArchiveWorld) -> None:
    """The number of archived posts is 0, although the floor is not."""
    await world.archive()
    while len(world.posts[world.bob]) > HOT:
        await world.delete(world.bob, 0)
    await world.archive()
    assert await world.floor_of(world.bob) > 0

    with queries_of(world.graph) as queries:
        assert await own(world.graph, world.bob, 2) == world.posts[world.bob][::-1]
        assert await own(world.graph, world.bob, 100, forward=False) == world.posts[world.bob][::-1]
    assert queries == []

    await world.publish(world.bob, FULL - HOT)
    await world.archive()
    with queries_of(world.graph) as queries:
        assert await own(world.graph, world.bob) == world.posts[world.bob][::-1]
    assert queries == ["post_rows"]


async def test_hot_posts_need_no_archive(world: ArchiveWorld) -> None:
    """While the archive is down, hot posts are read, published and deleted. Reads of older posts fail."""
    await world.archive()
    down = world.process()
    fault = Fault(down.store, sends("ARCHIVE"), ArchiveUnavailable("injected fault"), times=10**6)
    for read in (
        home(down, world.alice),
        home_upwards(down, world.alice),
        own(down, world.bob, 3),
        down.posts.get_many(SYSTEM, world.posts[world.bob][:1]),
    ):
        with pytest.raises(ArchiveUnavailable):
            await read

    world.graph = down
    await world.publish(world.bob, FULL, drain=True)
    await world.delete(world.bob, -1, drain=True)
    assert ids((await down.timelines.home(world.alice, newest(3))).items) == world.home()[:3]
    assert None not in await down.posts.get_many(SYSTEM, world.posts[world.bob][-2:])
    assert [counts.posts for counts in await counts_of(down, [world.bob])] == [len(world.posts[world.bob])]
    with pytest.raises(ArchiveUnavailable):
        await down.archiver.work()

    fault.left = 0
    await world.check()


async def test_a_lost_record_does_not_mean_that_its_post_is_deleted(world: ArchiveWorld) -> None:
    """A failover has lost the record, and the archive does not hold the post yet. Its next projection restores it."""
    [post] = world.posts[world.bob][-1:]
    await world.raw.delete(keys.post(post))

    assert await home(world.graph, world.alice) == [id_ for id_ in world.home() if id_ != post]
    assert str(post) in await world.raw.zrange(keys.home(world.alice), 0, -1)

    await world.project_again()
    await world.check()
