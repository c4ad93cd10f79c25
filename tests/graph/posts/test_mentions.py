"""Mentions: resolved when a post is published, and stored with the post."""

from collections.abc import Callable

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ProblemCode, Rejected
from graph.log.events import PostPublished
from graph.posts.mentions import users_of_logins
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import Open, archive_log, counted, people


async def mentions_of(graph: Graph, post: int) -> tuple[int, ...]:
    """Return the mentions of a post in the store, and assert that the event has the same mentions."""
    [found] = await graph.posts.get_many(SYSTEM, [post])
    event = await graph.log.get(post)
    assert event is not None
    assert isinstance(event.body, PostPublished)
    assert found is not None
    assert event.body.mentions == found.mentions
    return found.mentions


async def test_mentions_are_stored_as_user_ids(graph: Graph) -> None:
    """Each user is stored once, in the order of the text, and so is the author. Unknown logins are left out."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    text = "＠Carol @bob, @nobody, @BOB @alice bob@carol #bob https://example.org/@bob"
    post = await graph.posts.publish(alice, text)
    assert post.mentions == (carol, bob, alice)
    assert await mentions_of(graph, post.id) == (carol, bob, alice)
    none = await graph.posts.publish(alice, "@nobody")
    assert await mentions_of(graph, none.id) == ()


async def test_mentions_take_at_most_one_round_trip(another: Open) -> None:
    """All logins share one read, which also has the author's blocks."""
    graph, reader = await another(), await another()
    alice, *_ = await people(graph, "alice", "bob", "carol")
    await reader.posts.publish(alice, "first")
    costs = []
    for text in ("none", "@bob @carol", "@bob @carol @nobody", "@bob @carol"):
        async with counted(reader) as cost:
            await reader.posts.publish(alice, text)
        costs.append(cost.round_trips)
    none = costs[0]
    assert costs == [none, none + 1, none + 1, none + 1]


async def test_a_user_who_comes_later_is_not_mentioned(graph: Graph) -> None:
    """A retry of the publication also returns the first post, although the login exists by then."""
    [alice] = await people(graph, "alice")
    first = await graph.posts.publish(alice, "@bob and @alice", idempotency_key="k")
    await people(graph, "bob")
    again = await graph.posts.publish(alice, "@bob and @alice", idempotency_key="k")
    assert again == first
    assert await mentions_of(graph, first.id) == (alice,)


@pytest.mark.parametrize("key", [keys.blocking, keys.blockers])
async def test_a_mention_across_a_block_is_plain_text(graph: Graph, raw: Redis, key: Callable[[int], str]) -> None:
    """This holds in either direction, although the login exists."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await raw.zadd(key(alice), {str(bob): 1})
    assert (await graph.posts.publish(alice, "@bob @carol")).mentions == (carol,)
    assert (await graph.posts.publish(carol, "@bob")).mentions == (bob,)


async def test_mentions_of_archived_posts(another: Open) -> None:
    """Archived posts have the mentions of their events."""
    graph = await another(hot_posts=1, hot_slack=0)
    alice, bob = await people(graph, "alice", "bob")
    ids = [(await graph.posts.publish(alice, f"@bob {n}")).id for n in range(3)]
    await graph.worker().drain()
    await archive_log(graph)
    found = await graph.posts.get_many(SYSTEM, ids)
    assert [post.mentions for post in found if post is not None] == [(bob,)] * 3


@pytest.mark.parametrize("sign", ["#t", "@u_", "http://h"])
async def test_a_text_has_at_most_fifty_entities(graph: Graph, sign: str) -> None:
    """A text with more is refused, and nothing is written."""
    [alice] = await people(graph, "alice")
    text = " ".join(f"{sign}{n}" for n in range(50))
    await graph.posts.publish(alice, text)
    last = await graph.log.last()

    with pytest.raises(Rejected) as rejection:
        await graph.posts.publish(alice, f"{text} #more")

    [problem] = rejection.value.problems
    assert (problem.code, problem.field) == (ProblemCode.TOO_MANY, ("text",))
    assert {param.name: param.value for param in problem.params} == {"max": "50", "length": "51"}
    assert await graph.log.last() == last


@pytest.mark.parametrize(
    ("mentions", "logins", "expected"),
    [
        ((), {}, {}),
        ((1, 2), {1: "ann", 2: "bob"}, {"ann": 1, "bob": 2}),
        ((1, 2), {1: "ann"}, {"ann": 1, "bob": 2}),
        ((2,), {}, {}),
        ((1, 2), {}, {"ann": 1, "bob": 2}),
    ],
)
def test_the_users_of_logins(mentions: tuple[int, ...], logins: dict[int, str], expected: dict[str, int]) -> None:
    """A deleted user gets the login that is left. If several logins are left for fewer users, none is assigned."""
    assert users_of_logins("@ann @bob @Ann", mentions, logins) == expected
