"""Projections: idempotent, independent of the order of events, and correct between their steps."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.account_events import UserDeleted, UserErased, login_hash
from graph.log.events import (
    Blocked,
    Event,
    EventBody,
    Followed,
    ListChanged,
    ListCreated,
    ListDeleted,
    NotificationsRead,
    PasswordChanged,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    PostPublished,
    ProfileChanged,
    SessionsEnded,
    Unblocked,
    Unfollowed,
    UserCreated,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.pair_events import Muted, Unmuted
from graph.model import Post, User
from graph.posts.posts import deletion_of
from graph.posts.publication import as_reply
from graph.projections.mode import Mode
from graph.records import published_post
from graph.relations.pair_sets import stored_member
from graph.relations.register import PAIRS
from tests.support.erasures import ends_of
from tests.support.exploring import also_at_length
from tests.support.graph_worlds import Open, append_events, befriend, counted, crowd, home, people, posts, state
from tests.support.stores import Stop, runs

BASE = 1000


def random_events(seed: int, length: int = 120) -> list[Event]:
    """Return random but consistent events of five users, with follows undone and posts deleted twice.

    At the end, the accounts of erin and dave are deleted, and dave is erased.
    """
    rng = random.Random(seed)  # noqa: S311 - reproducible
    logins = ["alice", "bob", "carol", "dave", "erin"]
    bodies: list[EventBody] = [UserCreated(login, login.title(), login) for login in logins]
    users = [BASE + n for n in range(5)]
    published: list[Post] = []
    changes: tuple[type[PermissionGranted] | type[PermissionRevoked], ...] = (PermissionGranted, PermissionRevoked)
    for number in range(BASE + 5, BASE + length):
        user, other = rng.sample(users, 2)
        match rng.randrange(13):
            case 0 | 1:
                bodies.append(Followed(user, other, renewed=number % 3 == 0))
            case 2:
                bodies.append(Unfollowed(user, other))
            case 3:
                body = PostPublished(user, f"post {number}", rng.choice([None, "web"]), 1.5, -2.5)
                if published and rng.randrange(3):
                    body = as_reply(replace(body, repost_of=rng.choice(published).id), rng.choice(published))
                bodies.append(body)
                published.append(published_post(number, body))
            case 4 if published:
                bodies.append(deletion_of(rng.choice(published)))
            case 5:
                bodies.append(NotificationsRead(user, rng.randrange(BASE, number + 5)))
            case 6:
                bodies.append(rng.choice(changes)(user, rng.choice(["firehose", "another"])))
            case 7 if rng.random() < 0.3:
                bodies.append(PasswordChanged(user, logins[user - BASE], "nonce"))
            case 8:
                pair_set = rng.choice(PAIRS.pair_sets)
                member = stored_member(other if pair_set.begun.SUBJECT else str(other))
                bodies.append(pair_set.body_of(user, member, begins=rng.random() < 0.5))
            case 9:
                bodies.append(Blocked(user, other) if rng.random() < 0.4 else Unblocked(user, other))
            case 10 | 11:
                bodies.append(rng.choice(list_changes(rng, bodies, other)))
            case 12 if rng.random() < 0.3:
                bodies.append(UserSuspended(user) if rng.random() < 0.5 else UserUnsuspended(user))
            case _:
                bodies.append(rng.choice(profile_changes(user, number)))
    deleted = [UserDeleted(user, login_hash(login)) for user, login in zip(users[3:], logins[3:], strict=True)]
    bodies += deleted
    bodies += ends_of(users[3], [Event(BASE + n, body) for n, body in enumerate(bodies)])
    return [Event(BASE + n, body) for n, body in enumerate([*bodies, UserErased(users[3])])]


def profile_changes(user: int, number: int) -> list[ProfileChanged]:
    """Return a change of each field, and the removal of a URL."""
    return [
        ProfileChanged(user, f"name {number}"),
        ProfileChanged(user, bio=f"bio {number}"),
        ProfileChanged(user, avatar_url=f"https://example.org/{number}"),
        ProfileChanged(user, website_url=f"https://{number}.example.org"),
        ProfileChanged(user, avatar_url="", website_url=""),
    ]


def list_changes(rng: random.Random, bodies: Sequence[EventBody], user: int) -> list[EventBody]:
    """Return a new list, changes of an earlier one and, seldom, its deletion."""
    created = [(BASE + place, body.owner) for place, body in enumerate(bodies) if isinstance(body, ListCreated)]
    owner, others = rng.choice(range(BASE, BASE + 5)), rng.sample(range(BASE, BASE + 5), 2)
    if not created or rng.random() < 0.4:
        return [ListCreated(owner, f"list {len(bodies)}", (user, *others))]
    list_id, owner = rng.choice(created)
    return [
        ListChanged(owner, list_id, f"list {len(bodies)}"),
        ListChanged(owner, list_id, added=(others[0],), removed=(others[1],)),
        ListChanged(owner, list_id, removed=(user,)),
        *([ListDeleted(owner, list_id)] * (rng.random() < 0.2)),
    ]


def expected_home(events: Sequence[Event], viewer: int) -> list[int]:
    """Return the home timeline that results from the events."""
    followed: set[int] = set()
    muted: set[int] = set()
    blocks: set[tuple[int, int]] = set()
    live: dict[int, int] = {}
    suspended: set[int] = set()
    for event in events:
        match event.body:
            case UserSuspended(user) | UserDeleted(user):
                suspended.add(user)
            case UserUnsuspended(user):
                suspended.discard(user)
            case Followed(follower, followee) if follower == viewer:
                if not blocks & {(viewer, followee), (followee, viewer)}:
                    followed.add(followee)
            case Unfollowed(follower, followee) if follower == viewer:
                followed.discard(followee)
            case Muted(muter, other) if muter == viewer:
                muted.add(other)
            case Unmuted(muter, other) if muter == viewer:
                muted.discard(other)
            case Blocked(blocker, other):
                blocks.add((blocker, other))
                followed -= {blocker, other} if viewer in (blocker, other) else set()
            case Unblocked(blocker, other):
                blocks.discard((blocker, other))
                followed -= {blocker, other} if viewer in (blocker, other) else set()
            case PostPublished(author, listed=True):
                live[event.number] = author
            case PostDeleted(_, post):
                live.pop(post, None)
            case _:
                pass
    shown = {viewer, *followed - muted} - suspended
    return sorted((post for post, author in live.items() if author in shown), reverse=True)


async def projected(graph: Graph, raw: Redis, events: Sequence[Event], batch: int = 1) -> dict[str, Any]:
    """Project events in this order into an empty store, in batches, and return its content."""
    binding = await raw.get(keys.BINDING)
    await raw.flushall()
    await raw.set(keys.BINDING, binding or "")
    await graph.users.claim_many([(login, login, None) for login in ("alice", "bob", "carol", "dave", "erin")])
    for start in range(0, len(events), batch):
        await graph.projections.project(events[start : start + batch], Mode.WORKER)
    found = await state(raw)
    for key in [key for key in found if key.startswith(("posts:", "replied:")) and not key.endswith(":gone")]:
        if found[key] == {"f": 0}:
            del found[key]  # left by deleted posts, and ignored
    return found


@pytest.mark.parametrize("seed", also_at_length(range(2), range(2, 5)))
async def test_order_and_repetition_do_not_matter(graph: Graph, raw: Redis, seed: int) -> None:
    """Events that are shuffled, repeated and in batches of any size give the same state and pages as in order."""
    events = random_events(seed)
    rng = random.Random(seed)  # noqa: S311 - reproducible
    in_order = await projected(graph, raw, events)
    kinds = {"login", "user", "posts", "post", "following", "followers", "replied", "replies", "quotes"}
    kinds |= {each.key(0).partition(":")[0] for each in PAIRS.pair_sets}
    kinds |= {"blocking", "blockers", "notifications", "lists", "list", "{suspended}", "{log}", "reserved"}
    kinds |= {"liked", "reposted"}  # floors of the erased user
    assert {key.split(":")[0] for key in in_order} == kinds

    for batch in (1, 7, 1000):
        shuffled = rng.sample(events, len(events)) + rng.sample(events, 60)
        assert await projected(graph, raw, shuffled, batch) == in_order
    assert await projected(graph, raw, events[::-1]) == in_order

    for viewer in range(BASE, BASE + 5):
        for _ in range(2):
            assert await home(graph, viewer, 7) == expected_home(events, viewer)
            await graph.timelines.wait_for_rebuilds()


async def test_repeating_all_events_changes_no_page(graph: Graph, raw: Redis) -> None:
    """Pages stay the same with existing home caches. Blocks and erasures, which would delete caches, are left out."""
    events = [each for each in random_events(7, 300) if not isinstance(each.body, Blocked | Unblocked | UserErased)]
    await projected(graph, raw, events)
    homes = {viewer: await home(graph, viewer) for viewer in range(BASE, BASE + 5)}
    await graph.timelines.wait_for_rebuilds()
    before = await state(raw, but=["{log}"])

    await graph.projections.project(random.Random(7).sample(events, len(events)), Mode.WORKER)  # noqa: S311 - reproducible

    assert await state(raw, but=["{log}"]) == before
    assert {viewer: await home(graph, viewer) for viewer in homes} == homes


@pytest.mark.parametrize("seed", range(3))
async def test_processes_may_project_concurrently(graph: Graph, another: Open, raw: Redis, seed: int) -> None:
    """Each process projects the events in another order."""
    events = random_events(seed)
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


async def test_the_followee_has_the_follower_first_and_longest(graph: Graph, another: Open) -> None:
    """Between the steps of a follow or of an unfollow, only the followee's side lists the follow."""
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

    following, followers = await between_steps(Followed(alice, bob), "add_follows", f"following:{{{alice}}}")
    assert (following, followers) == ([], [alice])
    following, followers = await between_steps(Unfollowed(alice, bob), "remove", f"followers:{{{bob}}}")
    assert (following, followers) == ([], [alice])


