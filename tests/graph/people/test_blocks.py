"""Mutes and blocks: their effects, on which users, and the number of events."""

import asyncio
import random

import pytest

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.log.events import Blocked, Event, EventBody, Followed, Unblocked, Unfollowed
from graph.log.pair_events import Muted
from graph.model import FollowOutcome as Outcome
from graph.model import FollowRefusal
from graph.projections.mode import Mode
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import Open, append_events, befriend, cached, counted, home, newest, people, posts

CHANGES = ("mute", "unmute", "block", "unblock")


async def lists(graph: Graph, user: int) -> tuple[list[int], list[int]]:
    """Return the users whom a user follows, and the user's followers."""
    [following] = await graph.follows.following(SYSTEM, [user], newest(100))
    [followers] = await graph.follows.followers(SYSTEM, [user], newest(100))
    return [each.user for each in following.items], [each.user for each in followers.items]


async def test_a_mute_hides_posts_from_home_only(graph: Graph) -> None:
    """The muted user notices nothing. An unmute shows the posts again."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await befriend(graph, bob, alice)
    [own] = await posts(graph, alice, "own")
    [old] = await posts(graph, bob, "old")
    await cached(graph, alice)

    await graph.blocks.mute(alice, bob)

    assert await home(graph, alice) == [own]
    await cached(graph, alice)
    [new] = await posts(graph, bob, "new")
    assert await home(graph, alice) == [own]
    [page] = await graph.timelines.user(graph.visibility.of(alice), [bob], newest(9))
    assert [post.id for post in page.items] == [new, old]
    assert await home(graph, bob) == [new, old, own]
    assert await lists(graph, alice) == ([bob], [bob])
    assert [each.user for each in (await graph.blocks.muted(alice, newest(9))).items] == [bob]
    [relationship] = await graph.relationships.between(alice, [bob])
    assert (relationship.muting, relationship.following) == (True, True)
    await graph.blocks.unmute(alice, bob)
    assert await home(graph, alice) == [new, old, own]
    assert (await graph.blocks.muted(alice, newest(9))).items == ()


@pytest.mark.parametrize("limit", [0, 1, 10**9])
async def test_a_mute_counts_in_every_delivery_mode(another: Open, limit: int) -> None:
    graph = await another(push_limit=limit)
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    for user in (bob, carol):
        await befriend(graph, alice, user)
        await befriend(graph, bob if user == carol else carol, user)
    [one, two] = [(await posts(graph, user, "x"))[0] for user in (bob, carol)]
    await graph.worker().drain()
    for _ in range(2):
        assert await home(graph, alice) == [two, one]
        await graph.blocks.mute(alice, bob)
        for _ in range(2):
            assert await home(graph, alice) == [two]
            await graph.timelines.wait_for_rebuilds()
        await graph.blocks.unmute(alice, bob)


async def test_a_block_ends_follows_and_hides_both_from_each_other(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    for user, other in ((alice, bob), (bob, alice), (carol, alice), (carol, bob)):
        await befriend(graph, user, other)
    [one] = await posts(graph, alice, "one")
    [two] = await posts(graph, bob, "two")
    for user in (alice, bob, carol):
        await cached(graph, user)

    await graph.blocks.block(alice, bob)

    assert (await home(graph, alice), await home(graph, bob)) == ([one], [two])
    assert await home(graph, carol) == [two, one]
    assert (await lists(graph, alice), await lists(graph, bob)) == (([], [carol]), ([], [carol]))
    [count] = await graph.users.followers_counts([bob])
    assert count == 1
    [mine] = await graph.relationships.between(alice, [bob])
    [theirs] = await graph.relationships.between(bob, [alice])
    assert (mine.blocking, mine.blocked_by) == (theirs.blocked_by, theirs.blocking) == (True, False)
    for user, foreign in ((alice, two), (bob, one)):
        assert await graph.posts.get_many(graph.visibility.of(user), [foreign]) == [None]
    assert await graph.follows.follow(alice, [bob, carol]) == [FollowRefusal.BLOCKED, Outcome.FOLLOWED]
    assert await graph.follows.follow(bob, [alice]) == [FollowRefusal.BLOCKED]
    assert [each.user for each in (await graph.blocks.blocked(alice, newest(9))).items] == [bob]
    assert (await graph.blocks.blocked(bob, newest(9))).items == ()

    await graph.blocks.unblock(alice, bob)

    assert await lists(graph, bob) == ([], [carol])
    assert (await home(graph, alice), await home(graph, bob)) == ([one], [two])
    for user, foreign in ((alice, two), (bob, one)):
        assert await graph.posts.get_many(graph.visibility.of(user), [foreign]) != [None]
    assert await graph.follows.follow(bob, [alice]) == [Outcome.FOLLOWED]
    assert await home(graph, bob) == [two, one]


@pytest.mark.parametrize("change", CHANGES)
async def test_refused_changes_write_nothing(graph: Graph, change: str) -> None:
    [alice] = await people(graph, "alice")
    before = await graph.log.last()
    for user, code in ((alice, ProblemCode.INVALID), (7, ProblemCode.NOT_FOUND)):
        with pytest.raises(Rejected) as refusal:
            await getattr(graph.blocks, change)(alice, user)
        [problem] = refusal.value.problems
        assert (problem.code, problem.field) == (code, ("userId",))
    assert await graph.log.last() == before


@pytest.mark.parametrize(("change", "undo"), [("mute", "unmute"), ("block", "unblock")])
async def test_repetitions_write_nothing(graph: Graph, change: str, undo: str) -> None:
    """Repetitions write nothing, before and after the worker has projected the events."""
    alice, bob = await people(graph, "alice", "bob")
    for name in (undo, change, undo, change):
        await getattr(graph.blocks, name)(alice, bob)
        last = await graph.log.last()
        for _ in range(2):
            await getattr(graph.blocks, name)(alice, bob)
            await graph.worker().drain()
        assert await graph.log.last() == last


async def test_the_last_event_counts_and_not_the_store(graph: Graph) -> None:
    """Otherwise an event that is committed but not yet projected would reverse the outcome."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await graph.blocks.mute(alice, bob)
    unprojected: list[EventBody] = [Blocked(alice, bob), Unblocked(alice, bob), Blocked(carol, alice)]
    await append_events(graph, unprojected)

    last = await graph.log.last()
    await graph.blocks.unblock(alice, bob)
    assert await graph.log.last() == last
    await graph.blocks.block(alice, bob)
    assert await graph.log.last() > last
    await graph.worker().drain()

    [relationship] = await graph.relationships.between(alice, [bob])
    assert (relationship.blocking, relationship.muting) == (True, True)


