"""Projections: repeated, late and re-ordered, they come to the same; and what stands between their steps is right."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.log.events import (
    Event,
    EventBody,
    Followed,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    PostPublished,
    ProfileChanged,
    SessionsEnded,
    Unfollowed,
    UserCreated,
)
from graph.model import User
from graph.projections.mode import Mode
from tests.support.graph_worlds import Open, befriend, counted, crowd, home, people, posts, state
from tests.support.stores import Stop, runs

BASE = 1000


def history(seed: int, length: int = 120) -> list[Event]:
    """Make up a past of five people: consistent, with changes of mind and double deletions."""
    rng = random.Random(seed)  # noqa: S311 - reproducible
    logins = ["alice", "bob", "carol", "dave", "erin"]
    bodies: list[EventBody] = [UserCreated(login, login.title(), login) for login in logins]
    users = [BASE + n for n in range(5)]
    published: list[tuple[int, int]] = []
    for number in range(BASE + 5, BASE + length):
        who, whom = rng.sample(users, 2)
        match rng.randrange(7):
            case 0 | 1:
                bodies.append(Followed(who, whom))
            case 2:
                bodies.append(Unfollowed(who, whom))
            case 3:
                bodies.append(PostPublished(who, f"post {number}", rng.choice([None, "web"]), 1.5, -2.5))
                published.append((who, number))
            case 4 if published:
                bodies.append(PostDeleted(*rng.choice(published)))
            case 5:
                change = rng.choice([PermissionGranted, PermissionRevoked])
                bodies.append(change(who, rng.choice(["firehose", "another"])))
            case _:
                bodies.append(ProfileChanged(who, *rng.choice([(f"name {number}", None), (None, f"bio {number}")])))
    return [Event(BASE + n, body) for n, body in enumerate(bodies)]


def expected_home(events: Sequence[Event], viewer: int) -> list[int]:
    """Work out a home timeline from the events alone."""
    followed: set[int] = set()
    live: dict[int, int] = {}
    for event in events:
        match event.body:
            case Followed(follower, followee) if follower == viewer:
                followed.add(followee)
            case Unfollowed(follower, followee) if follower == viewer:
                followed.discard(followee)
            case PostPublished(author):
                live[event.number] = author
            case PostDeleted(_, post):
                live.pop(post, None)
            case _:
                pass
    return sorted((post for post, author in live.items() if author in {viewer, *followed}), reverse=True)


async def projected(graph: Graph, raw: Redis, events: Sequence[Event], batch: int = 1) -> dict[str, Any]:
    """Project events in this order into an empty store, in batches; give what the store then holds."""
    await raw.flushall()
    await graph.users.claim_many([(login, login, None) for login in ("alice", "bob", "carol", "dave", "erin")])
    for start in range(0, len(events), batch):
        await graph.projections.project(events[start : start + batch], Mode.WORKER)
    found = await state(raw)
    for key in [key for key in found if key.startswith("posts:") and not key.endswith(":gone")]:
        if found[key] == {"f": 0}:
            del found[key]  # whether an author without posts ever had one is no difference
    return found


@pytest.mark.parametrize("seed", range(5))
async def test_any_order_and_any_repetition_gives_the_same(graph: Graph, raw: Redis, seed: int) -> None:
    """Shuffled, doubled, in batches of any size: the state is that of the log's order, and so are the pages."""
    events = history(seed)
    rng = random.Random(seed)  # noqa: S311 - reproducible
    in_order = await projected(graph, raw, events)
    assert {key.split(":")[0] for key in in_order} == {"login", "user", "posts", "post", "following", "followers"}

    for batch in (1, 7, 1000):
        shuffled = rng.sample(events, len(events)) + rng.sample(events, 60)
        assert await projected(graph, raw, shuffled, batch) == in_order
    assert await projected(graph, raw, events[::-1]) == in_order

    for viewer in range(BASE, BASE + 5):
        for _ in range(2):
            assert await home(graph, viewer, 7) == expected_home(events, viewer)
            await graph.timelines.wait_for_rebuilds()


async def test_late_repetitions_change_no_page(graph: Graph, raw: Redis) -> None:
    """With caches built, projecting the whole past again, in any order, is not noticed."""
    events = history(7, 300)
    await projected(graph, raw, events)
    homes = {viewer: await home(graph, viewer) for viewer in range(BASE, BASE + 5)}
    await graph.timelines.wait_for_rebuilds()
    before = await state(raw, but=["{log}"])

    await graph.projections.project(random.Random(7).sample(events, len(events)), Mode.WORKER)  # noqa: S311 - reproducible

    assert await state(raw, but=["{log}"]) == before
    assert {viewer: await home(graph, viewer) for viewer in homes} == homes


@pytest.mark.parametrize("seed", range(3))
async def test_two_processes_that_project_at_once_agree(graph: Graph, another: Open, raw: Redis, seed: int) -> None:
    """Each in its own order, step by step between each other."""
    events = history(seed)
    other = await another()
    rng = random.Random(seed)  # noqa: S311 - reproducible
    in_order = await projected(graph, raw, events)
    await projected(graph, raw, [])

    async def project(process: Graph, batch: int) -> None:
        shuffled = rng.sample(events, len(events))
        for start in range(0, len(events), batch):
            await process.projections.project(shuffled[start : start + batch], Mode.WORKER)

    await asyncio.gather(project(graph, 1), project(other, 1), project(graph, 11), project(other, 50))

    again = await state(raw)
    assert {k: v for k, v in again.items() if v != {"f": 0}} == {k: v for k, v in in_order.items() if v != {"f": 0}}


