"""Repair of the lists of replies, reposts and quotes, and of their lengths in the records of posts."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.repair import defects
from graph.repair.defects import Defect
from graph.visibility.views import SYSTEM
from tests.graph.repair.broken import kinds_found, repair
from tests.support.graph_worlds import Open, archive_log, crowd, state


@dataclass
class Talk:
    """A post with a repost, and with replies that are also quotes. Both lists have archived posts."""

    graph: Graph
    raw: Redis
    alice: int
    bob: int
    root: int
    replies: list[int] = field(default_factory=list)
    repost: int = 0


async def begun(graph: Graph, raw: Redis, prefix: str = "") -> Talk:
    """Bob replies to alice's post five times, deletes one reply, and reposts the post."""
    alice, bob = await crowd(graph, 2, prefix)
    root = (await graph.posts.publish(alice, "root")).id
    found = Talk(graph, raw, alice, bob, root)
    for n in range(6):
        reply = await graph.posts.publish(bob, f"reply {n}", reply_to=root, quote_of=root)
        found.replies.append(reply.id)
    await graph.posts.delete(bob, found.replies.pop(1))
    await graph.posts.publish(alice, "own", reply_to=root)
    found.repost = (await graph.reposts.repost(SYSTEM, bob, root)).id
    return found


async def archived(talk: Talk) -> None:
    """Archive everything. Two replies stay hot."""
    await talk.graph.worker().drain()
    await archive_log(talk.graph)
    await talk.graph.scan.run_pass()
    assert len(await talk.raw.zrange(keys.replied(talk.bob), 0, -1)) == 3


@pytest.fixture
async def graph(another: Open) -> Graph:
    """Open a graph that keeps two hot posts of each list."""
    return await another(hot_posts=2, hot_slack=1, hot_newest=1)


@pytest.fixture
async def talk(graph: Graph, raw: Redis) -> Talk:
    """Create a conversation, most of which is archived."""
    found = await begun(graph, raw, "user")
    await archived(found)
    return found


async def test_an_undamaged_conversation_is_right(talk: Talk) -> None:
    report = await repair(talk.graph)

    assert (report.clean, report.found.total()) == (True, 0), report.examples


UNUSED = 1000
"""No event has the number of another event minus this: one millisecond does not have that many events."""

Damage = Callable[[Talk], Awaitable[object]]

DAMAGES: dict[str, tuple[Damage, set[Defect]]] = {
    "a hot reply is missing among the author's replies": (
        lambda t: t.raw.zrem(keys.replied(t.bob), t.replies[-1]),
        {defects.POST_UNLISTED},
    ),
    "the record of a hot reply is missing": (
        lambda t: t.raw.delete(keys.post(t.replies[-1])),
        {defects.RECORD_WRONG},
    ),
    "the record of a hot reply is wrong": (
        lambda t: t.raw.hset(keys.post(t.replies[-1]), "details", '{"reply_to":7,"listed":false}'),
        {defects.RECORD_WRONG},
    ),
    "a hot reply is missing in the thread": (
        lambda t: t.raw.zrem(keys.replies(t.root), t.replies[-1]),
        {defects.POST_UNLISTED, defects.LENGTH_WRONG},
    ),
    "a hot quote is missing": (
        lambda t: t.raw.zrem(keys.quotes(t.root), t.replies[-1]),
        {defects.POST_UNLISTED, defects.LENGTH_WRONG},
    ),
    "the thread lists a post that is no reply": (
        lambda t: t.raw.zadd(keys.replies(t.root), {str(t.root): t.root}),
        {defects.POST_LISTED, defects.LENGTH_WRONG},
    ),
    "an archived reply is listed again": (
        lambda t: t.raw.zadd(keys.replies(t.root), {str(t.replies[0]): t.replies[0]}),
        {defects.POST_LISTED, defects.LENGTH_WRONG},
    ),
    "the thread lists a post that is lost, and its record too": (
        lambda t: t.raw.zadd(keys.replies(t.root), {str(t.replies[-1] - UNUSED): t.replies[-1] - UNUSED}),
        {defects.POST_LISTED, defects.LENGTH_WRONG},
    ),
    "a quote is lost, and its record too": (
        lambda t: t.raw.zadd(keys.quotes(t.root), {str(t.replies[-1] - UNUSED): t.replies[-1] - UNUSED}),
        {defects.POST_LISTED, defects.LENGTH_WRONG},
    ),
    "the number of archived replies is wrong": (
        lambda t: t.raw.set(keys.archived_of(keys.replies(t.root)), 9),
        {defects.COUNT_WRONG, defects.LENGTH_WRONG},
    ),
    "the number of the author's archived replies is lost": (
        lambda t: t.raw.delete(keys.archived_of(keys.replied(t.bob))),
        {defects.COUNT_WRONG},
    ),
    "a count of replies is wrong": (lambda t: t.raw.hset(keys.post(t.root), "replies", "9"), {defects.LENGTH_WRONG}),
    "a count of quotes is lost": (lambda t: t.raw.hdel(keys.post(t.root), "quotes"), {defects.LENGTH_WRONG}),
    "a count of reposts is wrong": (lambda t: t.raw.hset(keys.post(t.root), "reposts", "9"), {defects.LENGTH_WRONG}),
    "a repost is missing under its original": (
        lambda t: t.raw.zrem(keys.reposts(t.root), t.repost),
        {defects.POST_UNLISTED, defects.LENGTH_WRONG},
    ),
    "a quote is among the reposts": (
        lambda t: t.raw.zadd(keys.reposts(t.root), {str(t.replies[-1]): t.replies[-1]}),
        {defects.POST_LISTED, defects.LENGTH_WRONG},
    ),
    "a repost is among the quotes": (
        lambda t: t.raw.zadd(keys.quotes(t.root), {str(t.repost): t.repost}),
        {defects.POST_LISTED, defects.LENGTH_WRONG},
    ),
    "the number of archived quotes is wrong": (
        lambda t: t.raw.set(keys.archived_of(keys.quotes(t.root)), 9),
        {defects.COUNT_WRONG, defects.LENGTH_WRONG},
    ),
    "a post without replies has a count": (
        lambda t: t.raw.zadd(keys.replies(t.replies[-1]), {str(t.root): t.root}),
        {defects.POST_LISTED, defects.LENGTH_WRONG},
    ),
}


