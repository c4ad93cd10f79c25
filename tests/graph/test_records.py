"""Rows of the store, and the records built from them."""

import pytest

from graph import Graph, keys
from graph.log.events import PostPublished
from graph.model import MAX_NUMBER, Post
from graph.projections.mode import Mode
from graph.records import as_post, as_published, split_posts
from tests.support.graph_worlds import append_events


@pytest.mark.parametrize(("latitude", "longitude"), [("52.5", None), (None, "13.4")])
def test_a_row_with_one_coordinate_has_no_location(latitude: str | None, longitude: str | None) -> None:
    """Such a row is damaged: `fanline repair` restores it, and it can be read until then."""
    row = ["2", "text", None, latitude, longitude, None]

    assert as_post(1, row) == Post(1, 2, "text")
    assert split_posts([1], [row]) == ({1: Post(1, 2, "text")}, [], [])


PUBLISHED = [
    PostPublished(1, "hi"),
    PostPublished(1, "", "", 0.0, -1e-7),
    PostPublished(MAX_NUMBER, '"\n\u0000𝒳', None, 52.51234567890123, 13.4),
    PostPublished(1, "hi", "web", None, None, 2, 3, MAX_NUMBER, (5, MAX_NUMBER), ({"url": "è", "size": [1, 2.5]}, {})),
]


@pytest.mark.parametrize("body", PUBLISHED)
async def test_a_projected_record_holds_its_whole_event(graph: Graph, body: PostPublished) -> None:
    [event] = await append_events(graph, [body])
    await graph.projections.project([event], Mode.REQUEST)

    record = await graph.store.run("HGETALL", keys.post(event.number))

    assert as_published(record) == body


async def test_pages_do_not_read_the_optional_fields(graph: Graph) -> None:
    """The posts of `timelines` and `nodes` have the fields of `Post` only."""
    [alice] = [(await graph.users.sign_up("alice", "correct horse")).id]
    [event] = await graph.commit([PostPublished(alice, "hi", reply_to=5, root=5, mentions=(alice,))])

    assert await graph.posts.get_many(None, [event.number]) == [Post(event.number, alice, "hi")]


@pytest.mark.parametrize("record", [{}, {"deleted": "3"}, {"deleted": "3", "author": "1", "text": "hi"}])
def test_tombstones_and_empty_records_hold_no_event(record: dict[str, str]) -> None:
    assert as_published(record) is None


@pytest.mark.parametrize(
    "damage", [{"text": None}, {"author": "x"}, {"latitude": "x"}, {"mentions": "3"}, {"mentions": "["}]
)
def test_a_damaged_record_raises_value_error(damage: dict[str, str | None]) -> None:
    """It is not archived as if it were the event."""
    values: dict[str, str | None] = {"id": "7", "author": "1", "text": "hi", **damage}
    record = {name: value for name, value in values.items() if value is not None}

    with pytest.raises(ValueError, match="The record of post 7 is damaged"):
        as_published(record)
