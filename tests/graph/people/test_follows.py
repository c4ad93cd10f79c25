"""Follows: outcomes, lists, and agreement of both sides."""

import asyncio
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import BadPaging
from graph.log.events import EventBody, Followed, ProfileChanged, Unfollowed
from graph.model import MAX_NUMBER, FollowRefusal
from graph.model import FollowOutcome as Outcome
from graph.paging import CursorKind, Window, encode_cursor
from graph.projections.mode import Mode
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import Open, append_events, archive_log, befriend, counted, crowd, home, people, posts
from tests.support.stores import Stop, sends


def window(**arguments: int | str) -> Window:
    return Window.of(CursorKind.FOLLOW, **arguments)  # type: ignore[arg-type] # names and values go together


async def sides(graph: Graph, follower: int, followee: int) -> tuple[list[int], list[int]]:
    """Return the numbers of a follow in the lists of both sides."""
    [following] = await graph.follows.following(SYSTEM, [follower], window(first=100))
    [followers] = await graph.follows.followers(SYSTEM, [followee], window(first=100))
    return (
        [follow.number for follow in following.items if follow.user == followee],
        [follow.number for follow in followers.items if follow.user == follower],
    )


async def test_a_follow_is_in_both_lists(graph: Graph) -> None:
    """The follow has the number of its event in both."""
    alice, bob = await people(graph, "alice", "bob")

    assert await graph.follows.follow(alice, [bob]) == [Outcome.FOLLOWED]

    number = await graph.log.last()
    assert await sides(graph, alice, bob) == ([number], [number])
    assert await sides(graph, bob, alice) == ([], [])


async def test_following_returns_an_outcome_for_each_id(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)

    outcomes = await graph.follows.follow(alice, [7, carol, alice, bob])

    assert outcomes == [FollowRefusal.NOT_FOUND, Outcome.FOLLOWED, FollowRefusal.SELF, Outcome.ALREADY_FOLLOWING]
    assert await graph.follows.followed_by(alice) == {
        bob: (await sides(graph, alice, bob))[0][0],
        carol: (await sides(graph, alice, carol))[0][0],
    }


async def test_unfollowing_returns_an_outcome_for_each_id(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)

    outcomes = await graph.follows.unfollow(alice, [7, carol, alice, bob])

    assert outcomes == [FollowRefusal.NOT_FOUND, Outcome.NOT_FOLLOWING, FollowRefusal.SELF, Outcome.UNFOLLOWED]
    assert await sides(graph, alice, bob) == ([], [])


async def test_following_again_changes_nothing(graph: Graph) -> None:
    """Neither the time of the follow nor the log changes, before and after the worker has projected the follow."""
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    before = await sides(graph, alice, bob), await graph.log.last()
    for _ in range(2):
        assert await graph.follows.follow(alice, [bob]) == [Outcome.ALREADY_FOLLOWING]
        assert await graph.follows.unfollow(bob, [alice]) == [Outcome.NOT_FOLLOWING]
        await graph.worker().drain()
    assert (await sides(graph, alice, bob), await graph.log.last()) == before


