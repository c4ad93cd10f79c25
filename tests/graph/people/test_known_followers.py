"""The followers of a user whom the viewer also follows."""

import random
from collections.abc import Sequence

import pytest

from graph import Graph
from graph.archive.usage import BUDGET, ScanLimit, Usage, used_by
from graph.log.events import EventBody, Followed, Unfollowed
from graph.model import Follow
from graph.paging import CursorKind, Window, encode_cursor
from graph.people.known_followers import KnownFollowers, known_followers
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import befriend, counted, crowd, people


def window(**arguments: int | str) -> Window:
    return Window.of(CursorKind.FOLLOW, **arguments)  # type: ignore[arg-type] # names and values go together


async def known(graph: Graph, viewer: int, users: Sequence[int], window: Window) -> list[KnownFollowers]:
    """Return the known followers of users, and assert that none exceeds the budget."""
    found = await known_followers(graph.store, viewer, users, window, graph.visibility.of(viewer))
    kept = [each for each in found if not isinstance(each, ScanLimit)]
    assert len(kept) == len(users)
    return kept


async def test_only_followers_whom_the_viewer_follows(graph: Graph) -> None:
    """They have the numbers of their own follows, newest first."""
    alice, bob, carol, dave, erin = await people(graph, "alice", "bob", "carol", "dave", "erin")
    await befriend(graph, alice, dave, carol, bob)
    await befriend(graph, carol, bob)
    await befriend(graph, dave, bob)
    await befriend(graph, erin, bob)

    [found] = await known(graph, alice, [bob], window(first=5))

    [all_followers] = await graph.follows.followers(SYSTEM, [bob], window(first=5))
    numbers = {follow.user: follow.number for follow in all_followers.items}
    assert found.page.items == (Follow(dave, numbers[dave]), Follow(carol, numbers[carol]))
    assert found.total == 2


async def test_own_followers_and_unknown_users(graph: Graph) -> None:
    """Of the viewer's own followers, those whom the viewer follows back are returned; for an unknown id, none."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob)
    await befriend(graph, bob, alice)
    await befriend(graph, carol, alice)

    own, unknown = await known(graph, alice, [alice, 7], window(last=5))

    assert [follow.user for follow in own.page.items] == [bob]
    assert (unknown.page.items, unknown.total) == ((), 0)


async def test_it_takes_two_round_trips_for_many_users(graph: Graph) -> None:
    """A read takes only one for a viewer who follows nobody."""
    alice, *others = await crowd(graph, 21)
    await graph.commit([Followed(alice, other) for other in others])
    async with counted(graph) as cost:
        await known(graph, alice, others, window(first=5))
    assert cost.round_trips == 2
    async with counted(graph) as cost:
        assert [known.total for known in await known(graph, others[0], others, window(first=5))] == ([0] * 20)
    assert cost.round_trips == 1


@pytest.mark.parametrize("seed", range(3))
async def test_pages_equal_the_definition(graph: Graph, seed: int) -> None:
    """Both directions, any cursor, and random follows and unfollows give the defined pages."""
    rng = random.Random(seed)  # noqa: S311 - reproducible
    users = await crowd(graph, 12)
    bodies: list[EventBody] = []
    for _ in range(400):
        follower, followee = rng.sample(users, 2)
        follows_now = rng.random() < 0.7
        bodies.append(Followed(follower, followee) if follows_now else Unfollowed(follower, followee))
    follows: dict[tuple[int, int], int] = {}
    for event in await graph.commit(bodies):
        match event.body:
            case Followed(follower, followee):
                follows[follower, followee] = event.number
            case Unfollowed(follower, followee):
                follows.pop((follower, followee), None)
    viewer, user = users[:2]
    expected = sorted(
        (Follow(each, follows[each, user]) for each in users if (each, user) in follows and (viewer, each) in follows),
        key=lambda follow: -follow.number,
    )
    assert expected

    for size in (1, 2, 20):
        for cut in (None, *expected):
            at = {} if cut is None else {"after": encode_cursor(CursorKind.FOLLOW, cut.number)}
            [down] = await known(graph, viewer, [user], window(first=size, **at))
            rest = expected if cut is None else expected[expected.index(cut) + 1 :]
            assert list(down.page.items) == rest[:size]
            assert (down.page.has_next, down.page.has_previous) == (len(rest) > size, cut is not None)
            at = {} if cut is None else {"before": encode_cursor(CursorKind.FOLLOW, cut.number)}
            [up] = await known(graph, viewer, [user], window(last=size, **at))
            rest = expected if cut is None else expected[: expected.index(cut)]
            assert list(up.page.items) == rest[-size:]
            assert (up.page.has_next, up.page.has_previous) == (cut is not None, len(rest) > size)
            assert up.total == down.total == len(expected)


async def test_the_shorter_list_is_compared_and_paid_for(graph: Graph) -> None:
    """Either the user's followers or the users whom the viewer follows are compared, whichever are fewer."""
    alice, bob, *others = await crowd(graph, 30)
    await graph.commit([Followed(alice, other) for other in others])
    await graph.commit([Followed(other, bob) for other in others[:3]])
    for viewer, user, compared in ((alice, bob, 3), (others[0], alice, 0)):
        usage = Usage("alice", anonymous=False)
        with used_by(usage):
            await known(graph, viewer, [user], window(first=5))
        assert usage.items == compared


async def test_an_operation_compares_no_more_than_its_budget_allows(graph: Graph) -> None:
    """The first users have their pages, and the others fail."""
    alice, bob, *others = await crowd(graph, 30)
    await graph.commit([Followed(alice, other) for other in others])
    await graph.commit([Followed(other, bob) for other in others])
    usage = Usage("alice", anonymous=False)
    usage.items = BUDGET - 1
    with used_by(usage):
        found = await known_followers(graph.store, alice, [bob, others[0]], window(first=5), graph.visibility.of(alice))
    assert [type(each) for each in found] == [KnownFollowers, ScanLimit]
