"""A check and a repair while no worker runs: events are projected by the requests, but not archived."""

from dataclasses import replace

import pytest

from graph import Graph
from graph.paging import Window
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import PASSWORD, archive_log, befriend, people, posts

ALL = Window(100, forward=True)


async def archive_all(graph: Graph) -> None:
    """Project and archive everything."""
    await graph.worker().drain()
    await archive_log(graph)


async def build(graph: Graph) -> tuple[list[int], list[int]]:
    """Create four users with relations of all kinds, and posts. Return the users, and three posts of the first one."""
    alice, bob, carol, dave = users = await people(graph, "alice", "bob", "carol", "dave")
    await befriend(graph, alice, bob, carol)
    await befriend(graph, bob, alice, carol, dave)
    await befriend(graph, dave, alice)
    written = await posts(graph, alice, "one", "two", "three @bob")
    for post in written:
        for user in (bob, carol, dave):
            await graph.likes.like(user, post)
            await graph.reposts.repost(SYSTEM, user, post)
            await graph.bookmarks.add(SYSTEM, user, post)
            await graph.posts.publish(user, "a reply", reply_to=post)
            await graph.posts.publish(user, "a quote", quote_of=post)
    await graph.lists.create(bob, "friends", [alice, dave])
    await graph.blocks.mute(bob, dave)
    await graph.blocks.block(carol, dave)
    return users, written


async def take_back(graph: Graph, users: list[int], written: list[int]) -> None:
    """Undo some of these changes, and delete posts and a user that others refer to."""
    alice, bob, carol, dave = users
    await graph.posts.delete(alice, written[0])
    await graph.likes.unlike(bob, written[1])
    await graph.reposts.unrepost(SYSTEM, carol, written[1])
    await graph.bookmarks.remove(SYSTEM, dave, written[2])
    await graph.follows.unfollow(bob, [carol])
    await graph.blocks.unmute(bob, dave)
    await graph.blocks.unblock(carol, dave)
    await graph.blocks.block(alice, carol)
    [friends] = await graph.lists.of_user(bob)
    await graph.lists.update(bob, friends.id, added=[carol], removed=[alice])
    await graph.users.update_profile(bob, name="Robert")
    await graph.passwords.change(bob, PASSWORD, "another password")
    await graph.moderation.suspend(carol)
    await graph.moderation.remove(written[2])
    await graph.account_deletion.delete(dave, PASSWORD)
    for user in (alice, bob):
        await graph.timelines.home(user, ALL)
    await graph.timelines.wait_for_rebuilds()


@pytest.mark.parametrize("correct", [False, True], ids=["check", "repair"])
async def test_events_in_progress_are_no_differences(graph: Graph, correct: bool) -> None:
    """Changes are undone while no worker runs. Neither a check nor a repair then finds a difference."""
    users, written = await build(graph)
    await archive_all(graph)
    await take_back(graph, users, written)

    report = await replace(graph.repair(), timeout=0).run(correct=correct)

    assert not report.found, report.examples
    await archive_all(graph)
    after = await replace(graph.repair(), timeout=0).run(correct=False)
    assert not after.found, after.examples
    assert not after.left_out
