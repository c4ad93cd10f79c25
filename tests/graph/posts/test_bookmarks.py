"""Bookmarks: their conditions, their pages, and their end."""

from collections.abc import Callable

import pytest

from graph import Graph
from graph.errors import ArchiveUnavailable, ProblemCode, Rejected
from graph.log.pair_events import Bookmarked, BookmarkRemoved
from graph.model import MAX_NUMBER
from graph.posts.bookmarks import REMOVED_AT_ONCE
from tests.support.graph_worlds import append_events, befriend, counted, newest, people, posts


async def add(graph: Graph, viewer: int, post: int) -> int:
    return await graph.bookmarks.add(graph.visibility.of(viewer), viewer, post)


async def remove(graph: Graph, viewer: int, post: int) -> int:
    return await graph.bookmarks.remove(graph.visibility.of(viewer), viewer, post)


async def listed(graph: Graph, viewer: int, count: int = 100) -> list[int]:
    """Return the ids of the newest bookmarked posts."""
    page = await graph.bookmarks.page(graph.visibility.of(viewer), viewer, newest(count))
    return [each.post.id for each in page.items]


async def test_a_bookmark_is_the_users_own_until_it_is_removed(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    first, second = await posts(graph, bob, "one", "two")

    for post in (second, first):
        assert await add(graph, alice, post) == post

    assert await listed(graph, alice) == [first, second]
    assert await graph.bookmarks.bookmarked_among(alice, [second, first, bob]) == [True, True, False]
    assert await listed(graph, bob) == []
    assert await remove(graph, alice, first) == first
    assert await listed(graph, alice) == [second]


async def test_a_repetition_appends_nothing_unless_a_later_event_has_said_otherwise(graph: Graph) -> None:
    """A later event counts even if it is not projected yet."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.worker().drain()
    for change, opposite in ((add, BookmarkRemoved(alice, post)), (remove, Bookmarked(alice, post))):
        await change(graph, alice, post)
        last = await graph.log.last()
        await change(graph, alice, post)
        assert await graph.log.last() == last

        [undone] = await append_events(graph, [opposite])
        await change(graph, alice, post)
        assert await graph.log.last() > undone.number


async def test_bookmarks_of_deleted_and_hidden_posts_are_skipped_and_can_be_removed(graph: Graph) -> None:
    """A page continues with the posts after them."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    seen, deleted = await posts(graph, bob, "seen", "deleted")
    [hidden] = await posts(graph, carol, "hidden")
    for post in (seen, deleted, hidden):
        await add(graph, alice, post)
    await graph.posts.delete(bob, deleted)
    await graph.blocks.block(carol, alice)

    assert await listed(graph, alice, 1) == [seen]
    for post in (deleted, hidden):
        assert await remove(graph, alice, post) == post
        assert await graph.bookmarks.bookmarked_among(alice, [post]) == [False]


UNSEEN: dict[str, Callable[[int, int, int], int]] = {
    "a deleted post": lambda deleted, _hidden, _user: deleted,
    "a hidden post": lambda _deleted, hidden, _user: hidden,
    "a user": lambda _deleted, _hidden, user: user,
    "an unknown id": lambda *_: MAX_NUMBER,
}


@pytest.mark.parametrize("change", [add, remove])
@pytest.mark.parametrize("which", UNSEEN)
async def test_a_post_that_the_viewer_does_not_see_is_not_found(
    graph: Graph, which: str, change: Callable[..., object]
) -> None:
    alice, bob = await people(graph, "alice", "bob")
    deleted, hidden = await posts(graph, bob, "deleted", "hidden")
    await graph.posts.delete(bob, deleted)
    await graph.blocks.block(bob, alice)

    with pytest.raises(Rejected) as raised:
        await change(graph, alice, UNSEEN[which](deleted, hidden, bob))  # type: ignore[misc] # both are coroutines
    assert [(each.code, each.field) for each in raised.value.problems] == [(ProblemCode.NOT_FOUND, ("postId",))]


async def test_a_full_set_refuses_until_a_bookmarked_post_is_deleted(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = await people(graph, "alice", "bob")
    first, second, third = await posts(graph, bob, "one", "two", "three")
    monkeypatch.setattr(graph.bookmarks._changes, "_limit", 2)
    for post in (first, second):
        await add(graph, alice, post)

    with pytest.raises(Rejected) as raised:
        await add(graph, alice, third)
    assert [each.code for each in raised.value.problems] == [ProblemCode.TOO_MANY]
    await add(graph, alice, second)  # is there already

    await graph.posts.delete(bob, first)
    await graph.worker().drain()
    await graph.archiver.work()
    await add(graph, alice, third)
    assert await graph.bookmarks.bookmarked_among(alice, [first, second, third]) == [False, True, True]


async def test_a_full_set_refuses_while_the_archive_is_down(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the archive, it is unknown which posts are deleted."""
    alice, bob = await people(graph, "alice", "bob")
    first, second = await posts(graph, bob, "one", "two")
    monkeypatch.setattr(graph.bookmarks._changes, "_limit", 1)
    await add(graph, alice, first)

    async def fail(*_: object) -> None:
        raise ArchiveUnavailable(OSError("down"))

    monkeypatch.setattr(graph.archive, "kinds_of", fail)
    with pytest.raises(Rejected) as raised:
        await add(graph, alice, second)
    assert [each.code for each in raised.value.problems] == [ProblemCode.TOO_MANY]


async def test_a_full_set_removes_the_bookmarks_of_many_deleted_posts_in_portions(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = await people(graph, "alice", "bob")
    found = await posts(graph, bob, *(str(n) for n in range(REMOVED_AT_ONCE + 2)))
    await append_events(graph, [Bookmarked(alice, post) for post in found])
    for post in found[:-1]:
        await graph.posts.delete(bob, post)
    await graph.worker().drain()
    await graph.archiver.work()
    monkeypatch.setattr(graph.bookmarks._changes, "_limit", len(found))
    [post] = await posts(graph, bob, "one more")

    await add(graph, alice, post)

    standing = await graph.bookmarks.bookmarked_among(alice, found)
    assert standing == [False] * REMOVED_AT_ONCE + [True, True]


async def test_what_bookmarks_cost(graph: Graph) -> None:
    """A bookmark takes 3 round trips, a page 2, and the check whether posts are bookmarked 1."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    found = await posts(graph, bob, "one", "two")
    async with counted(graph) as cost:
        await add(graph, alice, found[0])
    assert cost.round_trips == 3
    async with counted(graph) as cost:
        await listed(graph, alice)
    assert cost.round_trips == 2
    async with counted(graph) as cost:
        await graph.bookmarks.bookmarked_among(alice, found)
    assert cost.round_trips == 1
