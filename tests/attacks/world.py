"""The world that is attacked: a part of the demo world, and a user with posts of maximum size."""

import secrets
from dataclasses import dataclass

from graph import Graph
from graph.log.events import Followed, PostPublished, UserCreated
from resolvers import ids
from server.auth import Tokens
from tests.conftest import CHEAP
from tests.support.graphs import open_graph
from tests.support.worlds import settle_small_world

KEY = secrets.token_urlsafe(48)
LONGEST = "𝄞" * 1000  # the maximum size of a post in bytes
LOUD = "loud"
BATCH = 500


@dataclass(frozen=True)
class World:
    """What attackers know: global ids, and the tokens of some users by login."""

    users: tuple[str, ...]
    loud: str
    timeline: str
    posts: tuple[str, ...]
    tokens: dict[str, str]
    logins: tuple[str, ...]


async def seed_world(url: str, *, posts: int = 120, followers: int = 120, posts_each: int = 20) -> World:
    """Seed an empty store with the small world and `loud`, a user with posts of maximum size and many followers.

    The followers follow each other in rings of ten, so that nested pages are full. Twenty of them have `posts_each`
    posts of nearly maximum size.
    """
    graph = await open_graph(url, CHEAP)
    try:
        small = await settle_small_world(graph)
        loud, *crowd = await _join(graph, [LOUD, *(f"fan{index}" for index in range(followers))])
        follows = [event for fan in crowd for event in (Followed(fan, loud), Followed(loud, fan))]
        for at, fan in enumerate(crowd):
            follows += [Followed(fan, crowd[(at + step) % len(crowd)]) for step in range(1, 10)]
        published = [PostPublished(loud, LONGEST) for _ in range(posts)]
        for fan in crowd[:20]:
            published += [PostPublished(fan, f"{LONGEST[:900]} {index}") for index in range(posts_each)]
        for events in (follows, published):
            for start in range(0, len(events), BATCH):
                await graph.commit(events[start : start + BATCH])
        await graph.worker().drain()
        people = small.people()
        known = {**people, LOUD: loud}
        tokens = {login: Tokens([KEY]).issue(await graph.sessions.start(id)) for login, id in known.items()}
        everybody = [loud, *crowd, *people.values()]
        return World(
            tuple(ids.encode(ids.Kind.USER, each) for each in everybody),
            ids.encode(ids.Kind.USER, loud),
            ids.encode(ids.Kind.USER_TIMELINE, loud),
            tuple(ids.encode(ids.Kind.POST, each) for each in [*small.posts()][-8:]),
            tokens,
            (LOUD, *small.people()),
        )
    finally:
        await graph.close()


async def _join(graph: Graph, logins: list[str]) -> list[int]:
    await graph.users.claim_many([(login, login, None) for login in logins])
    events = [UserCreated(login, "𝄞" * 50, login, "𝄞" * 300) for login in logins]
    return [event.number for event in await graph.commit(events)]
