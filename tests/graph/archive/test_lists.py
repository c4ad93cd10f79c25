"""Tests of the lists of posts in the archive: replies, reposts and quotes, in all databases."""

from typing import Any

import pytest

from graph.archive.archive import Archive
from graph.archive.rows import UNREPOST, EventRow
from graph.model import Post
from graph.paging import Window
from graph.post_lists import POST_LISTS, QUOTES, REPLIED, REPLIES, REPOSTS, TIMELINE, PostList
from tests.graph.archive.events import append, deletion, post, reposted
from tests.graph.archive.test_plans import plans_of

EVERY = Window(99, forward=True)


@pytest.fixture
async def talk(archive: Archive) -> Archive:
    """User 1 posts 10, and replies to it with 11. User 2 replies to 10 and 11, and quotes 10 twice.

    Users 2 and 3 repost 10.
    """
    await append(
        archive,
        post(10, 1),
        post(11, 1, reply_to=10, root=10),
        post(12, 2, reply_to=10, root=10, listed=False),
        post(13, 2, reply_to=11, root=10, listed=False, repost_of=10),
        post(14, 2, repost_of=10),
        post(15, 2),
        reposted(16, 2, 10),
        reposted(17, 3, 10),
    )
    return archive


async def listed(archive: Archive, post_list: PostList, owner: int) -> list[int]:
    [found] = await archive.slices([(owner, EVERY)], post_list)
    return [each.id for each in found]


async def test_a_post_is_in_all_its_lists(talk: Archive) -> None:
    assert [await listed(talk, TIMELINE, user) for user in (1, 2)] == [[11, 10], [16, 15, 14]]
    assert [await listed(talk, REPLIED, user) for user in (1, 2)] == [[11], [13, 12]]
    assert [await listed(talk, REPLIES, parent) for parent in (10, 11, 12)] == [[12, 11], [13], []]
    assert [await listed(talk, QUOTES, original) for original in (10, 14)] == [[14, 13], []]
    assert [await listed(talk, REPOSTS, original) for original in (10, 14)] == [[17, 16], []]
    assert [row.id for row in await talk.merge([1, 2], EVERY)] == [16, 15, 14, 11, 10]


async def test_lists_are_paged_and_counted(talk: Archive) -> None:
    window = Window(1, forward=False, low=11)
    assert await talk.slices([(2, window)], REPLIED) == [[(await talk.get_many([12]))[0]]]
    assert await talk.post_ids(10, 10, 13, QUOTES) == {13}
    assert await talk.post_ids(10, 16, 20, REPOSTS) == {17}
    assert (await talk.post_counts([(10, 11), (10, 99), (11, 99)], REPLIES))[0] == [1, 2, 1]
    assert await talk.post_rows([(15, EVERY)], REPLIES) == [[]]


async def test_owners_are_found_in_order(talk: Archive) -> None:
    assert {post_list: await talk.owners(post_list, 0, 9) for post_list in POST_LISTS} == {
        TIMELINE: [1, 2, 3],
        REPLIED: [1, 2],
        REPLIES: [10, 11],
        REPOSTS: [10],
        QUOTES: [10],
    }
    assert await talk.owners(REPLIES, 0, 1) == [10]
    assert await talk.owners(REPLIES, 10, 1) == [11]
    assert await talk.owners(REPLIES, 11, 1) == []


async def test_a_deleted_post_leaves_all_its_lists(talk: Archive) -> None:
    """The lists under the deleted post stay."""
    await append(talk, deletion(18, 13, 2), deletion(19, 10), EventRow(20, UNREPOST, 2, 10, '{"repost":16}'))

    assert await listed(talk, REPLIED, 2) == [12]
    assert await listed(talk, REPLIES, 11) == []
    assert await listed(talk, QUOTES, 10) == [14]
    assert await listed(talk, REPOSTS, 10) == [17]
    assert await listed(talk, REPLIES, 10) == [12, 11]
    assert await listed(talk, TIMELINE, 1) == [11]


async def test_replies_are_found_by_id(talk: Archive) -> None:
    [reply] = await talk.get_many([13])

    assert reply == Post(13, 2, "text", reply_to=11, root=10, repost_of=10, listed=False)


@pytest.mark.parametrize("post_list", POST_LISTS, ids=lambda post_list: str(post_list.name))
async def test_a_list_is_read_from_its_index(archive: Archive, post_list: PostList) -> None:
    bodies: dict[PostList, dict[str, Any]] = {
        TIMELINE: {},
        REPLIED: {"reply_to": 5, "listed": False},
        REPLIES: {"reply_to": 1, "listed": False},
        QUOTES: {"repost_of": 1},
    }
    rows = (reposted(n, n, 1) if post_list is REPOSTS else post(n, 1, **bodies[post_list]) for n in range(10, 2000))
    await append(archive, *rows)
    window = Window(11, forward=True, low=50, high=1900)

    read = await plans_of(archive, lambda: archive.post_rows([(1, window)], post_list))
    counted = await plans_of(archive, lambda: archive.post_counts([(1, 100)], post_list))

    assert any(f"events_by_{post_list.column}" in step for step in read)
    assert all(f"events_by_{post_list.column}" in step for step in counted)
