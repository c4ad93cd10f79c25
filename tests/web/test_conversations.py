"""Conversations in the web app: a desktop and a phone show each other's posts, and deleted posts disappear."""

import asyncio

import pytest

from graph.visibility.views import SYSTEM
from resolvers import ids
from tests.support.graph_worlds import PATIENCE, befriend, many_posts, people
from tests.web.stage import Stage
from tests.web.tour import DESKTOP, PHONE, Tour

pytestmark = pytest.mark.slow


def address(post: int) -> str:
    """Return the route of a post."""
    return f"#/post/{ids.encode(ids.Kind.POST, post)}"


async def test_replies(stage: Stage, tour: Tour) -> None:
    """A thread shows the posts above, and replies as they arrive. A deleted post disappears from both screens."""
    publish = stage.graph.posts.publish
    alice, bob, carol = await people(stage.graph, "alice", "bob", "carol")
    await befriend(stage.graph, bob, alice)
    first = (await publish(alice, "The first post of a thread")).id
    second = (await publish(bob, "A reply that is there already", reply_to=first)).id
    do = stage.browser.do
    await asyncio.gather(stage.open("p", "alice", **DESKTOP), stage.open("b", "bob", **PHONE))
    for page in ("p", "b"):
        await do("click", page, role="link", name="Reply 1")
        await do("see", page, role="heading", name="Post by alice")
        await do("read", page, text="A reply that is there already")
    await stage.hears(2, more=2)

    await do("fill", "b", label="Your reply", text="From the phone")
    await do("click", "b", role="button", name="Reply")
    await do("see", "b", role="link", name="Reply 2")
    await do("see", "p", role="button", name="1 new reply")
    await tour.shoot("thread-new-reply")
    await do("click", "p", role="button", name="1 new reply")
    await do("read", "p", text="From the phone")
    await tour.shoot("thread")
    outside = (await publish(carol, "From outside of the thread", reply_to=first)).id
    for page in ("p", "b"):
        await do("click", page, role="button", name="1 new reply")
        await do("read", page, text="From outside of the thread")
        await do("see", page, role="link", name="Reply 3")
    replies = ["From outside of the thread", "From the phone", "A reply that is there already"]
    await do("shows", "p", texts=["The first post of a thread", *replies])
    await stage.graph.posts.delete(carol, outside)
    for page in ("p", "b"):
        await do("missing", page, text="From outside of the thread")

    await do("go", "b", hash=address(second))
    await do("see", "b", role="list", name="Earlier posts")
    await do("fill", "b", label="Your reply", text="Deeper in the thread")
    await do("press", "b", key="Control+Enter")
    await do("read", "b", text="Your reply has been published.")
    assert await do("overflow", "b") == await do("nameless", "b") == []
    await tour.go(address(second)[2:], "list", "Earlier posts")
    await do("read", "p", text="Deeper in the thread")
    await tour.shoot("thread-ancestors")

    await do("go", "b", hash=address(first))
    await do("see", "b", role="link", name="Reply 2")
    await do("go", "p", hash="#/")
    await do("click", "p", role="button", name="Delete")
    await do("see", "b", role="heading", name="This post is not available")
    await tour.go(address(second)[2:], "article", "Post by bob")
    await do("read", "p", text="This post is not available.")
    await tour.shoot("thread-deleted")
    await tour.go(address(first)[2:], "heading", "This post is not available")
    await tour.shoot("post-unknown")
    assert await do("errors") == []
    assert tour.found == []


async def test_likes(stage: Stage, tour: Tour) -> None:
    """A like counts at once and only once, and not at all if the server does not answer."""
    alice, bob = await people(stage.graph, "alice", "bob")
    await befriend(stage.graph, bob, alice)
    post = (await stage.graph.posts.publish(alice, "A post to like")).id
    await stage.graph.likes.like(alice, post)
    do = stage.browser.do
    await stage.open("p", "bob", **PHONE)
    await do("fail", "p", operation="LikeButtonMutation", status=503)
    await do("click", "p", role="button", name="Like 1", pressed=False)
    await do("read", "p", text="The server did not accept the request")
    await do("see", "p", role="button", name="Like 1", pressed=False)
    await do("free", "p")
    await do("hold", "p", operation="LikeButtonMutation")
    await do("doubleClick", "p", role="button", name="Like 1")
    await do("see", "p", role="button", name="Like 2", pressed=True)
    await tour.shoot("liked")
    await do("release", "p")
    async with asyncio.timeout(PATIENCE):
        while await likes(stage, post) != 2:  # noqa: ASYNC110 - no notification
            await asyncio.sleep(0.05)
    await do("go", "p", hash=address(post))
    await do("see", "p", role="heading", name="Post by alice")
    await do("click", "p", role="button", name="Like 2", pressed=True)
    await do("see", "p", role="button", name="Like 1", pressed=False)
    assert await do("errors") == []
    assert tour.found == []