async def test_following_again_after_an_unfollow_has_a_new_time(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await graph.follows.unfollow(alice, [bob])
    await befriend(graph, alice, bob)

    number = await graph.log.last()
    await graph.worker().drain()

    assert await sides(graph, alice, bob) == ([number], [number])


async def test_a_hundred_follows_take_four_round_trips(graph: Graph) -> None:
    alice, *others = await crowd(graph, 101)

    async with counted(graph) as cost:
        outcomes = await graph.follows.follow(alice, others)

    assert outcomes == 100 * [Outcome.FOLLOWED]
    assert cost.round_trips == 4


async def test_over_the_limit_no_follow_is_written(another: Open) -> None:
    """Unfollowing makes room."""
    graph = await another(max_following=3)
    alice, bob, carol, dave, erin = await people(graph, "alice", "bob", "carol", "dave", "erin")
    await befriend(graph, alice, bob, carol)

    outcomes = await graph.follows.follow(alice, [bob, dave, alice, erin, 7])

    assert outcomes == [
        Outcome.ALREADY_FOLLOWING,
        FollowRefusal.LIMIT_REACHED,
        FollowRefusal.SELF,
        FollowRefusal.LIMIT_REACHED,
        FollowRefusal.NOT_FOUND,
    ]
    assert sorted(await graph.follows.followed_by(alice)) == [bob, carol]
    assert await graph.follows.follow(alice, [dave]) == [Outcome.FOLLOWED]
    assert await graph.follows.follow(alice, [erin]) == [FollowRefusal.LIMIT_REACHED]
    assert await graph.follows.follow(alice, [bob]) == [Outcome.ALREADY_FOLLOWING]
    await graph.follows.unfollow(alice, [bob])
    assert await graph.follows.follow(alice, [erin]) == [Outcome.FOLLOWED]


async def test_following_no_users_returns_nothing(graph: Graph) -> None:
    [alice] = await people(graph, "alice")

    assert await graph.follows.follow(alice, []) == []
    assert await graph.follows.unfollow(alice, []) == []


async def test_the_lists_are_newest_first_and_paged_both_ways(graph: Graph) -> None:
    """Pages in either direction concatenate to the whole list."""
    hub, *fans = await crowd(graph, 8)
    for fan in fans:
        await befriend(graph, fan, hub)
        await befriend(graph, hub, fan)

    for read in (graph.follows.followers, graph.follows.following):
        found: list[int] = []
        bound: dict[str, str] = {}
        for more in (True, True, False):
            [page] = await read(SYSTEM, [hub], window(first=3, **bound))
            assert (page.has_next, page.has_previous) == (more, bool(bound))
            found += [follow.user for follow in page.items]
            bound = {"after": encode_cursor(CursorKind.FOLLOW, page.items[-1].number)}
        assert found == fans[::-1]
        found, bound = [], {}
        for more in (True, True, False):
            [page] = await read(SYSTEM, [hub], window(last=3, **bound))
            assert (page.has_previous, page.has_next) == (more, bool(bound))
            found = [follow.user for follow in page.items] + found
            bound = {"before": encode_cursor(CursorKind.FOLLOW, page.items[0].number)}
        assert found == fans[::-1]


async def test_a_page_between_two_cursors(graph: Graph) -> None:
    """`first` is used with `before`, and `last` with `after`. An exact fit reports no further entries."""
    hub, *fans = await crowd(graph, 6)
    for fan in fans:
        await befriend(graph, fan, hub)
    [whole] = await graph.follows.followers(SYSTEM, [hub], window(first=5))
    newest, *_, eldest = (encode_cursor(CursorKind.FOLLOW, follow.number) for follow in whole.items)

    pages = [
        (await graph.follows.followers(SYSTEM, [hub], window(after=newest, before=eldest, **size)))[0]
        for size in ({"first": 2}, {"first": 3}, {"last": 2}, {"last": 3})
    ]

    assert [page.items for page in pages] == [
        whole.items[1:3],
        whole.items[1:4],
        whole.items[2:4],
        whole.items[1:4],
    ]
    assert [(page.has_next, page.has_previous) for page in pages] == [
        (True, True),
        (False, True),
        (True, True),
        (True, False),
    ]


async def test_several_lists_are_one_round_trip(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, carol)
    await befriend(graph, bob, carol)

    async with counted(graph) as cost:
        pages = await graph.follows.followers(SYSTEM, [alice, carol, 7, carol], window(first=1))

    assert [[follow.user for follow in page.items] for page in pages] == [[], [bob], [], [bob]]
    assert [page.has_next for page in pages] == [False, True, False, True]
    assert cost.round_trips == 1


@pytest.mark.parametrize("kind", [CursorKind.POST, CursorKind.LOG])
def test_lists_refuse_cursors_of_other_lists(kind: CursorKind) -> None:
    with pytest.raises(BadPaging, match="requires a follow cursor"):
        window(first=1, after=encode_cursor(kind, 1))


async def test_two_instances_that_toggle_one_follow_agree(graph: Graph, another: Open) -> None:
    """After concurrent follows and unfollows, both sides are equal."""
    alice, bob = await people(graph, "alice", "bob")
    instances = [graph, await another()]

    async def toggle(instance: Graph, offset: int) -> None:
        for n in range(500):
            act = instance.follows.follow if (n + offset) % 2 else instance.follows.unfollow
            await act(alice, [bob])

    await asyncio.gather(*(toggle(instances[n % 2], n // 2) for n in range(2)))
    before = await sides(graph, alice, bob)
    await graph.worker().drain()

    assert before[0] == before[1]
    assert await sides(graph, alice, bob) == before


async def test_concurrent_events_of_one_pair_end_with_the_highest_number(graph: Graph, another: Open) -> None:
    alice, bob = await people(graph, "alice", "bob")
    instances = [graph, await another()]
    bodies: list[EventBody] = [(Followed, Unfollowed)[n % 3 // 2](alice, bob) for n in range(1000)]

    for start in range(0, 1000, 50):
        await asyncio.gather(*(instances[n % 2].commit([body]) for n, body in enumerate(bodies[start : start + 50])))
    before = await sides(graph, alice, bob)
    last = await graph.log.get(await graph.log.last())
    await graph.worker().drain()

    assert last is not None
    expected = [last.number] if isinstance(last.body, Followed) else []
    if expected:
        assert before == (expected, expected)
    assert before[0] == before[1]
    assert await sides(graph, alice, bob) == before


async def test_a_follow_that_is_projected_late_does_not_undo_an_unfollow(graph: Graph, another: Open) -> None:
    alice, bob = await people(graph, "alice", "bob")
    slow = await another()
    events = await append_events(slow, [Followed(alice, bob)])
    await graph.commit([Unfollowed(alice, bob)])

    await slow.projections.project(events, Mode.REQUEST)

    assert await sides(graph, alice, bob) == ([], [])


async def test_in_a_batch_the_last_event_of_a_pair_counts(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")

    changes: list[EventBody] = [Followed(alice, bob), Unfollowed(alice, bob), Followed(alice, bob)]
    events = await graph.commit([*changes, Followed(alice, carol), Unfollowed(alice, carol)])

    assert await sides(graph, alice, bob) == ([events[2].number], [events[2].number])
    assert await sides(graph, alice, carol) == ([], [])


async def test_old_tombstones_are_removed_and_late_events_have_no_effect(another: Open, raw: Redis) -> None:
    alice, bob, carol, dave = 1, 2, 3, 4
    bodies: list[EventBody] = [
        Followed(alice, bob),
        Followed(alice, carol),
        Unfollowed(alice, bob),
        Followed(dave, bob),
    ]
    graph = await another(tombstones_live=timedelta(0))
    old = await graph.commit(bodies)
    for owner, key in ((alice, "following"), (bob, "followers")):
        assert await raw.zcard(f"{key}:{{{owner}}}:gone") == 1
    await graph.worker().drain()
    await archive_log(graph)
    [first, _] = await graph.commit([Unfollowed(alice, carol), Unfollowed(dave, bob)])

    assert await raw.zrange(f"following:{{{alice}}}:gone", 0, -1, withscores=True) == [
        ("f", old[2].number),
        (str(carol), first.number),
    ]
    await graph.projections.project([old[0], *old], Mode.WORKER)
    assert await sides(graph, alice, bob) == ([], [])
    assert await sides(graph, alice, carol) == ([], [])
    [again] = await graph.commit([Followed(alice, bob)])
    assert await sides(graph, alice, bob) == ([again.number], [again.number])


async def test_young_tombstones_stay(graph: Graph, raw: Redis) -> None:
    """They stay for a day, even when everything is projected."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    await graph.follows.unfollow(alice, [bob])
    await graph.worker().drain()
    await graph.follows.unfollow(alice, [carol])

    assert await raw.zrange(f"following:{{{alice}}}:gone", 0, -1) == [str(bob), str(carol)]


async def test_a_follow_removes_only_the_followers_home_cache(graph: Graph, raw: Redis) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await posts(graph, bob, "hi")
    for user in (alice, bob):
        await home(graph, user)
    await graph.timelines.wait_for_rebuilds()

    await befriend(graph, alice, bob)

    assert await raw.exists(f"home:{{{alice}}}") == 0
    assert await raw.exists(f"home:{{{bob}}}") == 1


@pytest.mark.parametrize("store_says", ["nothing", "the opposite"])
async def test_the_answer_to_the_last_request_holds_although_an_earlier_one_was_not_projected(
    graph: Graph, store_says: str
) -> None:
    """A request commits and then fails. The client does the opposite, and the worker projects both later."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    if store_says == "the opposite":
        await befriend(graph, alice, bob, carol)
        await graph.follows.unfollow(alice, [bob])
    else:
        await befriend(graph, alice, carol)
    await graph.worker().drain()
    await append_events(graph, [Followed(alice, bob), Unfollowed(alice, carol)])

    assert await graph.follows.unfollow(alice, [bob]) == [Outcome.UNFOLLOWED]
    assert await graph.follows.follow(alice, [carol]) == [Outcome.FOLLOWED]
    await graph.worker().drain()

    assert list(await graph.follows.followed_by(alice)) == [carol]


async def test_a_request_that_changes_nothing_appends_nothing(graph: Graph) -> None:
    """This holds even while events of other follows are not projected. The check takes 1 more round trip."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    others: list[EventBody] = [Followed(carol, bob), Unfollowed(carol, alice), Unfollowed(alice, carol)]
    last = (await append_events(graph, others))[-1].number

    async with counted(graph) as cost:
        assert await graph.follows.follow(alice, [bob]) == [Outcome.ALREADY_FOLLOWING]
        assert await graph.follows.unfollow(alice, [carol]) == [Outcome.NOT_FOLLOWING]

    assert await graph.log.last() == last
    assert cost.round_trips == 4


async def test_an_event_that_is_projected_between_two_reads_counts(graph: Graph, another: Open) -> None:
    """On a cluster, the watermark may be read after the follows. The request then reads the follows again."""
    reading = await another()
    alice, bob = await people(graph, "alice", "bob")
    await graph.worker().drain()
    await append_events(graph, [Followed(alice, bob)])
    stop = Stop(reading.store, sends("GET", keys.WATERMARK), after=True)
    unfollowing = asyncio.create_task(reading.follows.unfollow(alice, [bob]))
    await stop.reached.wait()
    await graph.worker().drain()
    stop.resume()

    assert await unfollowing == [Outcome.UNFOLLOWED]
    assert await graph.follows.followed_by(alice) == {}


async def test_a_request_that_changes_nothing_appends_nothing_behind_a_backlog(graph: Graph) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    for _ in range(6):
        await append_events(graph, [ProfileChanged(carol, "c")] * 100)
    last = await graph.log.last()

    async with counted(graph) as cost:
        assert await graph.follows.follow(alice, [bob]) == [Outcome.ALREADY_FOLLOWING]
    assert cost.round_trips == 3
    assert await graph.follows.unfollow(alice, [carol]) == [Outcome.NOT_FOLLOWING]

    assert await graph.log.last() == last


async def test_with_too_many_unprojected_events_every_request_is_appended(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply is that of the store. A viewer at the limit is not refused, because the number of follows stays."""
    monkeypatch.setattr("graph.log.log.READ_CHUNK", 1)
    monkeypatch.setattr("graph.log.log.MOST_UNPROJECTED", 2)
    monkeypatch.setattr(graph.follows, "_max_following", 1)
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)

    assert await graph.follows.follow(alice, [bob]) == [Outcome.ALREADY_FOLLOWING]
    assert await graph.follows.unfollow(alice, [carol]) == [Outcome.NOT_FOLLOWING]

    assert [event.body async for event in graph.log.replay(carol, MAX_NUMBER)] == [
        Followed(alice, bob),
        Followed(alice, bob, renewed=True),
        Unfollowed(alice, carol),
    ]
    await graph.worker().drain()
    assert list(await graph.follows.followed_by(alice)) == [bob]
