"""The request context, and the errors that clients see."""

import asyncio

import pytest

from graph.errors import BadPaging, NumbersExhausted, Overloaded, Rejected, SessionOver, StoreReplaced, StoreUnavailable
from resolvers.context import Context
from resolvers.errors import BadInput, Unauthenticated, code_of
from schema import schema
from tests.resolvers.conftest import World, errors_of, issue_token, user_id
from tests.support.graphs import open_graph


async def test_the_watermark_is_read_once(world: World) -> None:
    """All pages of a request share one watermark."""
    context = Context(world.graph, None, issue_token)
    trips = world.graph.store.round_trips
    assert list(await asyncio.gather(context.watermark(), context.watermark())) == [0, 0]
    assert await context.watermark() == 0
    assert world.graph.store.round_trips == trips + 1


async def test_the_server_can_pass_the_watermark(world: World) -> None:
    """It then takes no round trip."""
    trips = world.graph.store.round_trips
    pending = asyncio.get_running_loop().create_future()
    context = Context(world.graph, None, issue_token, pending)
    pending.set_result(7)
    assert await context.watermark() == 7
    assert await context.watermark() == 7
    assert world.graph.store.round_trips == trips


async def test_cancelling_one_reader_of_the_watermark_does_not_affect_others(world: World) -> None:
    pending = asyncio.get_running_loop().create_future()
    context = Context(world.graph, None, issue_token, pending)
    one, other = asyncio.ensure_future(context.watermark()), asyncio.ensure_future(context.watermark())
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    pending.set_result(7)
    assert await other == 7


async def test_forget_drops_loaded_values(world: World) -> None:
    """Users and the watermark are read again."""
    [alice] = await world.users("alice")
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
    """A post that is projected between reading the watermark and the page is still after the cursor."""
    [alice] = await world.users("alice")
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
        (StoreReplaced(), "STORE_UNAVAILABLE"),
        (Overloaded("x"), "OVERLOADED"),
        (NumbersExhausted("x"), None),
        (Rejected(), None),
        (KeyError("secret"), None),
        (None, None),
    ],
)
def test_only_errors_that_clients_may_see_have_a_code(error: Exception | None, code: str | None) -> None:
    assert code_of(error) == code


async def test_an_unavailable_store_fails_only_the_fields_that_need_it() -> None:
    graph = await open_graph("unix:///nowhere/store.sock")
    try:
        result = await schema.execute(
            '{ __typename user(by: {login: "alice"}) { id } }', context_value=Context(graph, None, issue_token)
        )
        assert result.data == {"__typename": "Query", "user": None}
        assert errors_of(result.errors) == [(("user",), "STORE_UNAVAILABLE")]
    finally:
        await graph.close()