async def test_a_follow_across_an_unprojected_block_ends_up_held(graph: Graph) -> None:
    """The request cannot know of the block. If the unblock came before the follow, the follow counts."""
    alice, bob = await people(graph, "alice", "bob")
    blocked, followed, unblocked, again = await append_events(
        graph, [Blocked(bob, alice), Followed(alice, bob), Unblocked(bob, alice), Followed(alice, bob)]
    )
    project = graph.projections.project
    await project([blocked], Mode.REQUEST)
    await project([followed], Mode.REQUEST)
    assert await lists(graph, alice) == ([], [])
    assert await graph.follows.unfollow(alice, []) == []
    await project([again], Mode.REQUEST)
    assert await lists(graph, alice) == ([], [])
    await project([unblocked], Mode.REQUEST)
    assert (await lists(graph, alice), await lists(graph, bob)) == (([bob], []), ([], [alice]))
    assert await graph.follows.followed_by(alice) == {bob: again.number}


@pytest.mark.parametrize(("change", "undo"), [("mute", "unmute"), ("block", "unblock")])
async def test_over_the_limit_nothing_is_written(another: Open, change: str, undo: str) -> None:
    """Repetitions are accepted, and undoing a change makes room. Mutes and blocks are counted separately."""
    graph = await another(max_blocked=2)
    alice, bob, carol, dave = await people(graph, "alice", "bob", "carol", "dave")
    await graph.blocks.mute(alice, dave)
    await graph.blocks.block(alice, dave)
    await getattr(graph.blocks, change)(alice, bob)
    last = await graph.log.last()

    with pytest.raises(Rejected) as refusal:
        await getattr(graph.blocks, change)(alice, carol)

    [problem] = refusal.value.problems
    assert (problem.code, problem.field) == (ProblemCode.TOO_MANY, ("userId",))
    assert {param.name: param.value for param in problem.params} == {"max": "2", "length": "3"}
    await getattr(graph.blocks, change)(alice, bob)
    assert await graph.log.last() == last
    await getattr(graph.blocks, undo)(alice, dave)
    await getattr(graph.blocks, change)(alice, carol)


