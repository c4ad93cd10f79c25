"""Pages of the notifications of some kinds only, and the record of each kind."""

import pytest

from graph import Graph
from graph.archive.usage import Usage, used_by
from graph.log.events import Event, PostPublished
from graph.log.notification_groups import (
    TYPES,
    FollowNotification,
    LikeNotification,
    MentionNotification,
    NotificationKind,
    QuoteNotification,
    ReplyNotification,
    RepostNotification,
)
from graph.paging import Window
from tests.graph.notifications.reading import all_of, mention, newest, oldest, view
from tests.support.graph_worlds import befriend, counted, people

FOLLOW, MENTION = frozenset({NotificationKind.FOLLOW}), frozenset({NotificationKind.MENTION})
LIKE, QUOTE = NotificationKind.LIKE, NotificationKind.QUOTE
MAX_LISTED = 1000


async def numbers(
    graph: Graph, user: int, window: Window, kinds: frozenset[NotificationKind] | None
) -> tuple[list[int], bool, bool]:
    """Return the numbers of the notifications of a page, and whether there are later and earlier pages."""
    page = await graph.notifications.page(view(graph, user), window, kinds)
    return [each.number for each in page.items], page.has_next, page.has_previous


async def liked_post(graph: Graph, author: int, reader: int) -> int:
    """Publish a post and let a reader like it. Return the number of the like."""
    post = (await graph.posts.publish(author, "hello")).id
    await graph.likes.like(reader, post)
    return await graph.log.last()


async def many_mentions(graph: Graph, author: int, user: int, count: int) -> list[Event]:
    """Mention a user in many posts at once."""
    return await graph.commit([PostPublished(author, "hello", mentions=(user,)) for _ in range(count)])


async def test_each_kind_has_a_record(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    post = (await graph.posts.publish(alice, "hello")).id
    await befriend(graph, bob, alice)
    await graph.posts.publish(bob, "re", reply_to=post)
    await mention(graph, bob, alice)
    await graph.posts.publish(bob, "see", quote_of=post)
    await graph.reposts.repost(graph.visibility.of(bob), bob, post)
    await graph.likes.like(bob, post)

    found = {type(each): each for each in await all_of(graph, alice)}

    assert set(found) == {
        FollowNotification,
        ReplyNotification,
        MentionNotification,
        QuoteNotification,
        RepostNotification,
        LikeNotification,
    }
    assert all(TYPES[each.kind] is type_ for type_, each in found.items())
    assert [type_ for type_, each in found.items() if each.post is None] == [FollowNotification]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_pages_of_a_kind_in_both_directions(graph: Graph, size: int) -> None:
    """Only the last page is short, and cursors are those of the whole list."""
    alice, bob = await people(graph, "alice", "bob")
    mentions = []
    for _ in range(7):
        await liked_post(graph, alice, bob)
        mentions.append(await mention(graph, bob, alice))
    await liked_post(graph, alice, bob)
    await graph.posts.delete(bob, mentions[3])
    kept = [post for post in mentions if post != mentions[3]][::-1]

    down: list[int] = []
    more = True
    while more:
        items, more, earlier = await numbers(graph, alice, newest(size, down[-1] if down else None), MENTION)
        assert earlier == bool(down)
        assert len(items) == size or not more
        down += items
    up: list[int] = []
    more = True
    while more:
        items, later, more = await numbers(graph, alice, oldest(size, up[0] if up else None), MENTION)
        assert later == bool(up)
        assert len(items) == size or not more
        up = items + up
    assert down == up == kept


async def test_a_cursor_of_another_kind_is_a_position(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    one = await mention(graph, bob, alice)
    liked = await liked_post(graph, alice, bob)
    two = await mention(graph, bob, alice)

    assert await numbers(graph, alice, newest(9, liked), MENTION) == ([one], False, True)
    assert await numbers(graph, alice, oldest(9, liked), MENTION) == ([two], True, False)


async def test_several_kinds_keep_the_order_of_the_list(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    one = await mention(graph, bob, alice)
    liked = await liked_post(graph, alice, bob)
    quote = (await graph.posts.publish(bob, "see", quote_of=(await graph.posts.publish(alice, "hi")).id)).id
    two = await mention(graph, bob, alice)

    assert await numbers(graph, alice, newest(9), MENTION | {LIKE}) == ([two, liked, one], False, False)
    assert await numbers(graph, alice, newest(2), MENTION | {QUOTE}) == ([two, quote], True, False)
    assert await numbers(graph, alice, newest(9), frozenset(NotificationKind)) == (
        [two, quote, liked, one],
        False,
        False,
    )


async def test_a_rare_kind_among_many(graph: Graph) -> None:
    """A page behind a thousand other notifications takes two round trips, and reads only its own notifications."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, bob, alice)
    follow = await graph.log.last()
    mentions = [each.number for each in await many_mentions(graph, carol, alice, MAX_LISTED - 1)]

    async with counted(graph) as cost:
        assert await numbers(graph, alice, newest(10), FOLLOW) == ([follow], False, False)
    assert (cost.round_trips, cost.commands) == (2, 2 + 2 + 2)
    assert await numbers(graph, alice, newest(10, mentions[500]), FOLLOW) == ([follow], False, True)
    assert await numbers(graph, alice, newest(1), FOLLOW) == ([follow], False, False)
    assert await numbers(graph, alice, oldest(10), FOLLOW) == ([follow], False, False)
    assert await numbers(graph, alice, oldest(10, follow), FOLLOW) == ([], True, False)


@pytest.mark.parametrize("at_once", [3, 4, 7, 8, 20])
async def test_a_list_that_is_longer_than_what_is_read_at_once(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """A process may keep more notifications than usual. Nothing is skipped or repeated between two reads."""
    monkeypatch.setattr("graph.notifications.notifications.WHOLE_LIST", at_once)
    alice, bob = await people(graph, "alice", "bob")
    mentions = []
    for _ in range(4):
        await liked_post(graph, alice, bob)
        mentions.append(await mention(graph, bob, alice))
    await graph.posts.delete(bob, mentions.pop(1))
    expected = mentions[::-1]

    for size in (1, 2, 3, 4):
        assert await numbers(graph, alice, newest(size), MENTION) == (expected[:size], size < 3, False)
        assert await numbers(graph, alice, oldest(size), MENTION) == (expected[-size:], False, size < 3)


async def test_the_whole_list_is_charged_to_the_operation(graph: Graph) -> None:
    """A page of few notifications must not be a cheap way to read many."""
    alice, bob = await people(graph, "alice", "bob")
    await many_mentions(graph, bob, alice, 200)
    found = []
    for kinds in (None, MENTION, FOLLOW):
        usage = Usage("user:1", anonymous=False)
        with used_by(usage):
            await numbers(graph, alice, newest(1), kinds)
        found.append(usage.points)
    assert found == [0, 200, 200]


async def test_a_page_of_a_common_kind_costs_as_much_as_without_a_choice(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await many_mentions(graph, bob, alice, 30)

    costs = []
    for kinds in (None, MENTION):
        async with counted(graph) as cost:
            await numbers(graph, alice, newest(20), kinds)
        costs.append((cost.round_trips, cost.commands))
    assert costs[0] == costs[1]
