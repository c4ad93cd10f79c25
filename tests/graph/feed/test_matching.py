"""Tests of the index of filters."""

import gc
import sys
from collections.abc import Callable
from functools import partial
from random import Random
from types import FrameType, ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.feed.filters import Box, EventFilter, EventKind, share_of
from graph.feed.matching import FilterIndex
from graph.log.events import Event, Followed, ProfileChanged
from server.demo.phrases import compose
from server.demo.phrases.chinese import CHINESE
from server.demo.phrases.english import ENGLISH
from tests.graph.feed.filtering import deleted, deleted_by_older_version, events, filters, published

HERE = (52.52, 13.405)
Subscription = tuple[EventFilter, int]


def index_of(*subscriptions: Subscription) -> FilterIndex[int]:
    index: FilterIndex[int] = FilterIndex()
    for filter_, subscriber in subscriptions:
        index.add(filter_, subscriber)
    return index


def expected(subscriptions: list[Subscription], event: Event) -> set[int]:
    return {subscriber for filter_, subscriber in subscriptions if filter_.matches(event)}


def reachable(thing: object) -> int:
    """Count the objects that are reachable from this one, without classes and modules."""
    seen: dict[int, object] = {}
    waiting = [thing]
    while waiting:
        found = waiting.pop()
        if id(found) not in seen and not isinstance(found, type | ModuleType):
            seen[id(found)] = found
            waiting += gc.get_referents(found)
    return len(seen)


def calls(run: Callable[[], Any]) -> int:
    """Count the calls of Python functions."""
    count = 0

    def called(frame: FrameType, update: str, argument: object) -> None:
        nonlocal count
        count += update == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