async def test_every_damage_is_corrected(graph: Graph, raw: Redis) -> None:
    """Each kind of damage is done to a separate conversation."""
    damaged = {damage: await begun(graph, raw, f"{place}-") for place, damage in enumerate(DAMAGES)}
    await archived(damaged["a quote is lost, and its record too"])
    before = await state(raw)
    owners: dict[int, str] = {}
    for damage, each in damaged.items():
        await DAMAGES[damage][0](each)
        owners |= dict.fromkeys([each.alice, each.bob, each.root, *each.replies], damage)

    assert await kinds_found(graph, owners, correct=True) == {damage: kinds for damage, (_, kinds) in DAMAGES.items()}

    assert (await repair(graph)).found.total() == 0
    assert await state(raw) == before


async def test_a_lost_thread_is_restored(talk: Talk) -> None:
    """All its posts become hot, because the floor is lost too. The next cut removes the older ones again."""
    name = keys.replies(talk.root)
    await talk.raw.delete(name, keys.archived_of(name), keys.gone(name))

    report = await repair(talk.graph)

    assert report.clean
    assert (await repair(talk.graph)).found.total() == 0
    assert await talk.raw.hget(keys.post(talk.root), "replies") == "6"


async def test_a_hot_thread_is_right(another: Open) -> None:
    """A list without archived posts has no count of archived posts."""
    graph = await another()
    alice, bob = await crowd(graph, 2)
    root = (await graph.posts.publish(alice, "root")).id
    await graph.posts.publish(bob, "reply", reply_to=root, quote_of=root)
    await graph.worker().drain()
    await archive_log(graph)

    report = await repair(graph)

    assert (report.clean, report.found.total()) == (True, 0), report.examples


async def test_counts_are_compared_also_after_a_deleted_post(another: Open, raw: Redis) -> None:
    graph = await another()
    alice, bob = await crowd(graph, 2)
    deleted, root = [(await graph.posts.publish(alice, text)).id for text in ("deleted", "root")]
    for post in (deleted, root):
        await graph.posts.publish(bob, "reply", reply_to=post)
    await graph.posts.delete(alice, deleted)
    await graph.worker().drain()
    await archive_log(graph)
    await raw.hset(keys.post(root), "replies", "9")

    report = await repair(graph)

    assert report.found == {defects.LENGTH_WRONG: 1}
    assert await raw.hget(keys.post(root), "replies") == "1"
