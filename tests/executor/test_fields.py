"""Field declarations in ordinary execution: batching, deduplication, arguments, errors and subscriptions."""

import asyncio
import enum
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
import strawberry
from graphql import GraphQLObjectType

from executor.batches import Batches
from executor.cache_keys import freeze
from executor.fields import batched, live, single


class Context:
    """A context that counts look-ups. `forget` replaces the dataloaders."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Any], dict[str, Any]]] = []
        self.batches = Batches()
        self.forgotten = 0
        self.closed = False

    def forget(self) -> None:
        self.batches = Batches()
        self.forgotten += 1


@dataclass(frozen=True)
class Book:
    number: int
    words: list[str] = field(default_factory=list, compare=False)


@dataclass
class Shelf:
    books: list[Book]


class Order(enum.Enum):
    UP = "up"
    DOWN = "down"


@strawberry.input
class Filter:
    prefixes: list[str] | None = None
    order: Order | None = None


async def titles(books: Sequence[Book], context: Context) -> list[str | Exception]:
    context.calls.append(("titles", list(books), {}))
    await asyncio.sleep(0)
    return [f"book {book.number}" if book.number else LookupError("untitled") for book in books]


async def pages(
    books: Sequence[Book],
    context: Context,
    *,
    first: Annotated[int | None, strawberry.argument(description="How many.")] = None,
    only: Filter | None = None,
    step: int = 1,
) -> list[str]:
    arguments = {"first": first, "only": only, "step": step}
    context.calls.append(("pages", list(books), arguments))
    return [f"{book.number}:{first}:{step}" for book in books]


def spines(books: Sequence[Book], context: Context) -> list[str | Exception]:
    context.calls.append(("spines", list(books), {}))
    return [f"|{book.number}|" if book.number else LookupError("no spine") for book in books]


async def sizes(shelves: Sequence[Shelf], context: Context) -> list[int]:
    context.calls.append(("sizes", list(shelves), {}))
    return [len(shelf.books) for shelf in shelves]


async def greetings(roots: Sequence[None], context: Context) -> list[str]:
    context.calls.append(("greetings", list(roots), {}))
    return ["hello" for _ in roots]


async def shelf(context: Context, *, numbers: list[int]) -> Shelf:
    return Shelf([Book(number) for number in numbers])


def shelves(context: Context) -> list[Shelf]:
    one = Shelf([Book(1)])
    return [one, one, Shelf([Book(1)])]


async def arrivals(context: Context, *, until: int) -> AsyncGenerator[Book, None]:
    try:
        for number in range(1, until + 1):
            yield Book(number)
    finally:
        context.closed = True


@strawberry.type(name="Book")
class BookType:
    number: int
    title: str | None = batched(titles, description="Its title.")
    pages: str = batched(pages, description="Some pages.")
    spine: str | None = batched(spines, description="Its spine.")


@strawberry.type(name="Shelf")
class ShelfType:
    books: list[BookType]
    size: int = batched(sizes, description="How many books.")


@strawberry.type
class Query:
    shelf: ShelfType = single(shelf, description="One shelf.")
    shelves: list[ShelfType] = single(shelves, description="Three shelves.")
    greeting: str = batched(greetings, description="A greeting.")


@strawberry.type
class Subscription:
    arrivals: BookType = live(arrivals, description="New books.")


schema = strawberry.Schema(query=Query, subscription=Subscription)


async def run(document: str, context: Context, **variables: object) -> Any:
    return await schema.execute(document, context_value=context, variable_values=variables)


async def test_one_call_for_all_parents_each_once() -> None:
    """A layer is one call, and equal parents are requested once."""
    context = Context()
    result = await run("{ shelf(numbers: [3, 1, 3]) { books { title } } }", context)
    assert result.data == {"shelf": {"books": [{"title": f"book {n}"} for n in (3, 1, 3)]}}
    assert context.calls == [("titles", [Book(3), Book(1)], {})]


async def test_unhashable_parents_are_compared_by_identity() -> None:
    """The same unhashable parent is requested once; another, equal object is requested separately."""
    context = Context()
    result = await run("{ shelves { size } }", context)
    assert result.data == {"shelves": [{"size": 1}] * 3}
    assert [len(parents) for _, parents, _ in context.calls] == [2]


async def test_root_parents_can_be_batched() -> None:
    """The parent of a batched root field is None."""
    context = Context()
    assert (await run("{ greeting again: greeting }", context)).data == {"greeting": "hello", "again": "hello"}
    assert context.calls == [("greetings", [None], {})]


async def test_an_exception_as_a_value_fails_its_parent_only() -> None:
    """An exception among the values is an error with its path; other parents keep their data."""
    for name in ("title", "spine"):
        result = await run(f"{{ shelf(numbers: [0, 1]) {{ books {{ {name} }} }} }}", Context())
        assert result.data["shelf"]["books"][0] == {name: None}
        assert result.data["shelf"]["books"][1][name]
        assert [error.path for error in result.errors] == [["shelf", "books", 0, name]]
        assert isinstance(result.errors[0].original_error, LookupError)


async def test_a_synchronous_resolver_is_called_directly() -> None:
    """A synchronous resolver is called without a dataloader."""
    context = Context()
    result = await run("{ shelf(numbers: [1, 2]) { books { spine } } }", context)
    assert result.data == {"shelf": {"books": [{"spine": "|1|"}, {"spine": "|2|"}]}}


async def test_omitted_arguments_are_not_passed() -> None:
    """Omitted arguments have the resolver's defaults; null is passed as None."""
    context = Context()
    await run("{ shelf(numbers: [1]) { books { pages } } }", context)
    await run("{ shelf(numbers: [1]) { books { pages(first: null, step: 3) } } }", context)
    assert [arguments for _, _, arguments in context.calls] == [
        {"first": None, "only": None, "step": 1},
        {"first": None, "only": None, "step": 3},
    ]


