"""The canonical hot window of an author."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from graph.fold.hot_window import HotLimits, cold, floor
from graph.model import number_at
from graph.tuning import Tuning

POSTS = st.lists(st.integers(1, 60), unique=True).map(lambda posts: sorted(posts, reverse=True))


@given(POSTS, st.integers(1, 8), st.integers(0, 8), st.integers(0, 60))
def test_the_window_holds_the_newest_posts_that_are_not_old(
    posts: list[int], limit: int, newest: int, old: int
) -> None:
    """The posts above the floor are those that the rule selects. The others are counted as cold."""
    limits = HotLimits(limit, min(newest, limit), old)
    hot = [
        post for place, post in enumerate(posts) if place < limit and (place < limits.newest or post >= limits.oldest)
    ]
    bottom = floor(posts, limits)
    assert [post for post in posts if post > bottom] == hot
    assert cold(posts, bottom) == len(posts) - len(hot)
    assert bottom == (posts[len(hot)] if len(hot) < len(posts) else 0)


def test_one_post_more_than_the_window_holds_is_enough_to_find_the_floor() -> None:
    limits = HotLimits(3, 1, 0)
    assert floor([9, 8, 7, 6], limits) == floor([9, 8, 7, 6, 5, 4], limits) == 6


def test_the_limits_are_those_of_the_tuning() -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    assert HotLimits.of(Tuning(hot_posts=20), now) == HotLimits(20, 20, number_at(now - timedelta(days=30)))
    assert HotLimits.of(Tuning(), now).newest == 50
