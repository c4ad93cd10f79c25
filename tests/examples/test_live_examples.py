"""The example subscriptions receive events in the demo world."""

import asyncio
from contextlib import aclosing
from typing import Any

from resolvers import ids
from tests.examples.alice import Alice
from tests.support.graph_worlds import PATIENCE


async def test_new_notifications(alice: Alice) -> None:
    """From the page's live cursor, events report a new follower, and then that the notification was read."""
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
    """A repost arrives with the reposted post, and its removal arrives afterwards."""
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


async def test_live_timeline(alice: Alice) -> None:
    """From the live cursor of a profile, a post and its deletion arrive."""
    timeline = (await alice.run("profile", by={"login": "bob"}))["user"]["timeline"]
    post = await alice.graph.posts.publish(alice.people["bob"], "in between")
    events: list[dict[str, Any]] = []
    given = {"timelineId": timeline["id"], "after": timeline["liveCursor"]}
    async with asyncio.timeout(PATIENCE), aclosing(alice.subscribe("live-timeline", **given)) as live:
        async for event in live:
            events.append(event["timeline"])
            if len(events) == 2:
                await alice.graph.posts.delete(alice.people["bob"], post.id)
            if len(events) == 3:
                break
    assert [event["__typename"] for event in events] == ["Checkpoint", "PostAdded", "PostRemoved"]
    assert events[1]["timelineEdge"]["node"]["text"] == "in between"
    assert events[2]["postId"] == events[1]["timelineEdge"]["node"]["id"]


async def test_live_timeline_of_a_list(alice: Alice) -> None:
    """From the live cursor of its page, a member's post arrives. A new member changes the timeline."""
    users = [ids.encode(ids.Kind.USER, alice.people[login]) for login in ("bob", "carol")]
    created = (await alice.run("create-list", name="friends", userIds=users[:1]))["createList"]["list"]
    timeline = (await alice.run("list-timeline", id=created["id"]))["node"]["timeline"]
    await alice.graph.posts.publish(alice.people["bob"], "by a member")
    events: list[dict[str, Any]] = []
    given = {"timelineId": timeline["id"], "after": timeline["liveCursor"]}
    async with asyncio.timeout(PATIENCE), aclosing(alice.subscribe("live-timeline", **given)) as live:
        async for event in live:
            events.append(event["timeline"])
            if len(events) == 2:
                await alice.run("update-list", listId=created["id"], addUserIds=users[1:])
            if len(events) == 3:
                break
    assert [event["__typename"] for event in events] == ["Checkpoint", "PostAdded", "TimelineChanged"]
    assert events[1]["timelineEdge"]["node"]["text"] == "by a member"


async def test_live_thread(alice: Alice) -> None:
    """From the live cursor of the thread, the new counts, a reply and its deletion arrive."""
    edge = (await alice.run("publish", text="a question"))["publishPost"]["timelineEdge"]
    thread = (await alice.run("thread", id=edge["node"]["id"]))["post"]
    reply = (await alice.run("reply", replyToId=thread["id"]))["publishPost"]["postEdge"]
    events: list[dict[str, Any]] = []
    given = {"postId": thread["id"], "after": thread["liveCursor"]}
    async with asyncio.timeout(PATIENCE), aclosing(alice.subscribe("live-thread", **given)) as live:
        async for event in live:
            events.append(event["thread"])
            if len(events) == 3:
                await alice.run("delete-post", postId=reply["node"]["id"])
            if len(events) == 5:
                break
    kinds = ["Checkpoint", "PostChanged", "ReplyAdded", "PostChanged", "PostRemoved"]
    assert [event["__typename"] for event in events] == kinds
    assert [event["post"]["repliesCount"] for event in events if "post" in event] == [1, 0]
    assert (events[2]["postEdge"]["cursor"], events[2]["postEdge"]["node"]["id"]) == (
        reply["cursor"],
        reply["node"]["id"],
    )
    assert events[4]["postId"] == reply["node"]["id"]


async def test_new_followers(alice: Alice) -> None:
    """A follow and an unfollow of the user arrive, but none of other users."""
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