async def test_one_call_for_each_set_of_arguments() -> None:
    """Equal arguments share a call, including input objects and lists; different ones do not."""
    context = Context()
    await run(
        """{ shelf(numbers: [1, 2]) { books {
            a: pages(first: 1, only: {prefixes: ["x"], order: UP})
            b: pages(only: {order: UP, prefixes: ["x"]}, first: 1)
            c: pages(first: 1, only: {prefixes: ["y"], order: UP})
        } } }""",
        context,
    )
    assert [len(parents) for _, parents, _ in context.calls] == [2, 2]


async def test_a_failed_call_fails_all_its_parents() -> None:
    """A resolver that raises fails all parents of the call."""

    async def broken(parents: Sequence[object], context: Context) -> list[object]:
        raise OSError("down")

    context = Context()
    waiters = [context.batches.load(broken, n, context, {}) for n in (1, 2)]
    answers = await asyncio.gather(*waiters, return_exceptions=True)
    assert [str(answer) for answer in answers] == ["down", "down"]


async def test_a_cancelled_operation_does_not_affect_another() -> None:
    """Cancelling one of two operations on a context does not affect values that both wait for."""
    context, gate = Context(), asyncio.Event()

    async def slow(parents: Sequence[int], context: Context) -> list[int]:
        await gate.wait()
        return list(parents)

    async def ask() -> int:
        return int(await context.batches.load(slow, 1, context, {}))

    first, second = asyncio.create_task(ask()), asyncio.create_task(ask())
    await asyncio.sleep(0.01)
    first.cancel()
    gate.set()
    assert await second == 1


async def test_events_are_resolved_with_current_values_and_the_generator_is_closed() -> None:
    """Cached values are dropped after each event, and the generator is closed when the client unsubscribes."""
    context = Context()
    stream = await schema.subscribe("subscription { arrivals(until: 5) { title } }", context_value=context)
    seen = []
    async for result in stream:
        seen.append(result.data)
        if len(seen) == 2:
            break
    await stream.aclose()
    assert seen == [{"arrivals": {"title": "book 1"}}, {"arrivals": {"title": "book 2"}}]
    assert context.forgotten == 1
    assert context.closed


def test_the_declaration_can_be_read_from_the_schema() -> None:
    """The resolver is in the field's metadata."""
    metadata = {
        (name, field_name): strawberry_field.metadata
        for name in ("Query", "Book", "Subscription")
        for field_name, strawberry_field in fields_of(name)
    }
    assert metadata["Book", "title"] == {"batch": titles}
    assert metadata["Query", "shelf"] == {"single": shelf}
    assert metadata["Subscription", "arrivals"] == {"live": arrivals}


def fields_of(name: str) -> list[tuple[str, Any]]:
    graphql_type = schema._schema.type_map[name]
    assert isinstance(graphql_type, GraphQLObjectType)
    return [(key, value.extensions["strawberry-definition"]) for key, value in graphql_type.fields.items()]


def test_the_schema_shows_the_resolvers_arguments() -> None:
    """Arguments have descriptions and defaults; the default None is not shown."""
    graphql_type = schema._schema.type_map["Book"]
    assert isinstance(graphql_type, GraphQLObjectType)
    arguments = graphql_type.fields["pages"].args
    assert {name: str(argument.type) for name, argument in arguments.items()} == {
        "first": "Int",
        "only": "Filter",
        "step": "Int!",
    }
    assert arguments["first"].description == "How many."
    assert "first: Int\n" in schema.as_str()
    assert "step: Int! = 1" in schema.as_str()


def test_arguments_must_be_keyword_only() -> None:
    """A resolver with positional arguments is an error."""

    async def wrong(parents: Sequence[object], context: Context, first: int) -> list[object]:
        return list(parents)

    with pytest.raises(TypeError, match="first"):
        batched(wrong, description="Wrong.")


def test_arguments_of_different_types_have_different_keys() -> None:
    """1, 1.0 and True are equal in Python, but different arguments."""
    values = [1, 1.0, True, "1", None, [1], [1, 2], {"a": 1}, {"a": [1]}, Filter(), Filter(order=Order.UP), Order.UP]
    keys = [freeze(value) for value in values]
    assert len(set(keys)) == len(values)
    assert freeze({"b": [1], "a": Filter(prefixes=["x"])}) == freeze({"a": Filter(prefixes=["x"]), "b": [1]})


def test_an_unhashable_value_is_compared_by_identity() -> None:
    """An unhashable value is equal only to itself."""
    one, other = bytearray(b"x"), bytearray(b"x")
    assert freeze(one) == freeze(one)
    assert freeze(one) != freeze(other)


async def test_a_batch_resolver_can_return_any_iterable() -> None:
    """The values need not be a list."""

    async def doubled(parents: Sequence[Any], context: Any) -> Any:
        return (2 * parent for parent in parents)

    batches = Batches()
    assert await asyncio.gather(*(batches.load(doubled, n, None, {}) for n in (1, 2))) == [2, 4]
