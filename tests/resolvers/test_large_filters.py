"""The largest filters of subscriptions: the event loop keeps running while they are checked."""

import asyncio

import pytest
import strawberry

from graph.feed import filters
from graph.feed.slices import in_slices
from resolvers import ids
from resolvers.errors import BadInput
from resolvers.inputs import EventFilter
from resolvers.subscriptions import _building


def filter_of(users: list[str], keywords: list[str] | None = None) -> EventFilter:
    """Return a filter as a client sends it."""
    given_ids = [strawberry.ID(user) for user in users]
    return EventFilter(users=given_ids, keywords=keywords, within=None, sample=None, firehose=None, kinds=None)


async def test_a_large_filter_is_checked_in_slices() -> None:
    """Other work runs between two slices."""
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
    assert turns >= filters.MAX_KEYWORDS // filters.KEYWORDS_AT_ONCE - 1


async def test_the_first_bad_id_of_a_large_filter_is_named() -> None:
    users = [*ids.encode_all(ids.Kind.USER, range(1, 9)), "first", "second"]
    with pytest.raises(BadInput, match="The entry 'first' of 'users'"):
        await in_slices(_building(filter_of(users)))
