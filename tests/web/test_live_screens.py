"""Threads, lists and profiles that are open in the web app, on a desktop and a phone, while others post."""

import asyncio

import pytest

from graph.visibility.views import SYSTEM
from resolvers import ids
from tests.support.graph_worlds import background, people, posts
from tests.web.stage import Stage
from tests.web.test_conversations import address
from tests.web.tour import DESKTOP, PHONE, Tour

pytestmark = pytest.mark.slow


async def test_a_thread(stage: Stage, tour: Tour) -> None:
    """It shows what strangers do with the post, even while the page loads. Replies of a hidden user disappear."""
    graph = stage.graph
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, carol, "The post of the thread")
    do = stage.browser.do
    await stage.open("p", "alice", **PHONE)
    await do("hold", "p", operation="PostScreenQuery")
    await do("go", "p", hash=address(post))
    await do("held", "p")
    reply = (await graph.posts.publish(bob, "A reply that the page lacks", reply_to=post)).id
    await do("release", "p")
    await do("see", "p", role="button", name="1 new reply")
    await do("see", "p", role="link", name="Reply 1")
    await do("free", "p")

    await graph.likes.like(bob, post)
    await do("see", "p", role="button", name="Like 1", pressed=False)
    await graph.reposts.repost(SYSTEM, bob, post)
    await do("see", "p", role="button", name="Repost 1", pressed=False)
    await graph.posts.publish(alice, "From another device", reply_to=post)
    await do("shows", "p", texts=["The post of the thread", "From another device"])
    await tour.shoot("thread-live")
    await do("click", "p", role="button", name="1 new reply")
    everything = ["The post of the thread", "From another device", "A reply that the page lacks"]
    await do("shows", "p", texts=everything)

    await graph.blocks.block(alice, bob)
    await do("shows", "p", texts=everything[:2])
    await graph.blocks.unblock(alice, bob)
    await do("shows", "p", texts=everything)
    await graph.posts.delete(bob, reply)
    await do("shows", "p", texts=everything[:2])
    await graph.likes.unlike(bob, post)
    await do("see", "p", role="button", name="Like", pressed=False)
    await graph.blocks.block(carol, alice)
    await do("see", "p", role="heading", name="This post is not available")
    assert await do("errors") == []
    assert tour.found == []


async def test_a_reply_to_a_post_that_is_deleted(stage: Stage, tour: Tour) -> None:
    """What the user has written stays where it is, even after a reload, until the user deletes it."""
    graph = stage.graph
    _, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "A post that will be deleted")
    do = stage.browser.do
    await stage.open("p", "alice", **DESKTOP)
    await tour.go(address(post)[2:], "heading", "Post by bob")
    await do("read", "p", text="No replies yet.")
    await stage.hears(1, more=1)
    await do("fill", "p", label="Your reply", text="Half a rep")
    await graph.posts.delete(bob, post)
    await do("see", "p", role="heading", name="This post is not available")
    await do("focused", "p", name="Your reply")
    await do("holds", "p", label="Your reply", text="Half a rep")
    await do("read", "p", text="This reply can no longer be published.")
    await do("see", "p", role="button", name="Reply", disabled=True)
    await do("press", "p", key="Control+Enter")
    await tour.shoot("thread-deleted-with-draft")

    await do("reload", "p")
    await do("see", "p", role="heading", name="This post is not available")
    await do("holds", "p", label="Your reply", text="Half a rep")
    await do("fill", "p", label="Your reply", text="")
    await do("miss", "p", role="button", name="Reply")
    await do("see", "p", role="heading", name="This post is not available")
    assert await do("errors") == []
    assert tour.found == []


