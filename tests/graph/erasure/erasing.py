"""A user with data of every kind, and erasures step by step."""

import re
from collections.abc import AsyncIterator
from typing import NamedTuple

from redis.asyncio import Redis

from graph import Graph
from graph.erasure.eraser import Eraser, Progress
from graph.log.account_events import UserDeleted, login_hash
from graph.model import ReportReason
from graph.relations.pair_sets import PairSet, stored_member
from graph.relations.register import PAIRS
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import archive_log, befriend, cached, people, posts

SECRET = "xyzzy"
"""A string that all texts and the login of the deleted user contain."""
LOGIN = f"{SECRET}_login"


class World(NamedTuple):
    """The deleted user, other users, and posts. Only `own` belong to the deleted user."""

    gone: int
    alice: int
    bob: int
    carol: int
    dave: int
    alices: int
    bobs: int
    more: int
    own: int
    reply: int


async def populate(graph: Graph) -> World:
    """Create a user with data of every kind, and other users with data of every kind about that user."""
    gone, alice, bob, carol, dave = await people(graph, LOGIN, "alice", "bob", "carol", "dave")
    await graph.users.update_profile(gone, name=f"{SECRET} name", bio=f"{SECRET} bio")
    await graph.sessions.start(gone, f"{SECRET} agent")
    await befriend(graph, gone, alice, bob)
    await befriend(graph, alice, gone, bob)
    await befriend(graph, bob, gone, alice)
    await befriend(graph, carol, gone)
    [alices, more], [bobs] = await posts(graph, alice, "hello", "again"), await posts(graph, bob, "hi")
    own = (await posts(graph, gone, *(f"{SECRET} post {n}" for n in range(4))))[0]
    for n in range(3):
        await graph.posts.publish(gone, f"{SECRET} reply {n} @alice", reply_to=alices)
    await graph.posts.publish(gone, f"{SECRET} quote", quote_of=bobs)
    reply = await graph.posts.publish(alice, "an answer", reply_to=own)
    for user in (alice, bob, gone):
        for post in (own, alices, bobs, more):
            await graph.likes.like(user, post)
    await graph.reposts.repost(SYSTEM, gone, alices)
    await graph.reposts.repost(SYSTEM, gone, more)
    await graph.reposts.repost(SYSTEM, bob, own)
    lists = await graph.lists.create(gone, f"{SECRET} list", [alice])
    await graph.lists.update(gone, lists.id, name=f"{SECRET} renamed")
    await graph.lists.create(alice, "with others", [gone, bob])
    later = await graph.lists.create(bob, "added later")
    await graph.lists.update(bob, later.id, added=[gone])
    former = await graph.lists.create(bob, "removed", [gone, carol])
    await graph.lists.update(bob, former.id, removed=[gone])
    await graph.moderation.report_user(SYSTEM, gone, alice, ReportReason.SPAM, f"{SECRET} comment")
    pairs = [(each, pair) for each in PAIRS.pair_sets for pair in ((alice, gone), (gone, bob))]
    await graph.commit(
        [each.body_of(owner, member_of(each, member, gone), begins=True) for each, (owner, member) in pairs]
    )
    await graph.blocks.block(gone, carol)
    await graph.blocks.block(dave, gone)
    await settle(graph)
    await cached(graph, gone, alice, bob)
    return World(gone, alice, bob, carol, dave, alices, bobs, more, own, reply.id)


def member_of(pair_set: PairSet, user: int, gone: int) -> str:
    """Return a user as a member of a set. In a set of texts, it is a text: a secret one if the owner is deleted."""
    return stored_member(user if pair_set.begun.SUBJECT else "text" if user == gone else SECRET)


async def members_of_lists(graph: Graph, user: int) -> list[list[int]]:
    """Return the members of each list of a user, the newest list first."""
    return [await graph.lists.member_ids(user, each.id) for each in await graph.lists.of_user(user)]


async def settle(graph: Graph) -> None:
    """Project and archive everything, and cut the lists and sets that are too long."""
    await graph.worker().drain()
    await archive_log(graph)


async def delete(graph: Graph, user: int, login: str = LOGIN) -> int:
    """Delete a user, and return the number of the event."""
    [event] = await graph.commit([UserDeleted(user, login_hash(login))])
    return event.number


async def erase(graph: Graph, eraser: Eraser | None = None) -> int:
    """Erase all deleted users, and return the number of steps."""
    steps, eraser = 0, eraser or graph.eraser
    while (progress := await eraser.step()) is not Progress.IDLE:
        steps += progress is Progress.WORKED
        await settle(graph)
    return steps


async def dump(raw: Redis) -> AsyncIterator[tuple[str, str]]:
    """Yield all keys of the store with their values as text."""
    names = [name async for name in raw.scan_iter(count=1000)]
    for start in range(0, len(names), 1000):
        some = names[start : start + 1000]
        async with raw.pipeline(transaction=False) as kinds, raw.pipeline(transaction=False) as values:
            for name in some:
                kinds.type(name)
            for name, kind in zip(some, await kinds.execute(), strict=True):
                match kind:
                    case "zset":
                        values.zrange(name, 0, -1, withscores=True)
                    case "hash":
                        values.hgetall(name)
                    case "stream":
                        values.xrange(name)
                    case _:
                        values.get(name)
            for name, value in zip(some, await values.execute(), strict=True):
                yield str(name), repr(value)


async def left(raw: Redis, word: str) -> list[str]:
    """Return the keys that contain a word in their values or names."""
    return [key async for key, value in dump(raw) if word in key.casefold() or word in value.casefold()]


async def of_user(raw: Redis, user: int) -> dict[str, str]:
    """Return the keys of a user with their values, except keys that hold only the floor of a set."""
    found = {key: value async for key, value in dump(raw) if f"{{{user}}}" in key}
    return {key: value for key, value in found.items() if re.fullmatch(r"\[\('f', [0-9.]+\)\]|'[0-9]+'", value) is None}
