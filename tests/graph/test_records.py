"""Rows of the store, and the records built from them."""

import pytest

from graph.model import Post
from graph.records import as_post, split_posts


@pytest.mark.parametrize(("latitude", "longitude"), [("52.5", None), (None, "13.4")])
def test_a_row_with_one_coordinate_has_no_location(latitude: str | None, longitude: str | None) -> None:
    """Such a row is damaged: `fanline repair` restores it, and it can be read until then."""
    row = ["2", "text", None, latitude, longitude, None]

    assert as_post(1, row) == Post(1, 2, "text")
    assert split_posts([1], [row]) == ({1: Post(1, 2, "text")}, [], [])
