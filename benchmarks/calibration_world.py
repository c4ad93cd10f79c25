"""The worst realistic world for field prices: full pages, long threads and lists, and false candidates of searches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from graph import Graph
from graph.log.events import (
    EventBody,
    Followed,
    Liked,
    ListCreated,
    PostPublished,
    Reposted,
    UserCreated,
)
from resolvers import ids
from server.auth import Tokens
from tests.attacks.world import KEY

CROWD = 600
"""Users who follow, like, repost and reply, each with posts of their own."""
POSTS_EACH = 20
LISTS = 48
MEMBERS = 249
REPLIES = 400
UNREAD = 110
THREADS = 6
FALSE_CANDIDATES = 2000
BATCH = 500
WORDS = (
    *("morning", "coffee", "garden", "river", "mountain", "city", "music", "summer"),
    *("winter", "story", "friend", "travel", "kitchen", "bread", "window"),
)
FULL = " ".join([f"#tag{at}" for at in range(25)])
"""A text with 25 hashtags, to which 20 mentions are added."""


@dataclass(frozen=True)
class World:
    """The global ids that the queries need, the token of the viewer, and the tokens of other users."""

    token: str
    tokens: Sequence[str]
    viewer: str
    crowd: Sequence[str]
    lists: Sequence[str]
    threads: Sequence[str]
    deep: Sequence[str]
    full: Sequence[str]
    liked: Sequence[str]


async def seed(graph: Graph, *, scale: float = 1.0, tokens: int = 0) -> World:
    """Fill an empty store and its archive. `tokens` is the number of users of the crowd who get a token."""
    crowd_size, each = max(30, int(CROWD * scale)), max(4, int(POSTS_EACH * scale))
    viewer, *crowd = await _join(graph, ["viewer", *(f"user{at}" for at in range(crowd_size))])
    follows: list[EventBody] = [Followed(viewer, user) for user in crowd]
    follows += [Followed(user, viewer) for user in crowd]
    follows += [
        Followed(user, crowd[(at + step) % len(crowd)]) for at, user in enumerate(crowd) for step in range(1, 60)
    ]
    await _commit(graph, follows)
    await _commit(graph, [PostPublished(user, _text(at, user)) for at in range(each) for user in crowd])
    false = [PostPublished(crowd[at % len(crowd)], "京大 北京") for at in range(int(FALSE_CANDIDATES * scale))]
    await _commit(graph, false)
    logins = " ".join(f"@user{at}" for at in range(20))
    full = await _commit(
        graph, [PostPublished(user, f"{FULL} {logins}", mentions=tuple(crowd[:20])) for user in crowd[:200]]
    )
    threads, deep = await _threads(graph, viewer, crowd, int(REPLIES * scale))
    own = await _commit(graph, [PostPublished(viewer, f"my post {at}") for at in range(UNREAD)])
    notices: list[EventBody] = [Liked(user, post, viewer) for post in own for user in crowd[:12]]
    notices += [Reposted(user, post, viewer) for post in own[:40] for user in crowd[:8]]
    notices += [
        PostPublished(user, "an answer", reply_to=post, root=post, reply_to_author=viewer, root_author=viewer)
        for post, user in zip(own[:60], crowd, strict=False)
    ]
    liked = [
        Liked(crowd[(at + 50 * place) % len(crowd)], post, crowd[place])
        for place, post in enumerate(full[:100])
        for at in range(100)
    ]
    liked += [Liked(viewer, post, crowd[at]) for at, post in enumerate(full)]
    await _commit(graph, [*notices, *liked])
    lists = await _lists(graph, viewer, crowd)
    worker = graph.worker()
    await worker.drain()
    await graph.archiver.work()
    own_token, *others = [Tokens([KEY]).issue(await graph.sessions.start(user)) for user in [viewer, *crowd[:tokens]]]
    return World(
        own_token,
        others,
        ids.encode(ids.Kind.USER, viewer),
        [ids.encode(ids.Kind.USER, user) for user in crowd],
        [ids.encode(ids.Kind.LIST, number) for number in lists],
        post_ids(threads),
        post_ids(deep),
        post_ids(full),
        post_ids(full[:100]),
    )


def post_ids(numbers: Sequence[int]) -> list[str]:
    """Return the global ids of posts."""
    return [ids.encode(ids.Kind.POST, number) for number in numbers]


async def _threads(graph: Graph, viewer: int, crowd: Sequence[int], replies: int) -> tuple[list[int], list[int]]:
    """Publish threads with many replies, and return their first posts, and the last posts of deep chains."""
    roots = await _commit(graph, [PostPublished(crowd[at], f"thread {at}") for at in range(THREADS)])
    await _commit(
        graph,
        [
            PostPublished(crowd[at % len(crowd)], f"reply {at}", reply_to=root, root=root, listed=False)
            for at in range(replies)
            for root in roots
        ],
    )
    chains: list[list[int]] = [[post] for post in await _commit(graph, [PostPublished(u, "deep") for u in crowd[:100]])]
    for depth in range(25):
        below = await _commit(
            graph,
            [
                PostPublished(
                    crowd[(at + depth) % len(crowd)],
                    "deeper",
                    reply_to=chain[-1],
                    root=chain[0],
                    ancestors=tuple(chain[-20:-1]),
                    listed=False,
                )
                for at, chain in enumerate(chains)
            ],
        )
        for chain, post in zip(chains, below, strict=True):
            chain.append(post)
    return roots, [chain[-1] for chain in chains]


async def _lists(graph: Graph, viewer: int, crowd: Sequence[int]) -> list[int]:
    members = [tuple([*crowd[12 * at :], *crowd][:MEMBERS]) for at in range(LISTS)]
    return await _commit(graph, [ListCreated(viewer, f"list {at}", some) for at, some in enumerate(members)])


async def _join(graph: Graph, logins: Sequence[str]) -> list[int]:
    await graph.users.claim_many([(login, login, None) for login in logins])
    return await _commit(graph, [UserCreated(login, f"{login} name", login, "a bio") for login in logins])


async def _commit(graph: Graph, events: Sequence[EventBody]) -> list[int]:
    """Commit events in batches, and return their numbers."""
    numbers: list[int] = []
    for start in range(0, len(events), BATCH):
        numbers += [event.number for event in await graph.commit(events[start : start + BATCH])]
        if start % (20 * BATCH) == 0:
            await graph.worker(timedelta(seconds=30)).drain()
    return numbers


def _text(at: int, user: int) -> str:
    return " ".join(WORDS[(at * 7 + user + step) % len(WORDS)] for step in range(8)) + f" {at}"
