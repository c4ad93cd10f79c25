"""The request context, and the errors that clients see."""

import pytest

from graph.errors import (
    ArchiverStopped,
    BadPaging,
    ClockAhead,
    NotDurable,
    Overloaded,
    Rejected,
    SessionOver,
    StoreReplaced,
    StoreUnavailable,
)
from graph.model import Timeline, TimelineKind
from graph.paging import CursorKind, Window, encode_cursor
from resolvers.context import Context
from resolvers.errors import BadInput, Unauthenticated, code_of
from resolvers.timelines import live_cursors, timeline_pages
from schema import schema
from tests.resolvers.conftest import World, errors_of, issue_token, user_id
from tests.support.graphs import open_graph


async def test_forget_drops_loaded_values(world: World) -> None:
    """Users are read again."""
    [alice] = await world.users("alice")
    context = await world.context(alice)
    await context.loaders.users.load(alice.id)
    await world.graph.users.update_profile(alice.id, name="Alicia")
    await world.graph.worker().drain()
    context.forget()
    found = await context.loaders.users.load(alice.id)
    assert found is not None
    assert found.name == "Alicia"


async def test_the_live_cursor_is_the_watermark_from_before_the_page(world: World) -> None:
    """The page after a drain has a different live cursor."""
    [alice] = await world.users("alice")
    document = "query ($id: ID!) { node(id: $id) { ... on User { timeline { liveCursor } } } }"
    before = await world.ask(document, id=user_id(alice))
    await world.post(alice, "hello")
    await world.graph.worker().drain()
    after = await world.ask(document, id=user_id(alice))
    cursors = [answer.data["node"]["timeline"]["liveCursor"] for answer in (before, after)]
    assert cursors[0] != cursors[1]


async def test_a_page_that_is_read_once_has_one_live_cursor(world: World) -> None:
    """A later field gets the page that was read first: with a newer cursor, a stream would skip posts."""
    [alice] = await world.users("alice")
    context = await world.context(alice)
    timeline, window = [Timeline(alice.id, TimelineKind.USER)], Window.of(CursorKind.POST, first=10)
    await world.post(alice, "one")
    await world.graph.worker().drain()
    await world.graph.log.watermark()
    first = await timeline_pages(timeline, context, window)
    before = await live_cursors(timeline, context)
    await world.post(alice, "two")
    await world.graph.worker().drain()
    newer = await world.graph.log.watermark()

    assert await timeline_pages(timeline, context, window) == first
    assert await live_cursors(timeline, context) == before
    context.forget()
    assert await live_cursors(timeline, context) == [encode_cursor(CursorKind.LOG, newer)]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("x"), "BAD_USER_INPUT"),
        (BadPaging("x"), "BAD_USER_INPUT"),
        (Unauthenticated(), "UNAUTHENTICATED"),
        (SessionOver("x"), "UNAUTHENTICATED"),
        (StoreUnavailable("x"), "STORE_UNAVAILABLE"),
        (NotDurable("x"), "NOT_DURABLE"),
        (StoreReplaced(), "STORE_UNAVAILABLE"),
        (Overloaded("x"), "OVERLOADED"),
        (ClockAhead("x"), "STORE_UNAVAILABLE"),
        (ArchiverStopped("x"), None),
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
