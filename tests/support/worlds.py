"""Small demo worlds for tests, and what clients must read from a store with such a world.

`as_it_should_be` computes with plain sets what `as_it_is` reads from a store.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from graph import Graph
from graph.model import Relationship, User
from graph.paging import CursorKind, Window, encode_cursor
from graph.visibility.views import SYSTEM
from server.demo.people import demo_world
from server.demo.world import World
from server.seeding.load import demo_source, load
from tests.support.graph_worlds import Counts, counts_of

BASE = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
"""A recent time: today at midnight. What demo users write, and in which order, depends on the time of day."""
PEOPLE = 24
POSTS = 120


async def settle_small_world(graph: Graph, people: int = PEOPLE, posts: int = POSTS) -> World:
    """Seed an empty store with a small demo world."""
    await load(graph, demo_source(people, posts), now=BASE)
    return demo_world(BASE, people=people, posts=posts)


@dataclass(frozen=True)
class Reading:
    """What a store returns about users: profiles, lists and timelines."""

    users: Mapping[str, User | None]
    counts: Mapping[str, Counts]
    followers: Mapping[str, list[tuple[int, int]]]
    following: Mapping[str, list[tuple[int, int]]]
    homes: Mapping[str, list[int]]
    relations: Mapping[str, list[Relationship]]


def as_it_should_be(world: World) -> Reading:
    """Return the expected reading, computed from the world's events."""
    people, follows, entries = world.people(), world.follows(), world.entries()
    profiles = {event.number: event.body for event in world.events if event.number in people.values()}
    pairs = [(follower, followee, number) for (follower, followee), number in follows.items()]

    def newest(entries: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return sorted(entries, key=lambda entry: -entry[1])

    followers = {login: newest([(a, n) for a, b, n in pairs if b == id]) for login, id in people.items()}
    following = {login: newest([(b, n) for a, b, n in pairs if a == id]) for login, id in people.items()}
    return Reading(
        users={
            login: User(id, login, getattr(profiles[id], "name", ""), getattr(profiles[id], "bio", ""))
            for login, id in people.items()
        },
        counts={
            login: Counts(
                len(followers[login]), len(following[login]), sum(author == id for author in entries.values())
            )
            for login, id in people.items()
        },
        followers=followers,
        following=following,
        homes={login: world.home(id) for login, id in people.items()},
        relations={
            login: [Relationship(id, one, follows.get((id, one)), follows.get((one, id))) for one in people.values()]
            for login, id in people.items()
        },
    )


async def as_it_is(graph: Graph, logins: list[str]) -> Reading:
    """Return the reading of a store, lists page by page."""
    found = await graph.users.ids_of_logins(logins)
    ids = {login: id for login, id in zip(logins, found, strict=True) if id is not None}
    users = dict(zip(ids, await graph.users.get_many(list(ids.values())), strict=True))
    counts = dict(zip(ids, await counts_of(graph, list(ids.values())), strict=True))
    return Reading(
        users=users,
        counts=counts,
        followers={login: await all_follows(graph, id, mine=False) for login, id in ids.items()},
        following={login: await all_follows(graph, id, mine=True) for login, id in ids.items()},
        homes={login: await whole_home(graph, id) for login, id in ids.items()},
        relations={login: await graph.relationships.between(id, list(ids.values())) for login, id in ids.items()},
    )


async def all_follows(graph: Graph, user: int, *, mine: bool) -> list[tuple[int, int]]:
    """Return a whole following or followers list: ids with the numbers of the follows."""
    entries: list[tuple[int, int]] = []
    after = None
    while True:
        window = Window.of(CursorKind.FOLLOW, first=100, after=after)
        [page] = await (graph.follows.following if mine else graph.follows.followers)(SYSTEM, [user], window)
        entries += [(follow.user, follow.number) for follow in page.items]
        if not page.has_next:
            return entries
        after = encode_cursor(CursorKind.FOLLOW, entries[-1][1])


async def whole_home(graph: Graph, viewer: int) -> list[int]:
    """Return the ids of a whole home timeline."""
    posts: list[int] = []
    after = None
    while True:
        page = await graph.timelines.home(viewer, Window.of(CursorKind.POST, first=100, after=after))
        posts += [post.id for post in page.items]
        if not page.has_next:
            return posts
        after = encode_cursor(CursorKind.POST, posts[-1])