async def test_a_list(stage: Stage, tour: Tour) -> None:
    """It shows a member's new posts on request, those of a new member at once, and that it was deleted."""
    graph = stage.graph
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await posts(graph, bob, "from bob")
    await posts(graph, carol, "from carol")
    friends = await graph.lists.create(alice, "Friends", [bob])
    do = stage.browser.do
    await stage.open("p", "alice", **DESKTOP)
    await tour.go(f"list/{ids.encode(ids.Kind.LIST, friends.id)}", "heading", "Friends")
    await do("shows", "p", texts=["from bob"])
    await stage.hears(1, more=1)

    [second] = await posts(graph, bob, "another one")
    await do("see", "p", role="button", name="1 new post")
    assert await do("shown", "p") == ["from bob"]
    await tour.shoot("list-live")
    await do("click", "p", role="button", name="1 new post")
    await do("shows", "p", texts=["another one", "from bob"])
    await graph.lists.update(alice, friends.id, added=[carol])
    await do("see", "p", role="link", name="2 members")
    await do("shows", "p", texts=["another one", "from carol", "from bob"])
    await posts(graph, carol, "carol again")
    await do("click", "p", role="button", name="1 new post")
    await do("shows", "p", texts=["carol again", "another one", "from carol", "from bob"])
    await graph.posts.delete(bob, second)
    await graph.lists.update(alice, friends.id, removed=[carol])
    await do("see", "p", role="link", name="1 member")
    await do("shows", "p", texts=["from bob"])
    await graph.lists.delete(alice, friends.id)
    await do("see", "p", role="heading", name="This list does not exist")
    assert await do("errors") == []
    assert tour.found == []


async def test_a_profile(stage: Stage, tour: Tour) -> None:
    """It shows new posts and reposts on request, and removes them when they end. Every tab shows a block."""
    graph = stage.graph
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await posts(graph, bob, "from bob")
    [original] = await posts(graph, carol, "An original")
    do = stage.browser.do
    await asyncio.gather(stage.open("p", "alice", **PHONE), stage.open("b", "bob", **DESKTOP))
    await tour.go("@bob", "heading", "bob")
    await do("shows", "p", texts=["from bob"])
    await do("go", "b", hash="#/@bob")
    await do("shows", "b", texts=["from bob"])
    await stage.hears(2, more=2)

    [second] = await posts(graph, bob, "another one")
    await do("shows", "b", texts=["another one", "from bob"])  # the own profile
    await do("see", "p", role="button", name="1 new post")
    await graph.reposts.repost(SYSTEM, bob, original)
    await do("see", "p", role="button", name="2 new posts")
    assert await do("shown", "p") == ["from bob"]
    await tour.shoot("profile-live")
    await do("click", "p", role="button", name="2 new posts")
    await do("shows", "p", texts=["An original", "another one", "from bob"])
    await do("read", "p", text="bob reposted")
    await graph.reposts.unrepost(SYSTEM, bob, original)
    await do("shows", "p", texts=["another one", "from bob"])
    await graph.posts.delete(bob, second)
    for page in ("p", "b"):
        await do("shows", page, texts=["from bob"])

    await do("go", "p", hash="#/@bob/followers")
    await do("read", "p", text="No followers yet.")
    await graph.blocks.block(bob, alice)
    await do("see", "p", role="heading", name="@bob has blocked you")
    await graph.blocks.unblock(bob, alice)
    await do("read", "p", text="No followers yet.")
    assert await do("errors") == []
    assert tour.found == []


async def test_outages(stage: Stage) -> None:
    """What happens while sockets are reset, and after a restart, appears on all screens."""
    graph = stage.graph
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    first, second = await posts(graph, bob, "first", "second")
    friends = await graph.lists.create(alice, "Friends", [bob])
    routes = {
        "thread": address(first),
        "list": f"#/list/{ids.encode(ids.Kind.LIST, friends.id)}",
        "profile": "#/@bob",
    }
    do = stage.browser.do
    await asyncio.gather(*(stage.open(page, "alice") for page in routes))
    for page, route in routes.items():
        await do("go", page, hash=route)
        await do("read", page, text="first")
    await stage.hears(3, more=3)

    async with background(stage.outage()):
        for number in range(5):
            await posts(graph, bob, f"meanwhile {number}")
            await graph.posts.publish(carol, f"reply {number}", reply_to=first)
        await graph.posts.delete(bob, second)
        await asyncio.sleep(0.2)
    texts = [f"meanwhile {number}" for number in reversed(range(5))]
    replies = [f"reply {number}" for number in reversed(range(5))]
    for page, expected in zip(routes, (["first", *replies], [*texts, "first"], [*texts, "first"]), strict=True):
        await do("click", page, role="button", name="5 new", exact=False)
        await do("shows", page, texts=expected)

    await stage.restart()
    await posts(graph, bob, "after the restart")
    await graph.posts.publish(carol, "a reply after the restart", reply_to=first)
    for page in routes:
        await do("see", page, role="button", name="1 new", exact=False)
    await do("see", "thread", role="link", name="Reply 6")
