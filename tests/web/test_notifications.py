"""Notifications in the web app, on a desktop in the light theme and a phone in the dark theme."""

import asyncio

import pytest

from graph.visibility.views import SYSTEM
from resolvers import ids
from tests.support.graph_worlds import befriend, people, posts
from tests.web.stage import Stage
from tests.web.tour import DESKTOP, PHONE, Tour

pytestmark = pytest.mark.slow


async def test_notifications_arrive_and_are_read(stage: Stage, tour: Tour) -> None:
    """The navigation counts them in all tabs until one tab shows them. Then the list continues live."""
    graph, do = stage.graph, stage.browser.do
    alice, bob, carol, dora = await people(graph, "alice", "bob", "carol", "dora")
    [post] = await posts(graph, alice, "A post to like")
    await graph.likes.like(carol, post)
    await asyncio.gather(stage.open("p", "alice", **DESKTOP), stage.open("b", "bob", **PHONE, dark=True))
    await do("open", "tab", user="p", url=stage.url)
    for page in ("p", "tab"):
        await do("see", page, role="link", name="Notifications, 1 unread")
    await stage.hears(3)
    reply = (await graph.posts.publish(bob, "A reply", reply_to=post)).id
    for page in ("p", "tab"):
        await do("see", page, role="link", name="Notifications, 2 unread")
    await do("go", "b", hash=f"#/post/{ids.encode(ids.Kind.POST, post)}")
    await do("click", "b", role="button", name="Like 1")
    await do("see", "b", role="button", name="Like 2", pressed=True)

    await tour.shoot("home-unread")
    await do("click", "p", role="link", name="Notifications, 2 unread")
    await do("see", "p", role="article", name="New: bob and carol liked your post")
    await do("see", "p", role="article", name="New: bob replied to you")
    for page in ("p", "tab"):
        await do("see", page, role="link", name="Notifications")
    await tour.shoot("notifications")
    await do("go", "b", hash="#/@alice")
    await do("click", "b", role="button", name="Follow alice")
    await do("see", "p", role="article", name="New: bob followed you")
    await befriend(graph, dora, alice)
    await do("see", "p", role="article", name="New: dora and bob followed you")
    await do("see", "tab", role="link", name="Notifications")
    await graph.posts.delete(bob, reply)
    await do("missing", "p", text="replied to you")

    await do("go", "b", hash="#/notifications")
    await do("read", "b", text="Nothing yet.")
    await do("go", "p", hash="#/@bob")
    await do("click", "p", role="button", name="Follow back bob")
    await do("see", "b", role="article", name="New: alice followed you")
    assert await do("overflow", "b") == await do("nameless", "b") == []
    tour.found += await do("axe", "b")
    await do("click", "b", role="link", name="alice")
    await do("see", "b", role="heading", name="alice")
    assert await do("errors") == []
    assert tour.found == []


async def test_kinds_of_notifications(stage: Stage, tour: Tour) -> None:
    """Each kind says who did what, and leads to the post. The link works even if the number cannot be read."""
    graph, do = stage.graph, stage.browser.do
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, alice, "The post of alice " + "which has a long text " * 20)
    await posts(graph, bob, "Hello @alice")
    await graph.posts.publish(bob, "A quote", quote_of=post)
    await graph.reposts.repost(SYSTEM, bob, post)
    await stage.open("p", "alice", **PHONE)
    await do("fail", "p", operation="NotificationsLinkQuery", status=502)
    await do("reload", "p")
    await do("see", "p", role="button", name="Publish")
    await do("click", "p", role="link", name="Notifications")
    await do("errors")  # the component without the number has reported its failure
    for text in ("bob mentioned you", "bob quoted your post", "bob reposted your post"):
        await do("see", "p", role="article", name=f"New: {text}")
    assert await do("overflow", "p") == await do("nameless", "p") == []
    await tour.shoot("notification-kinds")
    await do("click", "p", role="link", name="Hello @alice")
    await do("see", "p", role="heading", name="Post by bob")
    assert await do("errors") == []
    assert tour.found == []


async def test_a_notification_that_arrives_while_the_list_is_on_its_way_is_shown(stage: Stage) -> None:
    """The list is older, but has the same cursor as the number in the navigation."""
    graph, do = stage.graph, stage.browser.do
    _, bob = await people(graph, "alice", "bob")
    await stage.open("p", "alice")
    await stage.hears(1)
    await do("hold", "p", operation="useLiveNotificationsQuery")
    await do("click", "p", role="link", name="Notifications")
    await do("held", "p")
    await posts(graph, bob, "Hello @alice")
    await do("see", "p", role="link", name="Notifications, 1 unread")
    await do("release", "p")
    await do("see", "p", role="article", name="New: bob mentioned you")
    await do("see", "p", role="link", name="Notifications")
    assert await do("errors") == []


async def test_a_long_list_stays_long(stage: Stage) -> None:
    """When a notification vanishes from a list of three pages, all others stay, without scrolling."""
    graph, do = stage.graph, stage.browser.do
    _, bob = await people(graph, "alice", "bob")
    mentions = await posts(graph, bob, *(f"@alice {number}." for number in range(70)))
    await stage.open("p", "alice")
    await do("go", "p", hash="#/notifications")
    for last in (40, 10, 0):
        await do("read", "p", text=f"@alice {last}.")
        await do("bottom", "p")
    await do("top", "p")
    await graph.posts.delete(bob, mentions[68])
    await do("missing", "p", text="@alice 68.")
    assert await do("count", "p", role="article") == 69
    assert await do("errors") == []


async def test_more_notifications_than_the_server_counts(stage: Stage) -> None:
    """The link says that there are more, until they are read."""
    graph, do = stage.graph, stage.browser.do
    _, bob = await people(graph, "alice", "bob")
    await posts(graph, bob, *(f"@alice {number}." for number in range(100)))
    await stage.open("p", "alice")
    await do("see", "p", role="link", name="Notifications, 100 unread")
    await stage.hears(1)
    await posts(graph, bob, "@alice again")
    await do("see", "p", role="link", name="Notifications, 100+ unread")
    await do("click", "p", role="link", name="Notifications, 100+ unread")
    await do("see", "p", role="article", name="New: bob mentioned you")
    await do("see", "p", role="link", name="Notifications")
    assert await do("errors") == []