async def test_a_post_is_listed_before_it_is_fanned_out(graph: Graph, another: Open) -> None:
    """A viewer who follows the author during the fan-out finds the post by merging."""
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


async def test_a_mutation_pushes_to_the_newest_followers_and_the_worker_to_all(another: Open, raw: Redis) -> None:
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


async def test_a_fan_out_to_many_followers_runs_in_chunks(graph: Graph, raw: Redis) -> None:
    """The mutation takes 2 round trips for each 500 of the first 1,000 followers. The worker pushes to all 1,203."""
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


async def test_a_batch_costs_the_round_trips_of_one_event(graph: Graph) -> None:
    alice, *others = await crowd(graph, 101)
    events = await append_events(graph, [Followed(other, alice) for other in others])

    async with counted(graph) as cost:
        await graph.projections.project(events, Mode.WORKER)

    assert cost.round_trips == 2
    async with counted(graph) as cost:
        await graph.projections.project([], Mode.WORKER)
    assert cost.round_trips == 0


async def test_a_profile_change_projected_before_the_sign_up_is_kept(graph: Graph) -> None:
    """The user is shown as soon as the sign-up is projected, with the newer name."""
    await graph.users.claim_many([("wei", "n", None)])
    await graph.projections.project([Event(9, ProfileChanged(5, "伟", None))], Mode.WORKER)
    assert await graph.users.get_many([5]) == [None]

    await graph.projections.project([Event(5, UserCreated("wei", "Wei", "n", "hi"))], Mode.WORKER)

    assert await graph.users.get_many([5]) == [User(5, "wei", "伟", "hi")]


async def test_a_repeated_end_of_sessions_ends_only_the_sessions_it_names(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    old = await graph.sessions.start(alice)
    await graph.sessions.end(alice)
    new = await graph.sessions.start(alice)

    await graph.projections.project([Event(await graph.log.last(), SessionsEnded(alice, [old.id]))], Mode.WORKER)

    assert not await graph.sessions.is_live(alice, old.id)
    assert await graph.sessions.is_live(alice, new.id)
