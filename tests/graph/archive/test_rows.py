"""Rows of the archive."""

import pytest

from graph.archive.rows import LikeRow


@pytest.mark.parametrize(("up_to", "was_live"), [(6, False), (7, True), (8, True), (9, False), (10, False)])
def test_a_like_lives_from_its_number_until_the_event_that_ends_it(up_to: int, was_live: bool) -> None:
    assert LikeRow(7, 1, 2, ended=9).was_live(up_to) is was_live