async def test_reposts_and_quotes(stage: Stage, tour: Tour) -> None:
    """A follower sees both arrive. When the original is deleted, the repost disappears and the quote says so."""
    alice, bob, carol = await people(stage.graph, "alice", "bob", "carol")
    await befriend(stage.graph, alice, bob)
    await befriend(stage.graph, bob, carol)
    original = (await stage.graph.posts.publish(carol, "An original")).id
    await stage.graph.posts.publish(carol, "Another one")
    do = stage.browser.do
    await asyncio.gather(stage.open("p", "alice", **DESKTOP), stage.open("b", "bob", **PHONE))
    await stage.hears(2)

    await do("go", "b", hash=address(original))
    await do("see", "b", role="heading", name="Post by carol")
    await do("fail", "b", operation="RepostButtonMutation", status=503)
    await do("click", "b", role="button", name="Repost", pressed=False)
    await do("read", "b", text="The server did not accept the request")
    await do("see", "b", role="button", name="Repost", pressed=False)
    await do("free", "b")
    await do("click", "b", role="button", name="Repost", pressed=False)
    await do("see", "b", role="button", name="Repost 1", pressed=True)
    await do("see", "p", role="button", name="1 new post")

    await do("click", "b", role="button", name="Quote")
    await do("see", "b", role="dialog", name="Quote a post")
    await do("see", "b", role="link", name="An original", exact=False)
    await do("fill", "b", label="Your comment", text="Look at this")
    assert await do("overflow", "b") == await do("nameless", "b") == []
    tour.found += await do("axe", "b")
    if tour.folder:
        await do("shot", "b", path=f"{tour.folder}/quoting-phone-light.png")
    await do("press", "b", key="Control+Enter")
    await do("read", "b", text="Your quote has been published.")
    await do("focused", "b", name="Quote 1")
    await do("see", "b", role="button", name="Repost 1", pressed=True)
    await do("hover", "b", role="button", name="Dismiss")  # keeps the notice
    await asyncio.sleep(1)
    await do("go", "b", hash="#/")
    await do("missing", "b", text="Your quote has been published.")
    await do("shows", "b", texts=["Look at this", "Another one", "An original"])  # an own repost moves nothing
    await do("go", "b", hash=address(original))

    await do("click", "p", role="button", name="2 new posts")
    await do("read", "p", text="bob reposted")
    await do("see", "p", role="article", name="Post by carol")
    await do("read", "p", text="Look at this")
    await tour.shoot("reposts")
    await do("go", "p", hash=address(original))
    await do("see", "p", role="button", name="Repost 1", pressed=False)
    await do("click", "b", role="button", name="Repost 1", pressed=True)
    await do("see", "b", role="button", name="Repost", pressed=False)
    await do("go", "p", hash="#/")
    await do("missing", "p", text="bob reposted")
    await do("click", "b", role="button", name="Repost", pressed=False)
    await do("see", "p", role="button", name="1 new post")
    await do("click", "p", role="button", name="1 new post")
    await do("read", "p", text="bob reposted")

    await stage.graph.posts.delete(carol, original)
    await do("see", "b", role="heading", name="This post is not available")
    await do("missing", "p", text="bob reposted")
    await do("go", "b", hash="#/")
    await do("read", "b", text="The quoted post is not available.")
    await do("shows", "b", texts=["Look at this", "Another one"])
    await do("reload", "p")
    await do("read", "p", text="The quoted post is not available.")
    await do("shows", "p", texts=["Look at this"])
    await tour.shoot("quote-of-deleted")
    assert await do("errors") == []
    assert tour.found == []


async def test_a_post_and_its_reposts_are_shown_once(stage: Stage, tour: Tour) -> None:
    """The newest occurrence is shown, even if the others are on later pages. Scrolling still reaches the end.

    A repost that arrives is held back, and the post stays where it is until the user asks for new posts. It also stays
    there when the user reposts it.
    """
    graph = stage.graph
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    original = (await graph.posts.publish(carol, "An original")).id
    await many_posts(graph, carol, 30)
    await graph.reposts.repost(SYSTEM, carol, original)
    latest = (await graph.posts.publish(bob, "The latest one")).id
    others = [f"post {number}" for number in reversed(range(30))]
    do = stage.browser.do
    await stage.open("p", "alice", **DESKTOP)
    await do("read", "p", text="carol reposted · ")
    assert await do("posts", "p", enough=32) == ["The latest one", "An original", *others]
    await do("click", "p", role="button", name="Repost", pressed=False)
    await do("see", "p", role="button", name="Repost 1", pressed=True)
    await do("focused", "p", name="Repost 1")
    assert await do("shown", "p") == ["The latest one", "An original", *others]

    await stage.hears(1)
    await graph.reposts.repost(SYSTEM, bob, original)
    await do("see", "p", role="button", name="1 new post")
    assert await do("shown", "p") == ["The latest one", "An original", *others]
    await do("click", "p", role="button", name="1 new post")
    await do("read", "p", text="bob reposted · ")
    await do("shows", "p", texts=["An original", "The latest one", *others])
    await do("missing", "p", text="carol reposted")
    await graph.reposts.unrepost(SYSTEM, bob, original)
    await do("read", "p", text="carol reposted · ")
    await do("shows", "p", texts=["The latest one", "An original", *others])
    await graph.reposts.unrepost(SYSTEM, carol, original)
    await do("shows", "p", texts=["The latest one", *others, "An original"])

    await graph.reposts.repost(SYSTEM, carol, latest)
    await do("go", "p", hash="#/@carol")
    await do("read", "p", text="carol reposted · ")
    assert (await do("shown", "p"))[:2] == ["The latest one", "post 29"]
    assert await do("errors") == []
    assert tour.found == []


async def likes(stage: Stage, post: int) -> int:
    """Return the number of likes of a post."""
    [found] = await stage.graph.posts.get_many(SYSTEM, [post])
    return found.likes if found else 0