async def test_changes_cost_few_round_trips(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    for change, most in (("mute", 3), ("unmute", 3), ("block", 5), ("unblock", 5)):
        async with counted(graph) as cost:
            await getattr(graph.blocks, change)(alice, bob)
        assert cost.round_trips <= most


async def test_concurrent_changes_of_two_processes_agree_and_the_block_wins(
    graph: Graph, another: Open, *, long_profile: bool
) -> None:
    """Two processes follow, unfollow, block and unblock one pair concurrently. Nobody unblocks in the last round."""
    alice, bob = await people(graph, "alice", "bob")
    processes = (graph, await another())
    rng = random.Random(1)  # noqa: S311 - reproducible

    async def change(process: Graph, kinds: int) -> None:
        user, other = rng.sample((alice, bob), 2)
        match rng.randrange(kinds):
            case 0:
                await process.blocks.block(user, other)
            case 1:
                await process.follows.unfollow(user, [other])
            case 2:
                await process.follows.follow(user, [other])
            case _:
                await process.blocks.unblock(user, other)

    size = 250 if long_profile else 25
    for kinds in (4, 4, 4, 3):
        await asyncio.gather(*(change(processes[n % 2], kinds) for n in range(size)), graph.blocks.block(alice, bob))
        await agree(graph, alice, bob)
    await asyncio.gather(*(process.worker().drain() for process in processes))
    assert (await lists(graph, alice), await lists(graph, bob)) == (([], []), ([], []))
    [relationship] = await graph.relationships.between(alice, [bob])
    assert (relationship.blocking, relationship.state.value) == (True, "STRANGER")
    await graph.blocks.unblock(alice, bob)
    await graph.blocks.unblock(bob, alice)
    assert (await lists(graph, alice), await lists(graph, bob)) == (([], []), ([], []))


async def agree(graph: Graph, alice: int, bob: int) -> None:
    """Assert that both sides agree on the follows between two users, once everything is projected."""
    await graph.worker().drain()
    for user, other in ((alice, bob), (bob, alice)):
        [mine] = await graph.relationships.between(user, [other])
        [theirs] = await graph.relationships.between(other, [user])
        assert mine.following_number == theirs.followed_by_number
        assert (mine.blocking, mine.blocked_by) == (theirs.blocked_by, theirs.blocking)
        assert mine.state.value == "STRANGER" or not (mine.blocking or mine.blocked_by)


async def test_late_and_repeated_events_do_not_restore_follows(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    bodies: list[EventBody] = [Followed(alice, bob), Blocked(bob, alice), Unblocked(bob, alice), Muted(alice, bob)]
    events: list[Event] = await append_events(graph, [*bodies, Unfollowed(bob, alice)])
    for order in (events, events[::-1], events):
        for event in order:
            await graph.projections.project([event], Mode.WORKER)
    assert (await lists(graph, alice), await lists(graph, bob)) == (([], []), ([], []))