@settings(deadline=None)
@given(
    st.lists(st.tuples(filters, st.integers(1, 4)), max_size=12, unique=True),
    st.lists(events, min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_the_index_finds_exactly_the_filters_that_match(
    subscriptions: list[Subscription], happened: list[Event], random: Random
) -> None:
    """This holds for any filters and events while subscribers are removed. Nothing is left of removed filters."""
    index = index_of(*subscriptions)
    remaining = subscriptions[:]
    random.shuffle(remaining)
    while remaining:
        for event in happened:
            found = index.matching(event)
            assert len(found) == len(set(found))
            assert set(found) == expected(remaining, event)
        index.remove(*remaining.pop())

    assert all(not index.matching(event) for event in happened)
    assert reachable(index) == reachable(FilterIndex())


@settings(deadline=None)
@given(
    st.floats(-90, 90),
    st.floats(-180, 180) | st.sampled_from((-180.0, 180.0)),
    st.lists(
        st.tuples(*[st.sampled_from((0.0, 1e-12, 1e-4, 0.02, 1.0, 30.0, 400.0))] * 4),
        max_size=20,
    ),
)
def test_boxes_of_all_sizes_are_found_around_a_place(
    latitude: float, longitude: float, margins: list[tuple[float, float, float, float]]
) -> None:
    """Boxes range from a point to the whole earth; some are thin, cross the antimeridian, or reach the poles."""
    subscriptions = []
    for number, (below, left, above, right) in enumerate(margins):
        west, east = (-180.0, 180.0) if left + right > 360 else (wrapped(longitude - left), wrapped(longitude + right))
        box = Box(max(-90, latitude - below), west, min(90, latitude + above), east)
        subscriptions.append((EventFilter.of(within=box), number))
    index = index_of(*subscriptions)

    for event in (published(at=(latitude, longitude)), published(at=(latitude, wrapped(longitude + 0.01)))):
        assert set(index.matching(event)) == expected(subscriptions, event)
        assert index.matches_any(event) == bool(index.matching(event))
    assert len(index.matching(published(at=(latitude, longitude)))) == len(margins)
    for subscription in subscriptions:
        index.remove(*subscription)
    assert reachable(index) == reachable(FilterIndex())


def wrapped(longitude: float) -> float:
    """Return a longitude between -180 and 180."""
    return longitude + 360 if longitude < -180 else longitude - 360 if longitude > 180 else longitude


def test_texts_match_hundreds_of_filters_on_their_words() -> None:
    """This holds for English and Chinese posts and for their deletions."""
    random = Random(4)  # noqa: S311 - not for secrets
    texts = [compose(voice, random.choice(voice.topics), random) for voice in (ENGLISH, CHINESE) * 60]
    subscriptions = []
    for subscriber in range(300):
        source = random.choice(texts)
        start = random.randrange(len(source))
        entry = f"{source[start : start + random.choice((2, 4, 20))]} {random.choice(('', '', 'the', '我'))} x"[:-2]
        if any(map(str.isalnum, entry)):
            subscriptions.append((EventFilter.of(keywords=[entry]), subscriber))
    index = index_of(*subscriptions)
    found = 0

    for number, text in enumerate(texts):
        post = published(text, number=number)
        for event in (post, deleted(post)):
            assert set(index.matching(event)) == expected(subscriptions, event)
            assert index.matches_any(event) == bool(index.matching(event))
        assert set(index.matching(post)) <= set(index.matching(deleted(post)))
        found += len(index.matching(post))
    assert found > len(texts)


def test_hundreds_of_subscribers_may_share_a_criterion() -> None:
    """Each subscriber is found once, until it is removed."""
    post = published("rain", author=1)
    subscriptions = [
        *((EventFilter.of(users=[1, 1000 + n]), n) for n in range(100)),
        *((EventFilter.of(keywords=["rain", f"other{n}"]), 100 + n) for n in range(100)),
        *((EventFilter.of(keywords=["rain"], users=[1, 1000 + n]), 200 + n) for n in range(100)),
        *((EventFilter.of(firehose=True), n) for n in range(400)),
    ]
    index = index_of(*subscriptions)
    Random(4).shuffle(subscriptions)  # noqa: S311 - not for secrets

    while subscriptions:
        assert sorted(index.matching(post)) == sorted(expected(subscriptions, post))
        for subscription in subscriptions[-37:]:
            index.remove(*subscription)
        del subscriptions[-37:]

    assert not index.matching(post)
    assert reachable(index) == reachable(FilterIndex())


def test_a_subscriber_may_have_several_filters() -> None:
    """If two of them match, the subscriber is found once."""
    rain, sun = EventFilter.of(keywords=["rain"]), EventFilter.of(keywords=["sun"])
    index = index_of((rain, 1), (sun, 1), (sun, 2), (sun, 2))

    assert list(index.matching(published("rain"))) == [1]
    assert sorted(index.matching(published("sun and rain"))) == [1, 2]
    index.remove(sun, 1)
    assert list(index.matching(published("rain"))) == [1]
    assert list(index.matching(published("sun"))) == [2]


def test_a_phrase_of_repeated_characters_matches_as_a_whole() -> None:
    """A digest contains only pairs of characters, so the deletion may match more filters."""
    index = index_of((EventFilter.of(keywords=["哈哈哈"]), 1), (EventFilter.of(keywords=["哈哈"]), 2))

    assert sorted(index.matching(published("哈哈哈哈"))) == [1, 2]
    assert list(index.matching(published("哈哈！哈"))) == [2]
    assert sorted(index.matching(deleted(published("哈哈！哈")))) == [1, 2]


def test_removing_a_missing_filter_raises() -> None:
    rain, sun = EventFilter.of(keywords=["rain"]), EventFilter.of(keywords=["sun"])
    index = index_of((rain, 1))

    for subscription in ((rain, 2), (sun, 1)):
        with pytest.raises(KeyError):
            index.remove(*subscription)

    assert list(index.matching(published("rain"))) == [1]


def test_a_deletion_without_a_digest_matches_every_keyword_and_box() -> None:
    """Older versions wrote such events. Users and samples still restrict them."""
    subscriptions = [
        (EventFilter.of(keywords=["rain"]), 1),
        (EventFilter.of(keywords=["sun"], users=[1]), 2),
        (EventFilter.of(keywords=["sun"], users=[2]), 3),
        (EventFilter.of(within=Box(0, 0, 1, 1)), 4),
        (EventFilter.of(within=Box(0, 0, 1, 1), sample=share_of(1000)), 5),
    ]
    index = index_of(*subscriptions)

    assert sorted(index.matching(deleted_by_older_version(1000, author=1))) == [1, 2, 4]


def test_a_subscriber_of_several_boxes_gets_deletions_until_the_last_is_removed() -> None:
    boxes = [EventFilter.of(within=Box(0, 0, n, n)) for n in (1, 2)]
    index = index_of(*((box, 1) for box in boxes), (boxes[0], 1), (boxes[1], 2))
    deletion = deleted(published())

    assert sorted(index.matching(deletion)) == [1, 2]
    index.remove(boxes[0], 1)
    assert sorted(index.matching(deletion)) == [1, 2]
    index.remove(boxes[1], 1)
    assert list(index.matching(deletion)) == [2]
    index.remove(boxes[1], 2)
    assert not index.matching(deletion)
    assert not index.matches_any(deletion)


def test_a_deletion_evaluates_no_boxes() -> None:
    """The deletion matches a thousand boxes."""
    index = index_of(*((EventFilter.of(within=Box(0, 0, 1, n / 10 + 1)), n) for n in range(1000)))
    deletion = deleted(published())

    assert len(index.matching(deletion)) == 1000
    assert calls(partial(index.matching, deletion)) < 150


def test_an_event_of_another_kind_matches_no_filter() -> None:
    assert not index_of((EventFilter.of(firehose=True), 1)).matching(Event(1, ProfileChanged(1, "Alice")))


POSTS: dict[str, Any] = {"kinds": [EventKind.POST_ADDED]}
OTHERS: dict[str, Callable[[int], EventFilter]] = {
    "other users": lambda n: EventFilter.of(users=[1000 + n], **POSTS),
    "other words": lambda n: EventFilter.of(keywords=[f"word{n}"], **POSTS),
    "a common word and a rare one": lambda n: EventFilter.of(keywords=[f"the word{n}"], **POSTS),
    "one word that is not there": lambda n: EventFilter.of(keywords=["absent"], users=None, sample=(n + 1) / 2000),
    "phrases that begin alike": lambda n: EventFilter.of(keywords=[f"北京{chr(0x5000 + n)}人"], **POSTS),
    "the author, with other words": lambda n: EventFilter.of(users=[1], keywords=[f"word{n}"], **POSTS),
    "the words, of other authors": lambda n: EventFilter.of(users=[1000 + n], keywords=["the"], **POSTS),
    "other places": lambda n: EventFilter.of(within=Box(0, n / 10, 0.1, n / 10 + 0.1), **POSTS),
    "smaller samples": lambda n: EventFilter.of(firehose=True, sample=share_of(1000) * (n + 1) / 1000),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_filters_that_do_not_match_are_not_evaluated(kind: str) -> None:
    """The index holds a thousand of them, next to one filter that matches."""
    index = index_of(*((OTHERS[kind](n), n) for n in range(1000)), (EventFilter.of(users=[1]), -1))
    post = published("the rain in 北京", author=1, at=HERE)

    for event in (post, deleted(post), Event(1000, Followed(1, 2))):
        assert list(index.matching(event)) == [-1]
        assert calls(partial(index.matching, event)) < 150
