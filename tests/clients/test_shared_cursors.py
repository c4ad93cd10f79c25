"""Lists share a cache: no page moves the cursor of another list, and each list stays equal to the server's.

A list is a timeline, whatever its page size, or the notifications of some kinds.
"""

from collections.abc import Sequence
from functools import partial

import pytest

from tests.clients.cached_lists import ListSettings, Stage, Timeline, release
from tests.support.graph_worlds import befriend, home, posts

pytestmark = pytest.mark.slow

TWO_SIZES: Sequence[ListSettings] = ({"first": 20}, {"first": 10})
ALL: ListSettings = {"shows": "notifications"}
MENTIONS: ListSettings = {"shows": "notifications", "kinds": ["MENTION"]}
LIKES: ListSettings = {"shows": "notifications", "kinds": ["LIKE"]}


async def look(stage: Stage, number: int) -> None:
    """Address the following commands to a list."""
    await stage.send(f"look {number}")


async def shows_everywhere(stage: Stage, *lists: list[str]) -> None:
    """Wait until each list has its texts."""
    for number, texts in enumerate(lists):
        await look(stage, number)
        await stage.each(lambda each: each.until(lambda each: each.texts[:1] == texts[:1]))  # noqa: B023 - awaited at once
        await stage.each(lambda each: each.shows(texts))  # noqa: B023 - awaited at once


async def fresh_cursors(stage: Stage) -> None:
    """Bring the cursors of the next pages up to date. Without this, they may be up to a second old."""
    await stage.graph.worker().drain()
    await stage.api.app.state.graph.log.watermark()


async def test_two_page_sizes_of_a_timeline(stage: Stage) -> None:
    """Both show all posts, while the page of one is delayed, and after it has replaced the list."""
    async with stage.open(lists=TWO_SIZES):
        await posts(stage.graph, stage.author, "live")
        for number in range(len(TWO_SIZES)):
            await look(stage, number)
            await stage.each(lambda timeline: timeline.sees("live"))
        await stage.send("hold", "fetch")
        await stage.each(Timeline.holds)
        await posts(stage.graph, stage.author, "meanwhile")
        await stage.each(lambda timeline: timeline.hears("meanwhile"))
        await stage.each(partial(release, lists=len(TWO_SIZES)))
        for number in range(len(TWO_SIZES)):
            await look(stage, number)
            await stage.check()


async def test_a_list_that_is_on_the_screen_twice(stage: Stage) -> None:
    """Each restarts from a page that has overwritten newer posts: they do not share a subscription."""
    async with stage.open(lists=[{}, {}]):
        await stage.send("hold", "fetch")
        await stage.each(Timeline.holds)
        await posts(stage.graph, stage.author, "meanwhile")
        await stage.each(lambda timeline: timeline.hears("meanwhile"))
        await stage.each(partial(release, lists=2))
        for number in range(2):
            await look(stage, number)
            await stage.check()


async def test_a_timeline_of_another_page_size_does_not_move_the_cursor(stage: Stage) -> None:
    """A list leaves the screen, a late page of another size replaces newer posts, and the list is shown again."""
    async with stage.open(lists=TWO_SIZES):
        await stage.send("look 1", "leave", "hold", "fetch")
        await stage.each(Timeline.holds)
        await stage.send("look 0", "leave")
        await posts(stage.graph, stage.author, "missed")
        await fresh_cursors(stage)
        await stage.send("ahead", "look 1", "release", "badge", "return", "look 0", "return")
        await stage.check()


async def test_later_pages_and_other_fields_do_not_move_the_cursor(stage: Stage) -> None:
    """The cursor does not move while the list is not on the screen and no event arrives."""
    await befriend(stage.graph, stage.viewer, stage.stranger)
    await posts(stage.graph, stage.stranger, "removed with its author")
    old = await home(stage.graph, stage.viewer)
    async with stage.open():
        await posts(stage.graph, stage.author, "live")
        await stage.each(lambda timeline: timeline.sees("live"))
        await stage.send("next", "leave")
        stage.proxy.refuse_websockets()
        await posts(stage.graph, stage.author, "missed")
        await stage.graph.posts.delete(stage.author, old[3])
        await stage.graph.follows.unfollow(stage.viewer, [stage.stranger])
        await fresh_cursors(stage)
        await stage.send("ahead", "badge", "return")
        await posts(stage.graph, stage.author, "missed, too")
        stage.proxy.accept_websockets()
        await stage.check()
        assert [timeline.counts["refetches"] for timeline in stage.timelines] == [2] * 3  # the badge is the second


