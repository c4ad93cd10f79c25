"""Rows of the store, and the records built from them."""

import pytest

from graph import Graph, keys
from graph.archive.event_rows import event_row
from graph.archive.rows import post_of
from graph.log.events import PostPublished
from graph.model import MAX_NUMBER, Counts, Post
from graph.projections.mode import Mode
from graph.records import as_post, as_published, published_post, split_posts
from graph.store.commands import script
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import append_events


@pytest.mark.parametrize(("latitude", "longitude"), [("52.5", None), (None, "13.4")])
def test_a_row_with_one_coordinate_has_no_location(latitude: str | None, longitude: str | None) -> None:
    """Such a row is damaged: `fanline repair` restores it, and it can be read until then."""
    row = ["2", "text", None, latitude, longitude, None, None, None, None, None, None]

    assert as_post(1, row) == Post(1, 2, "text")
    assert split_posts([1], [row]) == ({1: Post(1, 2, "text")}, [], [], {})


def test_rows_of_archived_posts_have_counts_only() -> None:
    rows = [[None] * 6 + counts + [None] for counts in (["1", *[None] * 3], [None, "2", "3", "40"], [None] * 4)]

    assert split_posts([7, 8, 9], rows) == ({}, [], [7, 8, 9], {7: Counts(1), 8: Counts(0, 2, 3, 40)})


def test_damaged_details_do_not_break_a_page() -> None:
    """`fanline repair` restores them, and the post can be read until then."""
    for details in ("[", "3", '{"mentions":3}'):
        assert as_post(1, ["2", "text", None, None, None, details, "4", None, None, None, None]) == Post(
            1, 2, "text", replies=4
        )


PUBLISHED = [
    PostPublished(1, "hi"),
    PostPublished(1, "", "", 0.0, -1e-7),
    PostPublished(MAX_NUMBER, '"\n\u0000𝒳', None, 52.51234567890123, 13.4),
    PostPublished(1, "hi", "web", None, None, 2, 3, MAX_NUMBER, (5, MAX_NUMBER), ({"url": "è", "size": [1, 2.5]}, {})),
    PostPublished(1, "hi", None, None, None, 4, 2, None, (), (), (2, 3), 5, 6, MAX_NUMBER, listed=False),
]


@pytest.mark.parametrize("body", PUBLISHED)
async def test_a_projected_record_holds_its_whole_event(graph: Graph, body: PostPublished) -> None:
    [event] = await append_events(graph, [body])
    await graph.projections.project([event], Mode.REQUEST)

    record = await graph.store.run("HGETALL", keys.post(event.number))

    assert as_published(record) == body


async def test_the_store_the_archive_and_the_log_give_the_same_post(graph: Graph) -> None:
    for body in PUBLISHED:
        [event] = await append_events(graph, [body])
        await graph.projections.project([event], Mode.REQUEST)

        post = published_post(event.number, body)
        assert await graph.posts.get_many(SYSTEM, [event.number]) == [post]
        assert post_of(event_row(event)) == post


async def test_freeing_a_record_keeps_its_counts(graph: Graph) -> None:
    [event] = await append_events(graph, [PostPublished(1, "hi")])
    await graph.projections.project([event], Mode.REQUEST)
    key = keys.post(event.number)
    await graph.store.run("HSET", key, "replies", "2", "likes", "3")

    assert await graph.store.run(*script("free_post").call([key], "")) == 1
    assert await graph.store.run(*script("free_post").call([key], "")) == 0

    assert await graph.store.run("HGETALL", key) == {"replies": "2", "likes": "3"}


@pytest.mark.parametrize("record", [{}, {"deleted": "3"}, {"deleted": "3", "author": "1", "text": "hi"}])
def test_tombstones_and_empty_records_hold_no_event(record: dict[str, str]) -> None:
    assert as_published(record) is None


@pytest.mark.parametrize(
    "damage",
    [
        {"text": None},
        {"author": "x"},
        {"latitude": "x"},
        {"details": "3"},
        {"details": "["},
        {"details": '{"mentions":3}'},
    ],
)
def test_a_damaged_record_raises_value_error(damage: dict[str, str | None]) -> None:
    """The record is not archived as if it were the event."""
    values: dict[str, str | None] = {"id": "7", "author": "1", "text": "hi", **damage}
    record = {name: value for name, value in values.items() if value is not None}

    with pytest.raises(ValueError, match="The record of post 7 is damaged"):
        as_published(record)
