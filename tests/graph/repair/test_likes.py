"""Repair of the likes of posts and users, and of their counts in the records of posts."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Liked
from graph.repair import defects
from graph.repair.defects import Defect
from tests.graph.repair.broken import check, kinds_found, repair
from tests.support.graph_worlds import Open, archive_log, crowd, state


@dataclass
class Liking:
    """A post that users like, and a user who likes posts. The oldest likes of both sets are archived.

    `post` is liked by `fans`, the earliest first, and no longer by `gone`. The last fan likes `posts` and `removed`,
    which is deleted.
    """

    graph: Graph
    raw: Redis
    author: int
    fans: list[int]
    gone: int
    post: int = 0
    removed: int = 0
    posts: list[int] = field(default_factory=list)

    @property
    def fan(self) -> int:
        """The user who likes all posts."""
        return self.fans[-1]

    async def number(self, fan: int) -> int:
        """Return the number of a hot like of the post."""
        return int(await self.raw.zscore(keys.likes(self.post), str(fan)) or 0)


async def begun(graph: Graph, raw: Redis, prefix: str = "fan") -> Liking:
    """Create users, with posts and likes."""
    author, *fans = await crowd(graph, 8, prefix)
    found = Liking(graph, raw, author, fans, gone=fans[2])
    found.posts = [(await graph.posts.publish(author, f"post {n}")).id for n in range(5)]
    found.removed = (await graph.posts.publish(author, "removed")).id
    found.post = found.posts[0]
    for fan in fans:
        await graph.likes.like(fan, found.post)
    for post in (*found.posts, found.removed):
        await graph.likes.like(found.fan, post)
    await graph.likes.unlike(found.gone, found.post)
    found.fans.remove(found.gone)
    await graph.posts.delete(author, found.removed)
    return found


async def archived(liking: Liking) -> None:
    """Archive everything, so that the oldest likes leave the store."""
    await liking.graph.worker().drain()
    await archive_log(liking.graph)
    await liking.graph.scan.run_pass()
    assert await liking.raw.zcard(keys.likes(liking.post)) == 3
    assert await liking.raw.zcard(keys.liked(liking.fan)) == 3


@pytest.fixture
async def graph(another: Open) -> Graph:
    """Open a graph that keeps two hot posts or likes of each list."""
    return await another(hot_posts=2, hot_slack=1, hot_newest=1)


@pytest.fixture
async def liking(graph: Graph, raw: Redis) -> Liking:
    """Create a post with archived likes, and a user with archived likes."""
    found = await begun(graph, raw)
    await archived(found)
    return found


async def test_undamaged_likes_are_right(liking: Liking) -> None:
    report = await repair(liking.graph)

    assert (report.clean, report.found.total()) == (True, 0), report.examples


Damage = Callable[[Liking], Awaitable[object]]

WRONG, FLOOR, COUNT, LEFT = (
    defects.LIKE_WRONG,
    defects.LIKE_FLOOR_WRONG,
    defects.LIKE_COUNT_WRONG,
    defects.LIKE_LEFT,
)


async def an_archived_like_is_hot(liking: Liking) -> None:
    floor = await liking.raw.zscore(keys.likes(liking.post), "f")
    await liking.raw.zadd(keys.likes(liking.post), {str(liking.fans[0]): int(floor or 0) - 1})


DAMAGES: dict[str, tuple[Damage, set[Defect]]] = {
    "a hot like of the post is missing": (lambda x: x.raw.zrem(keys.likes(x.post), x.fan), {WRONG, COUNT}),
    "a hot like of the user is missing": (lambda x: x.raw.zrem(keys.liked(x.fan), x.posts[-1]), {WRONG}),
    "a like has another number": (lambda x: x.raw.zincrby(keys.likes(x.post), 1, str(x.fan)), {WRONG}),
    "an archived like of the post is hot": (an_archived_like_is_hot, {WRONG, COUNT}),
    "the post has the like of a user who took it back": (
        lambda x: x.raw.zadd(keys.likes(x.post), {str(x.gone): 10**9}),
        {WRONG, COUNT},
    ),
    "all likes of the post are lost": (lambda x: x.raw.delete(keys.likes(x.post)), {WRONG, FLOOR}),
    "all likes of the post and their number are lost": (
        lambda x: x.raw.delete(keys.likes(x.post), keys.cold_likes(x.post)),
        {WRONG, FLOOR},
    ),
    "all likes of the user are lost": (lambda x: x.raw.delete(keys.liked(x.fan)), {WRONG, FLOOR}),
    "the floor of the post is lost": (lambda x: x.raw.zrem(keys.likes(x.post), "f"), {FLOOR}),
    "the floor of the user is lost": (lambda x: x.raw.zrem(keys.liked(x.fan), "f"), {FLOOR}),
    "the number of archived likes is wrong": (lambda x: x.raw.set(keys.cold_likes(x.post), 9), {COUNT}),
    "the number of archived likes is lost": (lambda x: x.raw.delete(keys.cold_likes(x.post)), {COUNT}),
    "the number of likes is wrong": (lambda x: x.raw.hset(keys.post(x.post), "likes", "9"), {COUNT}),
    "the number of likes is lost": (lambda x: x.raw.hdel(keys.post(x.post), "likes"), {COUNT}),
    "a post without archived likes has a number of them": (
        lambda x: x.raw.set(keys.cold_likes(x.posts[1]), 4),
        {COUNT},
    ),
    "a deleted post has likes": (lambda x: x.raw.zadd(keys.likes(x.removed), {str(x.fan): 5}), {LEFT}),
}


async def test_every_damage_is_corrected(graph: Graph, raw: Redis) -> None:
    """Each kind of damage is done to separate likes."""
    damaged = {damage: await begun(graph, raw, f"{place}-") for place, damage in enumerate(DAMAGES)}
    await archived(damaged["the number of likes is lost"])
    before = await state(raw)
    owners: dict[int, str] = {}
    for damage, each in damaged.items():
        await DAMAGES[damage][0](each)
        owners |= dict.fromkeys([each.author, *each.fans, each.gone, *each.posts, each.removed], damage)

    assert await kinds_found(graph, owners, correct=True) == {damage: kinds for damage, (_, kinds) in DAMAGES.items()}

    assert (await repair(graph)).found.total() == 0
    assert await state(raw) == before


async def test_a_check_changes_nothing(liking: Liking) -> None:
    await liking.raw.zrem(keys.likes(liking.post), str(liking.fan))
    damaged = await state(liking.raw)

    report = await check(liking.graph)

    assert report.found[WRONG] == 1
    assert await state(liking.raw) == damaged


async def test_a_like_that_is_newer_than_the_archive_stays(liking: Liking) -> None:
    """The archive does not have it yet."""
    new, graph = liking.gone, liking.graph
    await graph.commit([Liked(new, liking.post, liking.author)])
    await graph.worker().drain()
    number = await liking.number(new)
    assert number

    report = await replace(graph.repair(), timeout=0).run(correct=True)

    assert report.found.total() == 0, report.examples
    assert await liking.number(new) == number
