"""Long lists in the variables of a subscription: they are coerced as graphql-core does, and the event loop goes on."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest
import strawberry
from graphql import DocumentNode, GraphQLError, parse
from graphql.execution import Executor
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graph.feed import filters
from graph.feed.slices import in_slices
from resolvers import ids
from resolvers.errors import BadInput
from resolvers.inputs import EventFilter
from resolvers.subscriptions import USERS_AT_ONCE, _building
from schema import schema
from server.operations.variables import LONG, build_executor

DOCUMENTS = [
    parse("subscription ($filter: EventFilter!) { events(filter: $filter) { cursor } }"),
    parse("subscription ($filter: EventFilter = {users: []}) { events(filter: $filter) { cursor } }"),
    parse(
        "subscription A { homeTimeline { cursor } } "
        "subscription B($ids: [ID!]!, $words: [String!], $n: [Int]) "
        "{ events(filter: {users: $ids, keywords: $words}) { cursor } }"
    ),
    parse("subscription ($none: [Missing!]) { events(filter: {}) { cursor } }"),
]
texts = st.sampled_from(["VXNlcjo0Mg", "word", "", "é"])
lists = st.lists(texts, max_size=4) | st.lists(texts | st.none() | st.integers(0, 3) | st.just(0.5), max_size=4)
values = lists | texts | st.none() | st.integers(0, 3) | st.builds(tuple, lists)
filters_given = st.dictionaries(st.sampled_from(["users", "keywords", "sample", "kinds", "within", "x"]), values)
variables_given = st.dictionaries(
    st.sampled_from(["filter", "ids", "words", "n", "none"]), values | filters_given, max_size=5
)


def outcome(built: "Executor[Any] | list[GraphQLError]") -> object:
    """Return what a document is executed with, or the errors."""
    if isinstance(built, list):
        return [error.formatted for error in built]
    return built.variable_values.coerced, {name: source.value for name, source in built.variable_values.sources.items()}


@settings(max_examples=300)
@given(st.sampled_from(DOCUMENTS), variables_given, st.sampled_from([None, "A", "B", "C"]))
@example(DOCUMENTS[0], {"filter": {"users": ["a", "b"], "keywords": ["c"]}}, None)
@example(DOCUMENTS[0], {"filter": {"users": ["a", "b"], "x": 1}}, None)
@example(DOCUMENTS[2], {"ids": ["a", "b"], "words": ["c", "d"], "n": [1, 2]}, "B")
@example(DOCUMENTS[2], {"ids": ["a", None], "words": ["c", "d"]}, "B")
def test_variables_are_coerced_as_graphql_core_does(
    document: DocumentNode, variables: dict[str, Any], operation_name: str | None
) -> None:
    """With the same values, and the same errors."""
    core = Executor.build(schema._schema, document, None, None, variables, operation_name)
    with patch("server.operations.variables.LONG", 1):
        built = build_executor(schema._schema, document, None, variables, operation_name, hide_suggestions=False)
    assert outcome(built) == outcome(core)


def test_graphql_core_does_not_see_long_lists() -> None:
    """And the variables of the request are left as they are."""
    variables = {"filter": {"users": ["a"] * LONG, "keywords": ["b"]}}
    with patch("server.operations.variables.Executor.build", wraps=Executor.build) as build:
        build_executor(schema._schema, DOCUMENTS[0], None, variables, None, hide_suggestions=False)
    assert [call.args[4] for call in build.call_args_list] == [{"filter": {"users": [], "keywords": ["b"]}}]
    assert variables == {"filter": {"users": ["a"] * LONG, "keywords": ["b"]}}


def filter_of(users: list[str], keywords: list[str] | None = None) -> EventFilter:
    """Return the input of a client."""
    given_ids = [strawberry.ID(user) for user in users]
    return EventFilter(users=given_ids, keywords=keywords, within=None, sample=None, firehose=None, kinds=None)


async def test_a_large_filter_is_decoded_in_slices() -> None:
    """Other work goes on between two slices."""
    users = ids.encode_all(ids.Kind.USER, range(1, filters.MAX_USERS + 1))
    keywords = [f"word{number}" for number in range(filters.MAX_KEYWORDS)]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    built = await in_slices(_building(filter_of(users, keywords)))
    counting.cancel()

    assert built == filters.EventFilter.of(users=range(1, filters.MAX_USERS + 1), keywords=keywords)
    assert turns >= filters.MAX_USERS // USERS_AT_ONCE + filters.MAX_KEYWORDS // filters.KEYWORDS_AT_ONCE - 1


async def test_the_first_bad_id_of_a_large_filter_is_named() -> None:
    users = [*ids.encode_all(ids.Kind.USER, range(1, 2 * USERS_AT_ONCE)), "first", "second"]
    with pytest.raises(BadInput, match="The entry 'first' of 'users'"):
        await in_slices(_building(filter_of(users)))
