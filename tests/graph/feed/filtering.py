"""Strategies for filters and events in a small world, in which they often match."""

from hypothesis import strategies as st

from graph.feed.filters import Box, EventFilter, EventKind
from graph.log.events import (
    Event,
    EventBody,
    Followed,
    PostDeleted,
    PostPublished,
    ProfileChanged,
    Reposted,
    Unfollowed,
    Unreposted,
)
from graph.text.terms import digest_of

WORDS = ("the", "rain", "sun", "#rain", "北", "北京", "北京人", "京人", "人人人", "手机", "iPhone手机", "한국")

users = st.integers(1, 6)
numbers = st.integers(1, 40)
texts = st.lists(st.sampled_from((*WORDS, "人", "、", "!")), max_size=6).flatmap(
    lambda words: st.sampled_from(("", " ")).map(lambda gap: gap.join(words))
)
latitudes = st.sampled_from((-90.0, -45.0, 0.0, 1e-9, 30.5, 90.0)) | st.floats(-90, 90)
longitudes = st.sampled_from((-180.0, -179.9, -1.0, 0.0, 45.0, 179.9, 180.0)) | st.floats(-180, 180)
places = st.none() | st.tuples(latitudes, longitudes)

entries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
boxes = st.builds(
    lambda lower, upper, west, east: Box(min(lower, upper), west, max(lower, upper), east),
    latitudes,
    latitudes,
    longitudes,
    longitudes,
)
kinds = st.lists(st.sampled_from(EventKind), min_size=1, max_size=4)
samples = st.sampled_from((0.001, 0.3, 0.7, 0.999, 1.0))


def lists(values: st.SearchStrategy[int] | st.SearchStrategy[str]) -> st.SearchStrategy[list[int | str] | None]:
    """Draw a list of one to three of these values, or None."""
    return st.none() | st.lists(values, min_size=1, max_size=3)


filters = st.builds(
    EventFilter.of,
    users=lists(users),
    keywords=lists(entries),
    within=st.none() | boxes,
    sample=st.none() | samples,
    firehose=st.just(True),
    kinds=st.none() | kinds,
)


def published(text: str = "hi", *, author: int = 1, at: tuple[float, float] | None = None, number: int = 1000) -> Event:
    latitude, longitude = at or (None, None)
    return Event(number, PostPublished(author, text, None, latitude, longitude))


def deleted(post: Event, number: int = 2000) -> Event:
    """Return the event that deletes a post."""
    update = post.body
    assert isinstance(update, PostPublished)
    return Event(number, PostDeleted(update.author, post.number, digest_of(update.text)))


def deleted_by_older_version(post: int = 1000, *, author: int = 1, number: int = 2000) -> Event:
    """Return the event with which older versions deleted a post: without a digest."""
    return Event(number, PostDeleted(author, post))


posts = st.builds(
    lambda text, author, at, number: published(text, author=author, at=at, number=number),
    texts,
    users,
    places,
    numbers,
)
others: st.SearchStrategy[EventBody] = (
    st.builds(Followed, users, users)
    | st.builds(Unfollowed, users, users)
    | st.builds(PostDeleted, users, numbers)
    | st.builds(Reposted, users, numbers, users)
    | st.builds(Unreposted, users, numbers, numbers)
    | st.builds(ProfileChanged, users)
)
events = posts | posts.map(deleted) | st.builds(Event, numbers, others)
