"""The client kit keeps the notifications in the caches of Apollo Client and urql equal to the server's."""

import pytest

from tests.clients.cached_lists import Stage, Timeline, release
from tests.support.graph_worlds import posts

pytestmark = pytest.mark.slow

FEED = [{"shows": "notifications"}]


def mentions(numbers: range) -> list[str]:
    """Return what the lists show for bob's numbered mentions."""
    return [f"MentionNotification of bob: @alice {number}" for number in numbers]


async def unread(timeline: Timeline, count: int) -> None:
    """Wait until this many notifications are unread."""
    await timeline.until(lambda each: each.unread == count)


async def test_notifications_arrive_move_and_vanish(stage: Stage) -> None:
    """New and updated ones move to the top. Changes refetch the first page. The unread count is kept up to date."""
    graph, alice, bob, carol = stage.graph, stage.viewer, stage.author, stage.stranger
    [liked] = await posts(graph, alice, "liked")
    numbered = await posts(graph, bob, *(f"@alice {number}" for number in range(25)))
    await graph.likes.like(bob, liked)
    async with stage.open(lists=FEED):
        await stage.each(lambda each: unread(each, 26))
        await posts(graph, carol, "@alice live")
        await stage.each(lambda each: each.sees("MentionNotification of carol: @alice live"))
        await stage.each(lambda each: unread(each, 27))
        await graph.likes.like(carol, liked)
        expected = [
            "LikeNotification of carol and bob: liked",
            "MentionNotification of carol: @alice live",
            *mentions(range(24, -1, -1)),
        ]
        await stage.each(lambda each: each.shows(expected))

        await graph.posts.delete(bob, numbered[24])
        del expected[2]
        await stage.each(lambda each: each.shows(expected))
        await stage.each(lambda each: unread(each, 26))
        await graph.notifications.mark_read(alice, await graph.log.last())
        await stage.each(lambda each: unread(each, 0))


async def test_no_notification_is_lost_while_the_app_fetches_the_page_on_its_own(stage: Stage) -> None:
    """The page overwrites a newer notification that has arrived, so the subscription restarts from the page."""
    [liked] = await posts(stage.graph, stage.viewer, "liked")
    await stage.graph.likes.like(stage.author, liked)
    async with stage.open(lists=FEED):
        await stage.each(lambda each: each.sees("LikeNotification of bob: liked"))
        await stage.each(lambda each: each.send("hold"))
        await stage.each(lambda each: each.send("refresh"))
        await stage.each(Timeline.holds)
        await posts(stage.graph, stage.stranger, "@alice meanwhile")
        await stage.each(lambda each: each.hears("MentionNotification of carol: @alice meanwhile"))
        await stage.each(release)
        await stage.each(
            lambda each: each.shows(
                ["MentionNotification of carol: @alice meanwhile", "LikeNotification of bob: liked"]
            )
        )
        await stage.each(lambda each: unread(each, 2))
