"""The context: what is read once, what is forgotten, and which errors clients may see."""

import asyncio

import pytest

from graph import Graph
from graph.errors import BadPaging, NumbersExhausted, Rejected, SessionOver, StoreUnavailable
from resolvers.context import Context
from resolvers.errors import BadInput, Unauthenticated, code_of
from schema import schema
from tests.resolvers.conftest import World, errors_of, issue_token, user_id


async def test_the_drained_mark_is_read_once(world: World) -> None:
    """All pages of a request share one mark, read when the first of them asks."""
    context = Context(world.graph, None, issue_token)
    trips = world.graph.store.round_trips
    assert await asyncio.gather(context.watermark(), context.watermark()) == [0, 0]
    assert await context.watermark() == 0
    assert world.graph.store.round_trips == trips + 1


async def test_the_server_may_begin_to_read_the_drained_mark(world: World) -> None:
    """A mark that is known, or on its way, costs nothing more."""
    trips = world.graph.store.round_trips
    coming = asyncio.get_running_loop().create_future()
    context = Context(world.graph, None, issue_token, coming)
    coming.set_result(7)
    assert await context.watermark() == 7
    assert await context.watermark() == 7
    assert world.graph.store.round_trips == trips


async def test_a_cancelled_reader_of_the_mark_leaves_the_others_alone(world: World) -> None:
    """Two fields wait for the mark; one gives up."""
    coming = asyncio.get_running_loop().create_future()
    context = Context(world.graph, None, issue_token, coming)
    one, other = asyncio.ensure_future(context.watermark()), asyncio.ensure_future(context.watermark())
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    coming.set_result(7)
    assert await other == 7


async def test_forgetting_reads_everything_again(world: World) -> None:
    """After `forget` neither people nor the mark come from memory."""
    [alice] = await world.people("alice")
    context = await world.context(alice)
    await context.loaders.users.load(alice.id)
    await context.watermark()
    await world.graph.users.update_profile(alice.id, name="Alicia")
    await world.graph.worker().drain()
    context.forget()
    found = await context.loaders.users.load(alice.id)
    assert found is not None
    assert found.name == "Alicia"
    assert await context.watermark() > 0


async def test_the_live_cursor_is_older_than_the_page(world: World) -> None:
    """The mark is read before the page: a post that is projected in between is not past the cursor."""
    [alice] = await world.people("alice")
    document = "query ($id: ID!) { node(id: $id) { ... on User { timeline { posts(first: 1) { liveCursor } } } } }"
    before = await world.ask(document, id=user_id(alice))
    await world.post(alice, "hello")
    await world.graph.worker().drain()
    after = await world.ask(document, id=user_id(alice))
    cursors = [answer.data["node"]["timeline"]["posts"]["liveCursor"] for answer in (before, after)]
    assert cursors[0] != cursors[1]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("x"), "BAD_USER_INPUT"),
        (BadPaging("x"), "BAD_USER_INPUT"),
        (Unauthenticated(), "UNAUTHENTICATED"),
        (SessionOver("x"), "UNAUTHENTICATED"),
        (StoreUnavailable("x"), "STORE_UNAVAILABLE"),
        (NumbersExhausted("x"), None),
        (Rejected(), None),
        (KeyError("secret"), None),
        (None, None),
    ],
)
def test_codes(error: Exception | None, code: str | None) -> None:
    """What clients may see has a code; all else has none, and is masked."""
    assert code_of(error) == code


async def test_a_store_that_is_down() -> None:
    """Every field that needs the store fails with its code; what needs nothing is answered."""
    graph = await Graph.open("unix:///nowhere/store.sock")
    try:
        result = await schema.execute(
            '{ __typename user(by: {login: "alice"}) { id } }', context_value=Context(graph, None, issue_token)
        )
        assert result.data == {"__typename": "Query", "user": None}
        assert errors_of(result.errors) == [(("user",), "STORE_UNAVAILABLE")]
    finally:
        await graph.close()
