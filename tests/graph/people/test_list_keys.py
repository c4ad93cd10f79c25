"""Idempotency keys of lists: a request that is repeated creates one list."""

import asyncio

import pytest

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.people.lists import MAX_LISTS
from tests.support.graph_worlds import PASSWORD, Open, people
from tests.support.stores import Stop, runs


async def refusal(work: object) -> list[tuple[ProblemCode, tuple[str, ...]]]:
    """Return the codes and fields of a refused request."""
    with pytest.raises(Rejected) as rejected:
        await work  # type: ignore[misc]  # a coroutine
    return [(problem.code, problem.field) for problem in rejected.value.problems]


async def test_a_key_creates_one_list(graph: Graph, another: Open) -> None:
    """This holds for concurrent requests of two processes. Without keys, each request creates a list."""
    alice, bob = await people(graph, "alice", "bob")
    instances = [graph, await another()]

    found = await asyncio.gather(
        *(instances[n % 2].lists.create(alice, "friends", [bob], idempotency_key="k") for n in range(20))
    )

    assert len(set(found)) == 1
    assert await graph.lists.of_user(alice) == [found[0]]
    others = [await graph.lists.create(alice, "friends", [bob]) for _ in range(2)]
    assert len({*others, found[0]}) == 3


async def test_a_key_belongs_to_the_name_and_the_members(graph: Graph) -> None:
    """The members are a set: their order, and users who are named twice, do not matter."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    first = await graph.lists.create(alice, "friends", [bob, carol], idempotency_key="k")

    assert await graph.lists.create(alice, " friends ", [carol, bob, carol], idempotency_key="k") == first
    for name, members in (("others", [bob, carol]), ("friends", [bob]), ("friends", [])):
        repeated = graph.lists.create(alice, name, members, idempotency_key="k")
        assert await refusal(repeated) == [(ProblemCode.IDEMPOTENCY_MISMATCH, ("idempotencyKey",))]
    assert await graph.lists.of_user(alice) == [first]


async def test_keys_of_two_users_and_of_posts_are_independent(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")

    post = await graph.posts.publish(alice, "friends", idempotency_key="k")
    lists = [await graph.lists.create(user, "friends", idempotency_key="k") for user in (alice, bob)]

    assert [each.owner for each in lists] == [alice, bob]
    assert (await graph.posts.publish(alice, "friends", idempotency_key="k")).id == post.id


async def test_an_invalid_key_is_reported_with_the_other_problems(graph: Graph) -> None:
    [alice] = await people(graph, "alice")

    found = await refusal(graph.lists.create(alice, "", [7], idempotency_key=""))

    invalid = [(ProblemCode.INVALID, ("name",)), (ProblemCode.INVALID, ("idempotencyKey",))]
    assert found == [*invalid, (ProblemCode.NOT_FOUND, ("userIds", "0"))]


async def test_a_repetition_returns_the_list_as_it_is_now(graph: Graph) -> None:
    """The list has its new name, although it lacks the members that it was created with."""
    alice, bob = await people(graph, "alice", "bob")
    first = await graph.lists.create(alice, "friends", [bob], idempotency_key="k")
    await graph.lists.update(alice, first.id, name="others", removed=[bob])

    again = await graph.lists.create(alice, "friends", [bob], idempotency_key="k")

    assert again == first._replace(name="others")
    assert await graph.lists.counts(alice, [first.id]) == [0]


async def test_a_key_of_a_deleted_list_is_not_found(graph: Graph) -> None:
    """A retry does not restore the list."""
    [alice] = await people(graph, "alice")
    first = await graph.lists.create(alice, "friends", idempotency_key="k")
    await graph.lists.delete(alice, first.id)

    repeated = graph.lists.create(alice, "friends", idempotency_key="k")

    assert await refusal(repeated) == [(ProblemCode.NOT_FOUND, ("idempotencyKey",))]
    assert await graph.lists.of_user(alice) == []


async def test_a_repetition_is_answered_although_a_new_list_would_be_refused(graph: Graph) -> None:
    """The list was the last one that the limit allows, and a member has left since."""
    alice, bob = await people(graph, "alice", "bob")
    for number in range(MAX_LISTS - 1):
        await graph.lists.create(alice, f"list {number}")
    last = await graph.lists.create(alice, "last", [bob], idempotency_key="k")
    await graph.account_deletion.delete(bob, PASSWORD)

    assert await graph.lists.create(alice, "last", [bob], idempotency_key="k") == last
    other = graph.lists.create(alice, "last", [alice], idempotency_key="k")
    assert await refusal(other) == [(ProblemCode.IDEMPOTENCY_MISMATCH, ("idempotencyKey",))]
    assert {code for code, _ in await refusal(graph.lists.create(alice, "last", [bob], idempotency_key="new"))} == {
        ProblemCode.NOT_FOUND,
        ProblemCode.TOO_MANY,
    }


async def test_a_retry_after_a_crash_completes_the_list(graph: Graph, another: Open) -> None:
    """No worker is needed if the crash came after the commit."""
    alice, bob = await people(graph, "alice", "bob")
    dying = await another()
    stop = Stop(dying.store, runs("change_list"))
    request = asyncio.create_task(dying.lists.create(alice, "friends", [bob], idempotency_key="k"))
    await stop.reached.wait()
    assert await graph.lists.of_user(alice) == []
    request.cancel()

    created = await graph.lists.create(alice, "friends", [bob], idempotency_key="k")

    assert await graph.lists.of_user(alice) == [created]
    assert await graph.lists.member_ids(alice, created.id) == [bob]
    await graph.worker().drain()
    assert await graph.lists.of_user(alice) == [created]
