"""The example subscriptions receive events in the demo world."""

import asyncio
from contextlib import aclosing
from typing import Any

from resolvers import ids
from tests.examples.alice import Alice
from tests.support.graph_worlds import PATIENCE


async def test_new_notifications(alice: Alice) -> None:
    """From the page's live cursor: a new follower, and that the notification was read."""
    feed = (await alice.run("notifications"))["viewer"]["notifications"]
    cursor = feed["liveCursor"]
    await alice.graph.follows.follow(alice.people["xiaoming"], [alice.people["alice"]])
    received = []
    async with asyncio.timeout(PATIENCE), aclosing(alice.subscribe("new-notifications", after=cursor)) as stream:
        async for event in stream:
            received.append(event["notifications"])
            if len(received) == 2:
                await alice.run("mark-read", upTo=received[1]["edge"]["cursor"])
            if len(received) == 3:
                break
    assert [event["__typename"] for event in received] == ["Checkpoint", "NotificationAdded", "NotificationsChanged"]
    assert received[1]["edge"]["node"]["actors"][0]["login"] == "xiaoming"
    assert received[1]["feed"]["unreadCount"] == feed["unreadCount"] + 1
    assert received[2]["feed"]["unreadCount"] == 0


async def test_live(alice: Alice) -> None:
    """From the page's live cursor, posts published before the subscription come first, then new ones."""
    timeline = (await alice.run("home"))["viewer"]["homeTimeline"]
    await alice.graph.posts.publish(alice.people["bob"], "in between")
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE), aclosing(alice.subscribe("live", after=timeline["liveCursor"])) as live:
        async for event in live:
            events.append(event["homeTimeline"])
            if len(events) == 2:
                await alice.run("publish", text="just now")
            if len(events) == 3:
                break
    assert [event["__typename"] for event in events] == ["Checkpoint", "PostAdded", "PostAdded"]
    assert [event["timelineEdge"]["node"]["text"] for event in events[1:]] == ["in between", "just now"]


async def test_live_reposts(alice: Alice) -> None:
    """A repost arrives with the reposted post, and so does its end."""
    id_ = (await alice.run("publish", text="worth a repost"))["publishPost"]["timelineEdge"]["node"]["id"]
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE), aclosing(alice.subscribe("live")) as live:
        async for event in live:
            events.append(event["homeTimeline"])
            if len(events) == 1:
                await alice.run("repost", postId=id_)
            if len(events) == 2:
                await alice.run("unrepost", postId=id_)
            if len(events) == 3:
                break
    assert [event["__typename"] for event in events] == ["Checkpoint", "RepostAdded", "RepostRemoved"]
    repost = events[1]["timelineEdge"]["node"]
    assert (repost["__typename"], repost["post"]["text"]) == ("Repost", "worth a repost")
    assert events[2]["repostId"] == repost["id"]


async def test_new_followers(alice: Alice) -> None:
    """A follow and an unfollow of the user, and none of others."""
    users = [alice.people[login] for login in ("xiaoming", "bob", "alice")]
    received = []
    ids_ = [ids.encode(ids.Kind.USER, users[2])]
    async with asyncio.timeout(PATIENCE), aclosing(alice.subscribe("new-followers", userIds=ids_)) as stream:
        async for event in stream:
            received.append(event["events"])
            if len(received) == 1:
                await alice.graph.follows.follow(users[0], users)
                await alice.graph.follows.unfollow(users[0], users)
            if len(received) == 3:
                break
    assert [event["__typename"] for event in received] == ["Checkpoint", "UserFollowed", "UserUnfollowed"]
    assert [event["follower"]["login"] for event in received[1:]] == ["xiaoming"] * 2


async def test_events(alice: Alice) -> None:
    """Posts with one of the keywords and their deletions match."""
    bob = alice.people["bob"]
    received = []
    async with asyncio.timeout(PATIENCE), aclosing(alice.subscribe("events")) as stream:
        async for event in stream:
            received.append(event["events"])
            if len(received) == 1:
                await alice.graph.posts.publish(bob, "tea")
                post = await alice.graph.posts.publish(bob, "Coffee, then #Music")
            if len(received) == 2:
                await alice.graph.posts.delete(bob, post.id)
            if len(received) == 3:
                break
    assert [event["__typename"] for event in received] == ["Checkpoint", "PostAdded", "PostRemoved"]
    assert received[1]["post"]["text"] == "Coffee, then #Music"
    assert received[2]["postId"] == received[1]["post"]["id"]
