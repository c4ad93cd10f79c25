"""Pages of notifications, the number of unread notifications, and the mark up to which they are read."""

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Event, Followed, NotificationsRead, PostPublished
from graph.log.notification_groups import Group, NotificationKind, day_of
from graph.model import MAX_NUMBER
from graph.notifications.notifications import MAX_UNREAD, MIN_WINDOW
from graph.projections.mode import Mode
from tests.graph.notifications.reading import all_of, listed, mention, newest, oldest, project, summary, view
from tests.support.graph_worlds import Open, append_events, befriend, counted, crowd, people, posts

MENTION, FOLLOW = NotificationKind.MENTION, NotificationKind.FOLLOW
DAY = 86_400_000 << 12


async def test_followers_of_a_day_are_one_notification(graph: Graph) -> None:
    alice, *fans = await crowd(graph, 13)
    for fan in fans:
        await befriend(graph, fan, alice)
    assert await summary(graph, alice) == [("FOLLOW", tuple(fans[:1:-1]), 12)]


async def test_followers_of_two_days_are_two_notifications(graph: Graph) -> None:
    """The day is that of the event's number."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await project(graph, (DAY * 3, Followed(bob, alice)), (DAY * 4 - 1, Followed(carol, alice)))
    assert await summary(graph, alice) == [("FOLLOW", (carol, bob), 2)]
    await project(graph, (DAY * 4, Followed(bob, alice)))
    assert await summary(graph, alice) == [("FOLLOW", (bob,), 1), ("FOLLOW", (carol,), 1)]


async def test_a_notification_vanishes_with_its_last_user(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, bob, alice)
    await befriend(graph, carol, alice)
    await graph.follows.unfollow(carol, [alice])
    assert await summary(graph, alice) == [("FOLLOW", (bob,), 1)]
    await graph.follows.unfollow(bob, [alice])
    assert await summary(graph, alice) == []
    assert await graph.notifications.unread_count(view(graph, alice)) == 0


async def test_a_mention_shows_the_post_and_vanishes_with_it(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    post = await mention(graph, bob, alice)
    [shown] = await all_of(graph, alice)
    assert (shown.kind, shown.subject, shown.number, shown.actors, shown.actors_count) == (
        MENTION,
        post,
        post,
        (bob,),
        1,
    )
    assert shown.post is not None
    assert shown.post.text == "hello"
    await graph.posts.delete(bob, post)
    assert await all_of(graph, alice) == []
    assert await graph.notifications.unread_count(view(graph, alice)) == 0


async def test_a_late_event_does_not_move_a_group_back(graph: Graph, raw: Redis) -> None:
    await project(graph, (DAY + 9, Followed(5, 1)), (DAY + 7, Followed(6, 1)), (DAY + 9, Followed(5, 1)))
    assert await listed(raw, 1) == {f"follow:{day_of(DAY)}": DAY + 9}


async def test_a_full_list_drops_the_oldest_groups_and_ignores_late_events(another: Open, raw: Redis) -> None:
    graph = await another(notifications_kept=2)
    events = [(number, PostPublished(9, "", mentions=(1,))) for number in (10, 20, 30)]
    await project(graph, *events)
    expected = {"f": 10, "mention:20": 20, "mention:30": 30}
    assert await listed(raw, 1) == expected
    await project(graph, events[0], (5, PostPublished(9, "", mentions=(1,))))
    assert await listed(raw, 1) == expected
    await graph.projections.project([Event(number, body) for number, body in events[::-1]], Mode.WORKER)
    assert await listed(raw, 1) == expected


async def test_a_list_without_its_oldest_groups_has_no_holes(another: Open, raw: Redis) -> None:
    """A process that keeps more groups does not add one below groups that another process has dropped."""
    short, long = await another(notifications_kept=2), await another(notifications_kept=4)
    await project(short, *((number, PostPublished(9, "", mentions=(1,))) for number in (10, 20, 30)))
    expected = {"f": 10, "mention:20": 20, "mention:30": 30}
    for late in (5, 10):
        await project(long, (late, PostPublished(9, "", mentions=(1,))))
        assert await listed(raw, 1) == expected
    await project(long, (15, PostPublished(9, "", mentions=(1,))))
    assert await listed(raw, 1) == expected | {"mention:15": 15}


async def test_a_group_that_moves_up_stays_in_a_full_list(another: Open, raw: Redis) -> None:
    graph = await another(notifications_kept=1)
    day = f"follow:{day_of(DAY)}"
    await project(
        graph, (DAY, Followed(5, 1)), (DAY + 5, PostPublished(9, "", mentions=(1,))), (DAY + 9, Followed(6, 1))
    )
    assert await listed(raw, 1) == {"f": DAY + 5, day: DAY + 9}


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_pages_in_both_directions(graph: Graph, size: int) -> None:
    """Other groups replace those that are left out, so only the last page is short."""
    alice, bob = await people(graph, "alice", "bob")
    mentions = [await mention(graph, bob, alice) for _ in range(9)]
    for gone in (mentions[0], mentions[4], mentions[5], mentions[8]):
        await graph.posts.delete(bob, gone)
    kept = [post for at, post in enumerate(mentions) if at not in (0, 4, 5, 8)]

    down: list[int] = []
    while True:
        page = await graph.notifications.page(view(graph, alice), newest(size, down[-1] if down else None))
        down += [each.number for each in page.items]
        assert page.has_previous == (len(down) > len(page.items))
        if not page.has_next:
            break
        assert len(page.items) == size
    up: list[int] = []
    while True:
        page = await graph.notifications.page(view(graph, alice), oldest(size, up[0] if up else None))
        up = [each.number for each in page.items] + up
        if not page.has_previous:
            break
        assert len(page.items) == size
    assert down == up == kept[::-1]


async def test_pages_of_a_full_list_do_not_show_its_floor(another: Open) -> None:
    graph = await another(notifications_kept=3)
    alice, bob = await people(graph, "alice", "bob")
    mentions = [await mention(graph, bob, alice) for _ in range(5)]
    for window in (newest(3), newest(4), oldest(3), oldest(4)):
        page = await graph.notifications.page(view(graph, alice), window)
        assert [each.number for each in page.items] == mentions[:1:-1]
        assert (page.has_next, page.has_previous) == (False, False)
    page = await graph.notifications.page(view(graph, alice), oldest(2))
    assert [each.number for each in page.items] == mentions[3:1:-1]


async def test_notifications_are_read_up_to_a_number(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    first, second, third = [await mention(graph, bob, alice) for _ in range(3)]
    assert await graph.notifications.unread_count(view(graph, alice)) == 3
    await graph.notifications.mark_read(alice, second)
    assert [each.is_read for each in await all_of(graph, alice)] == [False, True, True]
    assert await graph.notifications.unread_count(view(graph, alice)) == 1
    last = await graph.log.last()
    for up_to in (0, first, second, third - 1):
        await graph.notifications.mark_read(alice, up_to)
    assert await graph.log.last() == last, "nothing to mark, nothing written"
    await graph.notifications.mark_read(alice, MAX_NUMBER)
    await graph.notifications.mark_read(alice, MAX_NUMBER)
    assert await graph.log.last() > last
    assert await graph.notifications.unread_count(view(graph, alice)) == 0


async def test_what_comes_later_is_unread_whatever_the_cursor(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await mention(graph, bob, alice)
    await graph.notifications.mark_read(alice, MAX_NUMBER)
    await mention(graph, bob, alice)
    assert await graph.notifications.unread_count(view(graph, alice)) == 1


async def test_a_mark_never_goes_back(graph: Graph, raw: Redis) -> None:
    await project(graph, (90, NotificationsRead(1, 50)), (91, NotificationsRead(1, 40)), (60, NotificationsRead(1, 99)))
    assert await raw.get(keys.notifications_read(1)) == "60"


async def test_a_group_that_moves_up_is_unread_again(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, bob, alice)
    await graph.notifications.mark_read(alice, await graph.log.last())
    assert await graph.notifications.unread_count(view(graph, alice)) == 0
    await befriend(graph, carol, alice)
    [shown] = await all_of(graph, alice)
    assert (shown.is_read, shown.actors_count) == (False, 2)


async def test_unread_notifications_are_counted_up_to_the_limit(graph: Graph) -> None:
    """The number is exact up to one above the limit, even if the newest notifications are left out."""
    alice, bob = await people(graph, "alice", "bob")
    events = await graph.commit([PostPublished(bob, "hello", mentions=(alice,)) for _ in range(MAX_UNREAD + 30)])
    for event in events[:-20:-1]:
        await graph.posts.delete(bob, event.number)
    assert await graph.notifications.unread_count(view(graph, alice)) == MAX_UNREAD + 1
    for event in events[:40]:
        await graph.posts.delete(bob, event.number)
    assert await graph.notifications.unread_count(view(graph, alice)) == MAX_UNREAD + 30 - 19 - 40


async def test_unread_counts_at_the_limit(graph: Graph) -> None:
    """One above the limit is distinguished from exactly the limit, and further notifications are not counted."""
    alice, bob = await people(graph, "alice", "bob")
    await graph.commit([PostPublished(bob, "hello", mentions=(alice,)) for _ in range(MAX_UNREAD)])
    counts = []
    for _ in range(3):
        counts.append(await graph.notifications.unread_count(view(graph, alice)))
        await mention(graph, bob, alice)
    assert counts == [MAX_UNREAD, MAX_UNREAD + 1, MAX_UNREAD + 1]


async def test_costs(graph: Graph) -> None:
    alice, bob, *fans = await crowd(graph, 5)
    for fan in fans:
        await befriend(graph, fan, alice)
    async with counted(graph) as cost:
        assert await graph.notifications.unread_count(view(graph, bob)) == 0
    assert (cost.round_trips, cost.commands) == (1, 1)
    for _ in range(30):
        await mention(graph, bob, alice)
    async with counted(graph) as cost:
        assert await graph.notifications.unread_count(view(graph, alice)) == 31
    assert (cost.round_trips, cost.commands) == (2, 1 + 31 + 2), "the last two read the mutes, blocks and suspensions"
    async with counted(graph) as cost:
        assert len((await graph.notifications.page(view(graph, alice), newest(100))).items) == 31
    assert (cost.round_trips, cost.commands) == (2, 2 + 30 + 2 + 2)


async def test_a_few_groups_that_are_left_out_cost_little_more(graph: Graph) -> None:
    """A page and the number read a few further groups instead of these, not the whole list."""
    alice, bob = await people(graph, "alice", "bob")
    events = await graph.commit([PostPublished(bob, "hello", mentions=(alice,)) for _ in range(4 * MAX_UNREAD)])
    for event in events[-3:]:
        await graph.posts.delete(bob, event.number)
    async with counted(graph) as cost:
        assert await graph.notifications.unread_count(view(graph, alice)) == MAX_UNREAD + 1
    assert (cost.round_trips, cost.commands) == (4, 1 + (MAX_UNREAD + 1) + 2 + 1 + MIN_WINDOW)
    async with counted(graph) as cost:
        assert len((await graph.notifications.page(view(graph, alice), newest(100))).items) == 100
    assert (cost.round_trips, cost.commands) == (4, 2 + 101 + 2 + 2 + MIN_WINDOW)


async def test_a_notice_takes_no_round_trip(graph: Graph) -> None:
    """A follow is projected in 2 round trips, and a post with 20 mentions in as many as a post without mentions."""
    alice, bob, *others = await crowd(graph, 25)
    [follow] = await append_events(graph, [Followed(alice, bob)])
    async with counted(graph) as cost:
        await graph.projections.project([follow], Mode.WORKER)
    assert cost.round_trips == 2
    async with counted(graph) as plain:
        await posts(graph, alice, "hello")
    async with counted(graph) as cost:
        await mention(graph, alice, *others[:20])
    assert cost.round_trips == plain.round_trips
    assert [await graph.notifications.unread_count(view(graph, user)) for user in others] == [1] * 20 + [0] * 3


async def test_notifications_by_group(graph: Graph) -> None:
    """Only the user's own notifications are returned, and only while a visible user acts in them."""
    alice, bob = await people(graph, "alice", "bob")
    post = await mention(graph, bob, alice)
    wanted = [Group(MENTION, post), Group(FOLLOW, day_of(post)), Group(MENTION, post + 1)]
    [found, *rest] = await graph.notifications.get_many(view(graph, alice), wanted)
    assert found is not None
    assert (found.subject, found.is_read) == (post, False)
    assert rest == [None, None]
    assert await graph.notifications.get_many(view(graph, bob), wanted) == [None] * 3
    assert await graph.notifications.get_many(view(graph, bob), []) == []