@pytest.mark.parametrize("command", ["fetch", "fetch null"])
async def test_a_cursor_variable_that_is_null_or_missing(stage: Stage, command: str) -> None:
    """Both request the first page, which overwrites newer posts, whether or not the list is on the screen."""
    async with stage.open():
        await stage.send("hold", command)
        await stage.each(Timeline.holds)
        await posts(stage.graph, stage.author, "meanwhile")
        await stage.each(lambda timeline: timeline.hears("meanwhile"))
        await stage.each(release)
        await stage.each(lambda timeline: timeline.sees("meanwhile"))
        await stage.send("hold", command)
        await stage.each(Timeline.holds)
        await stage.send("leave")
        await posts(stage.graph, stage.author, "missed")
        await fresh_cursors(stage)
        await stage.send("release", "badge", "return")
        await stage.check()


async def test_notifications_of_some_kinds(stage: Stage) -> None:
    """Each list has only its kinds, which arrive, move and vanish. A page does not move another list's cursor."""
    graph, alice, bob, carol = stage.graph, stage.viewer, stage.author, stage.stranger
    liked, other = await posts(graph, alice, "liked", "other")
    await posts(graph, bob, *(f"@alice {number}" for number in range(25)))
    mentions = [f"MentionNotification of bob: @alice {number}" for number in range(24, -1, -1)]
    async with stage.open(lists=[ALL, MENTIONS, LIKES]):
        await shows_everywhere(stage, mentions, mentions, [])
        await graph.likes.like(bob, liked)
        mentions = ["MentionNotification of carol: @alice live", *mentions]
        await posts(graph, carol, "@alice live")
        await graph.likes.like(bob, other)
        await graph.likes.like(carol, liked)
        likes = ["LikeNotification of carol and bob: liked", "LikeNotification of bob: other"]
        await shows_everywhere(stage, [*likes, *mentions], mentions, likes)

        stage.proxy.refuse_websockets()
        await posts(graph, carol, "@alice missed")
        await graph.likes.like(carol, other)
        await graph.likes.unlike(bob, liked)
        mentions = ["MentionNotification of carol: @alice missed", *mentions]
        likes = ["LikeNotification of carol and bob: other", "LikeNotification of carol: liked"]
        await fresh_cursors(stage)
        await stage.send("look 1", "fetch")
        await stage.each(lambda each: each.sees(mentions[0]))
        await stage.send("badge")
        stage.proxy.accept_websockets()
        expected = [likes[0], mentions[0], likes[1], *mentions[1:]]
        await shows_everywhere(stage, expected, mentions, likes)


async def test_a_list_that_returns_brings_nothing_back(stage: Stage) -> None:
    """It repeats the events since its page, even that of a notification that has vanished from another list."""
    graph, alice, bob, carol = stage.graph, stage.viewer, stage.author, stage.stranger
    kept, undone = await posts(graph, alice, "kept", "undone")
    await graph.likes.like(bob, kept)
    before = ["LikeNotification of bob: kept"]
    async with stage.open(lists=[ALL, LIKES]):
        await shows_everywhere(stage, before, before)
        await stage.send("look 0", "leave", "look 1")
        await graph.likes.like(carol, undone)
        await stage.each(lambda each: each.sees("LikeNotification of carol: undone"))
        await graph.likes.unlike(carol, undone)
        await stage.each(lambda each: each.sees(before[0]))
        await fresh_cursors(stage)
        await stage.send("hold", "look 0", "return")
        await stage.each(Timeline.holds)
        await stage.send("look 1")
        assert [timeline.texts for timeline in stage.timelines] == [before] * 3
        await stage.send("release")
        await shows_everywhere(stage, before, before)


async def test_lists_that_begin_at_the_same_cursor(stage: Stage) -> None:
    """They share no subscription: the page of the second list is older than an event that the first has received."""
    [liked] = await posts(stage.graph, stage.viewer, "liked")
    async with stage.open(lists=[ALL, LIKES]):
        await stage.send("look 1", "leave", "hold", "fetch")
        await stage.each(Timeline.holds)
        await stage.graph.likes.like(stage.author, liked)
        expected = ["LikeNotification of bob: liked"]
        await stage.send("look 0")
        await stage.each(lambda each: each.sees(expected[0]))
        await stage.send("release", "look 1", "return")
        await shows_everywhere(stage, expected, expected)


async def test_a_badge_needs_no_list(stage: Stage) -> None:
    """A document that does not select the viewer's id does not affect the lists in the cache."""
    async with stage.open(lists=[{}, ALL]):
        await stage.send("badge")
        await posts(stage.graph, stage.author, "live")
        await stage.check()
        assert [timeline.counts["refetches"] for timeline in stage.timelines] == [3] * 3