async def test_a_followee_knows_the_follower_first(graph: Graph, another: Open) -> None:
    """Between the steps of a follow, and of an unfollow, nobody is followed who does not know."""
    slow = await another()
    alice, bob = await people(graph, "alice", "bob")

    async def between_steps(body: EventBody, script: str, key: str) -> tuple[list[int], list[int]]:
        stop = Stop(slow.store, runs(script, key))
        request = asyncio.create_task(slow.commit([body]))
        await stop.reached.wait()
        following = list(await graph.follows.followed_by(alice))
        [relationship] = await graph.relationships.between(bob, [alice])
        stop.resume()
        await request
        return following, [alice] if relationship.followed_by else []

    following, followers = await between_steps(Followed(alice, bob), "add", f"following:{{{alice}}}")
    assert (following, followers) == ([], [alice])
    following, followers = await between_steps(Unfollowed(alice, bob), "remove", f"followers:{{{bob}}}")
    assert (following, followers) == ([], [alice])


async def test_a_post_is_listed_before_anyone_gets_it(graph: Graph, another: Open) -> None:
    """Who follows while a post is fanned out finds it by merging."""
    slow = await another()
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, carol, bob)
    stop = Stop(slow.store, runs("insert"))
    request = asyncio.create_task(slow.posts.publish(bob, "hi"))
    await stop.reached.wait()

    await befriend(graph, alice, bob)
    for _ in range(2):
        assert len(await home(graph, alice)) == 1
        await graph.timelines.wait_for_rebuilds()

    stop.resume()
    post = await request
    assert await home(graph, alice) == [post.id]


async def test_the_request_serves_the_newest_followers_and_the_worker_all(another: Open, raw: Redis) -> None:
    """Beyond the first followers the answer does not wait; nobody is forgotten."""
    graph = await another(sync_followers=2)
    star, *fans = await crowd(graph, 6)
    for fan in fans:
        await befriend(graph, fan, star)
        await raw.zadd(f"home:{{{fan}}}", {"f": 0})

    [post] = await posts(graph, star, "hi")

    holders = [fan for fan in fans if await raw.zscore(f"home:{{{fan}}}", str(post))]
    assert holders == fans[-2:]
    await graph.worker().drain()
    assert [fan for fan in fans if await raw.zscore(f"home:{{{fan}}}", str(post))] == fans


async def test_a_large_audience_is_served_in_chunks(graph: Graph, raw: Redis) -> None:
    """1,203 caches get the post; the request pays two round trips for every 500 of the first 1,000 followers."""
    star, *fans = await crowd(graph, 1204)
    await graph.commit([Followed(fan, star) for fan in fans])
    async with raw.pipeline(transaction=False) as pipeline:
        for fan in fans:
            pipeline.zadd(f"home:{{{fan}}}", {"f": 0})
        await pipeline.execute()

    async with counted(graph) as cost:
        [post] = await posts(graph, star, "hi")

    assert cost.round_trips <= 4 + 2 * 2
    await graph.worker().drain()
    async with raw.pipeline(transaction=False) as pipeline:
        for fan in fans:
            pipeline.zscore(f"home:{{{fan}}}", str(post))
        assert await pipeline.execute() == 1203 * [post]


async def test_the_cost_of_a_batch_is_shared(graph: Graph) -> None:
    """A hundred events of one kind cost the round trips of one."""
    alice, *others = await crowd(graph, 101)
    events = await graph.log.append([Followed(other, alice) for other in others])

    async with counted(graph) as cost:
        await graph.projections.project(events, Mode.WORKER)

    assert cost.round_trips == 2
    async with counted(graph) as cost:
        await graph.projections.project([], Mode.WORKER)
    assert cost.round_trips == 0


async def test_a_profile_change_that_comes_first_is_kept(graph: Graph) -> None:
    """Nobody is shown before the account is there; then with the newer name."""
    await graph.users.claim_many([("wei", "n", None)])
    await graph.projections.project([Event(9, ProfileChanged(5, "伟", None))], Mode.WORKER)
    assert await graph.users.get_many([5]) == [None]

    await graph.projections.project([Event(5, UserCreated("wei", "Wei", "n", "hi"))], Mode.WORKER)

    assert await graph.users.get_many([5]) == [User(5, "wei", "伟", "hi")]


async def test_ended_sessions_stay_ended(graph: Graph) -> None:
    """A repeated or late event ends only the sessions it names."""
    [alice] = await people(graph, "alice")
    old = await graph.sessions.start(alice)
    await graph.sessions.end(alice)
    new = await graph.sessions.start(alice)

    await graph.projections.project([Event(await graph.log.last(), SessionsEnded(alice, [old.id]))], Mode.WORKER)

    assert not await graph.sessions.is_live(alice, old.id)
    assert await graph.sessions.is_live(alice, new.id)
