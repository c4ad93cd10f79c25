"""Appends that are refused: to a store with another binding, and to a full log."""

from collections.abc import Sequence

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import Overloaded, StoreReplaced
from graph.log.events import Blocked, EventBody, Followed, ListChanged, PostDeleted, SessionsEnded, Unfollowed
from graph.log.log import IdempotencyKey
from tests.support.graph_worlds import Open, append_events

BINDING = "store-1:archive-1"


async def length(raw: Redis) -> int:
    return int(await raw.xlen(keys.LOG))


async def test_the_expected_binding_is_accepted(graph: Graph, raw: Redis) -> None:
    await raw.set(keys.BINDING, BINDING)

    assert len(await graph.log.append([Followed(1, 2)], binding=BINDING)) == 1


@pytest.mark.parametrize("other", [None, "store-2:archive-1", "store-1:archive-2", ""])
async def test_a_store_with_another_binding_or_none_is_refused(graph: Graph, raw: Redis, other: str | None) -> None:
    """Its rebuild is not complete, or another store has replaced it. Nothing is written."""
    await raw.delete(keys.BINDING)
    if other is not None:
        await raw.set(keys.BINDING, other)

    with pytest.raises(StoreReplaced, match="has been replaced"):
        await graph.log.append([Followed(1, 2)], IdempotencyKey(1, "k"), binding=BINDING)

    assert await length(raw) == 0
    assert await raw.exists(keys.idempotency(1, "k")) == 0


async def test_a_repetition_is_refused_after_the_store_was_replaced(graph: Graph, raw: Redis) -> None:
    """The process must not report an event that the new store may lack."""
    await raw.set(keys.BINDING, BINDING)
    await graph.log.append([Followed(1, 2)], IdempotencyKey(1, "k"), binding=BINDING)
    await raw.set(keys.BINDING, "store-2:archive-1")

    with pytest.raises(StoreReplaced):
        await graph.log.append([Followed(1, 2)], IdempotencyKey(1, "k"), binding=BINDING)


async def test_a_tenth_of_the_log_is_reserved(another: Open, raw: Redis) -> None:
    """Ordinary events are accepted up to 90% of the limit."""
    graph = await another(log_limit=20)
    await append_events(graph, [Followed(1, n) for n in range(17)])

    with pytest.raises(Overloaded, match="waiting to be archived"):
        await append_events(graph, [Followed(1, 18), Followed(1, 19)], IdempotencyKey(1, "k"))
    assert await length(raw) == 17
    assert await raw.exists(keys.idempotency(1, "k")) == 0

    await append_events(graph, [Followed(1, 18)])
    with pytest.raises(Overloaded):
        await append_events(graph, [Followed(1, 19)])


@pytest.mark.parametrize("body", [PostDeleted(1, 2), Unfollowed(1, 2), Blocked(1, 2), SessionsEnded(1, ["a"])])
async def test_the_reserve_is_for_events_that_withdraw_something(another: Open, body: EventBody) -> None:
    """They are accepted up to the limit, but not together with other events."""
    graph = await another(log_limit=20)
    await append_events(graph, [Followed(1, n) for n in range(18)])

    with pytest.raises(Overloaded):
        await append_events(graph, [body, Followed(1, 2)])
    await append_events(graph, [body, body])

    with pytest.raises(Overloaded):
        await append_events(graph, [body])


async def test_the_reserve_is_for_erasures(another: Open) -> None:
    """All events of an erasure withdraw something, including changes of lists."""
    graph = await another(log_limit=20)
    await append_events(graph, [Followed(1, n) for n in range(18)])
    body = ListChanged(1, 2, removed=(3,))

    with pytest.raises(Overloaded):
        await append_events(graph, [body])
    await graph.log.append([body, Unfollowed(1, 2)], binding=await graph.binding.token(), erasing=True)


@pytest.mark.parametrize("bodies", [[Followed(1, 18)], [Unfollowed(1, 2)]])
async def test_a_repetition_is_answered_although_the_log_is_full(another: Open, bodies: Sequence[EventBody]) -> None:
    graph = await another(log_limit=20)
    first = await append_events(graph, bodies, IdempotencyKey(1, "k"))
    await append_events(graph, [Unfollowed(1, n) for n in range(19)])

    assert await append_events(graph, bodies, IdempotencyKey(1, "k")) == first
