"""Operations whose results are the same in every context, and the keys of equal operations."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
import strawberry
from graphql import parse

from executor import Executor, Operation
from executor.fields import batched, live


def doubled(events: Sequence[Any], context: Any, *, by: int = 2) -> list[int]:
    """Return the sizes of events."""
    return [event.size * by for event in events]


async def ticks(context: Any, *, after: int = 0) -> AsyncGenerator[Any, None]:
    """Yield nothing."""
    if after < 0:
        yield after


@strawberry.type
class Event:
    """An event."""

    size: int
    own: int = batched(doubled, description="A field that may depend on the context.")
    double: int = batched(doubled, independent=True, description="A field that does not.")

    @strawberry.field
    def ordinary(self) -> int:
        """Return the size."""
        return self.size


@strawberry.type
class Query:
    """The root of queries."""

    size: int = 1


@strawberry.type
class Subscription:
    """The root of subscriptions."""

    ticks: Event = live(ticks, description="Events.")


EXECUTOR = Executor(strawberry.Schema(Query, subscription=Subscription)._schema)


def prepared(text: str, **variables: int) -> Operation:
    """Return an operation."""
    operation = EXECUTOR.prepare(DOCUMENTS.setdefault(text, parse(text)), variables)
    assert isinstance(operation, Operation)
    return operation


DOCUMENTS: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("fields", "independent"),
    [("size", True), ("size double", True), ("__typename", True), ("size own", False), ("size ordinary", False)],
)
def test_attributes_and_declared_fields_are_independent(fields: str, independent: bool) -> None:
    assert prepared(f"subscription {{ ticks {{ {fields} }} }}").is_independent == independent


def test_a_query_is_not_independent() -> None:
    """Only subscriptions can be independent."""
    assert not prepared("{ size }").is_independent


def test_equal_operations_have_equal_keys() -> None:
    """The arguments of the root field do not count, but those of fields below it do."""
    text = "subscription ($after: Int, $by: Int = 2) { ticks(after: $after) { double(by: $by) } }"
    keys = [prepared(text, **given).key for given in ({}, {"after": 1}, {"by": 2}, {"by": 3})]
    assert [key == keys[0] for key in keys] == [True, True, True, False]
    assert prepared(text.replace("double", "size: double")).key != keys[0]
