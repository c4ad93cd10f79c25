"""`fanline suspend` and `unsuspend` of a user with 10,000 posts and 100,000 followers."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from graph import Graph
from graph.feed.updates import AuthorAdded, AuthorHidden
from graph.log.events import Event, EventBody, Followed, PostPublished, UserCreated
from graph.model import number_at
from graph.paging import Window
from graph.post_lists import REPLIES
from graph.search.post_search import post_filter
from server.seeding.load import Source, load
from tests.graph.feed.watching import Watcher, feed_of, watching
from tests.server.cli.test_commands import fanline
from tests.support.graph_worlds import counted, newest
from tests.support.graphs import environment_of, open_graph

pytestmark = pytest.mark.slow

FOLLOWERS, POSTS, READERS = 100_000, 10_000, 20
SHOWN = 30


class World(NamedTuple):
    """The ids in a seeded world."""

    star: int
    other: int
    fans: list[int]
    posts: list[int]
    topic: int
    reply: int


class Seen(NamedTuple):
    """What each kind of read shows of the star: ids of posts, or in `profile` and `found` whether it is visible."""

    homes: list[list[int]]
    profile: bool
    found: bool
    timeline: list[int]
    node: list[int]
    thread: list[int]
    search: list[int]
    public: list[int]


def bodies(first: int) -> Iterator[EventBody]:
    """Yield the events of the world; the first one has this number. The star's last post is a reply."""
    star, other, fans = first, first + 1, range(first + 2, first + 2 + FOLLOWERS)
    yield UserCreated("star", "Star", "star")
    yield UserCreated("other", "Other", "other")
    for n in range(FOLLOWERS):
        yield UserCreated(f"fan{n}", f"Fan {n}", f"fan{n}")
    for fan in fans:
        yield Followed(fan, star)
    for fan in fans[:READERS]:
        yield Followed(fan, other)
    topic = fans[-1] + FOLLOWERS + READERS + 1
    yield PostPublished(other, "a topic")
    for n in range(POSTS):
        yield PostPublished(star, f"word {n}")
    yield PostPublished(star, "answer", reply_to=topic, root=topic, listed=False, reply_to_author=other)


TOTAL = 2 + 2 * FOLLOWERS + READERS + 1 + POSTS + 1


def events(base: datetime) -> Iterator[Event]:
    """Yield the events of the world, ending at the base time."""
    first = number_at(base) - TOTAL
    for place, body in enumerate(bodies(first)):
        yield Event(first + place, body)


async def seeded(graph: Graph) -> World:
    """Seed the store."""
    await load(graph, Source("a star", "1", lambda _: TOTAL, events))
    [star, other] = [user or 0 for user in await graph.users.ids_of_logins(["star", "other"])]
    topic = star + TOTAL - POSTS - 2
    return World(
        star,
        other,
        [*range(star + 2, star + 2 + READERS)],
        [*range(topic + 1, topic + 1 + POSTS)],
        topic,
        star + TOTAL - 1,
    )


async def seen(graph: Graph, world: World) -> Seen:
    """Return what fans, and anonymous clients, see of the star."""
    view = graph.visibility.of(world.fans[0])
    page = Window(SHOWN, forward=True)
    homes = [[post.id for post in (await graph.timelines.home(fan, newest(SHOWN))).items] for fan in world.fans]
    [profile] = await graph.users.visible(view, [world.star])
    found, _ = await graph.user_searches.page(graph.visibility.of(None), "star", page)
    [timeline] = await graph.timelines.user(view, [world.star], page)
    nodes = await graph.posts.get_many(graph.visibility.of(None), [world.posts[0], world.posts[-1], world.reply])
    [thread] = await graph.timelines.pages_of(view, REPLIES, [world.topic], page)
    search = await graph.searches.begin(post_filter(keywords=["word"]))
    matching = await graph.searches.posts(view, search, page)
    public = await graph.public_timeline.begin()
    newest_posts = await graph.public_timeline.page(graph.visibility.of(None), public.watermark or 0, page)
    return Seen(
        homes,
        profile is not None,
        bool(found.items),
        [post.id for post in timeline.items],
        [post.id for post in nodes if post is not None],
        [post.id for post in thread.items],
        [post.id for post in matching.items],
        [post.id for post in newest_posts.items],
    )


async def whole_home(graph: Graph, viewer: int) -> list[int]:
    """Return a whole home timeline. If much is hidden, a page may be empty, and the next one continues."""
    found: list[int] = []
    after: int | None = None
    while True:
        page = await graph.timelines.home(viewer, newest(SHOWN, after=after))
        found += [post.id for post in page.items]
        if not page.has_next:
            return found
        after = page.reached or found[-1]


async def costs(graph: Graph, user: int) -> list[tuple[int, int]]:
    """Suspend and unsuspend a user, and return the round trips and commands of both."""
    found = []
    for change in (graph.moderation.suspend, graph.moderation.unsuspend):
        async with counted(graph) as cost:
            assert await change(user)
        found.append((cost.round_trips, cost.commands))
    return found


async def told(watcher: Watcher, kind: type[AuthorHidden | AuthorAdded], user: int) -> None:
    """Wait for a stream's update about a user."""
    [update] = await watcher.take(1)
    assert isinstance(update, kind)
    assert update.user == user


async def test_the_suspension_of_a_star_is_in_effect_at_once(
    store_url: str, tmp_path: Path, *, long_profile: bool
) -> None:
    """All reads of another running process show it, and it costs no more than for a user without posts."""
    if not long_profile:
        pytest.skip("seeds 100,000 users: needs --long")
    graph = await open_graph(store_url)
    try:
        world = await seeded(graph)
        environment = environment_of(store_url, tmp_path)
        last = world.posts[: -SHOWN - 1 : -1]
        async with feed_of(graph) as feed, watching(feed, world.fans[0]) as watcher:
            before = await seen(graph, world)
            assert before.homes == [last] * READERS
            assert before[1:] == (
                True,
                True,
                last,
                [world.posts[0], world.posts[-1], world.reply],
                [world.reply],
                last,
                last,
            )

            done = await asyncio.to_thread(fanline, "suspend", "star", **environment)
            assert done.stderr == "star is now suspended.\n"
            assert await seen(graph, world) == Seen([[]] * READERS, False, False, [], [], [], [], [])
            await told(watcher, AuthorHidden, world.star)
            assert await whole_home(graph, world.fans[1]) == [world.topic]

            done = await asyncio.to_thread(fanline, "unsuspend", "star", **environment)
            assert done.stderr == "star is no longer suspended.\n"
            assert await seen(graph, world) == before
            await told(watcher, AuthorAdded, world.star)
        assert await costs(graph, world.star) == await costs(graph, world.fans[-1]) == [(3, 4), (3, 4)]
    finally:
        await graph.close()
