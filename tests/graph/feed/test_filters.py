"""Tests of the filters of event streams."""

import math
import time
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import BadFilter
from graph.feed.filters import Box, EventFilter, EventKind, share_of
from graph.log.account_events import UserDeleted, UserErased, login_hash
from graph.log.events import (
    Blocked,
    Event,
    Followed,
    ListChanged,
    ListCreated,
    ListDeleted,
    NotificationsRead,
    PasswordChanged,
    PermissionGranted,
    PostPublished,
    ProfileChanged,
    Reposted,
    SessionsEnded,
    Unblocked,
    Unfollowed,
    Unreposted,
    UserCreated,
)
from graph.log.pair_events import Muted, Unmuted
from graph.model import MAX_NUMBER
from tests.graph.feed.filtering import deleted, deleted_by_older_version, filters, posts, published, users

EVERYWHERE = Box(-90, -180, 90, 180)
ALICE, BOB, CAROL = 1, 2, 3


def matching(events: dict[str, Event], **asked: Any) -> str:
    """Return the names of the events that match a filter, as one string."""
    filter_ = EventFilter.of(**asked)
    return " ".join(name for name, event in events.items() if filter_.matches(event))


def test_users_match_authors_and_either_side_of_a_follow() -> None:
    post = published(author=ALICE)
    events = {
        "post": post,
        "deletion": deleted(post),
        "follows": Event(1, Followed(ALICE, BOB)),
        "is followed": Event(2, Followed(BOB, ALICE)),
        "unfollowed": Event(3, Unfollowed(CAROL, ALICE)),
    }

    assert matching(events, users=[ALICE]) == "post deletion follows is followed unfollowed"
    assert matching(events, users=[CAROL, BOB]) == "follows is followed unfollowed"
    assert matching(events, users=[4]) == ""


def test_keywords_match_posts_that_contain_all_words_of_one_entry() -> None:
    events = {
        "rain": published("Rain in Rome"),
        "sun": published("Sun in Berlin"),
        "京": published("我在北京"),
    }

    assert matching(events, keywords=["rain"]) == "rain"
    assert matching(events, keywords=["rain berlin"]) == ""
    assert matching(events, keywords=["in sun", "北京"]) == "sun 京"


def test_within_matches_posts_with_a_place_in_the_box() -> None:
    events = {"here": published(at=(52.5, 13.4)), "there": published(at=(-33.9, 151.2)), "nowhere": published()}

    assert matching(events, within=Box(50, 10, 55, 15)) == "here"
    assert matching(events, within=EVERYWHERE) == "here there"


def test_fields_are_combined_with_and() -> None:
    """The firehose does not widen a filter."""
    here = (1.0, 1.0)
    events = {
        "1": published("rain", author=ALICE, at=here),
        "2": published("rain", author=BOB, at=here),
        "3": published("sun", author=ALICE, at=here),
        "4": published("rain", author=ALICE),
    }

    assert matching(events, users=[ALICE], keywords=["rain"], within=EVERYWHERE) == "1"
    assert matching(events, users=[ALICE], keywords=["rain"]) == "1 4"
    assert matching(events, keywords=["rain"], within=EVERYWHERE, firehose=True) == "1 2"
    assert matching(events, users=[ALICE], kinds=[EventKind.POST_REMOVED]) == ""


def test_follows_never_match_keywords_or_a_box() -> None:
    events = {"followed": Event(1, Followed(ALICE, BOB)), "unfollowed": Event(2, Unfollowed(ALICE, BOB))}

    assert matching(events, users=[ALICE]) == "followed unfollowed"
    assert matching(events, users=[ALICE], keywords=["rain"]) == ""
    assert matching(events, users=[ALICE], within=EVERYWHERE) == ""


def test_reposts_have_kinds_of_their_own() -> None:
    """They match by the user who reposted, but not by words or boxes."""
    events = {
        "post": published("!"),
        "deletion": deleted(published("!")),
        "repost": Event(8, Reposted(ALICE, 7, BOB)),
        "end of a repost": Event(9, Unreposted(ALICE, 7, 8, BOB)),
    }

    assert matching(events, users=[ALICE]) == "post deletion repost end of a repost"
    assert matching(events, users=[ALICE], kinds=[EventKind.POST_ADDED, EventKind.POST_REMOVED]) == "post deletion"
    assert matching(events, users=[ALICE], kinds=[EventKind.REPOST_ADDED]) == "repost"
    assert matching(events, users=[ALICE], kinds=[EventKind.REPOST_REMOVED]) == "end of a repost"
    assert matching(events, users=[ALICE], within=EVERYWHERE) == "deletion"


def test_the_firehose_matches_all_kinds_and_no_other_events() -> None:
    events = {
        "post": published("!"),
        "deletion": deleted(published("!")),
        "repost": Event(8, Reposted(ALICE, 7, BOB)),
        "end of a repost": Event(9, Unreposted(ALICE, 7, 8, BOB)),
        "follow": Event(1, Followed(ALICE, BOB)),
        "unfollow": Event(2, Unfollowed(ALICE, BOB)),
        "user": Event(3, UserCreated("alice", "Alice", "nonce")),
        "profile": Event(4, ProfileChanged(ALICE, "Alice")),
        "sessions": Event(5, SessionsEnded(ALICE, ["s"])),
        "password": Event(5, PasswordChanged(ALICE, "alice", "n")),
        "permission": Event(6, PermissionGranted(ALICE, "firehose")),
        "mute": Event(7, Muted(ALICE, BOB)),
        "unmute": Event(8, Unmuted(ALICE, BOB)),
        "block": Event(9, Blocked(ALICE, BOB)),
        "unblock": Event(10, Unblocked(ALICE, BOB)),
        "read": Event(11, NotificationsRead(ALICE, 6)),
        "new list": Event(12, ListCreated(ALICE, "list", (BOB,))),
        "change of a list": Event(13, ListChanged(ALICE, 12, removed=(BOB,))),
        "deletion of a list": Event(14, ListDeleted(ALICE, 12)),
        "deletion of a user": Event(15, UserDeleted(ALICE, login_hash("alice"))),
        "end of an erasure": Event(16, UserErased(ALICE)),
    }

    assert matching(events, firehose=True) == "post deletion repost end of a repost follow unfollow"
    assert matching(events, firehose=True, kinds=list(EventKind)) == matching(events, firehose=True)
    assert matching(events, firehose=True, kinds=[EventKind.POST_REMOVED]) == "deletion"
    assert matching(events, users=[ALICE], kinds=[EventKind.USER_FOLLOWED, EventKind.USER_UNFOLLOWED]) == (
        "follow unfollow"
    )


@given(posts, filters, st.integers(1, MAX_NUMBER))
def test_a_deletion_matches_the_filters_that_its_post_matched(post: Event, filter_: EventFilter, number: int) -> None:
    """The deletion matches unless the filter excludes deletions."""
    if filter_.matches(post) and (filter_.kinds is None or EventKind.POST_REMOVED in filter_.kinds):
        assert filter_.matches(deleted(post, number))


def test_a_deletion_without_a_digest_matches_by_author_and_sample() -> None:
    """Older versions wrote such events."""
    events = {"deletion": deleted_by_older_version(author=ALICE)}

    assert matching(events, keywords=["whatever"], within=Box(0, 0, 0, 0)) == "deletion"
    assert matching(events, users=[ALICE], keywords=["whatever"]) == "deletion"
    assert matching(events, users=[BOB], keywords=["whatever"]) == ""
    assert matching(events, keywords=["whatever"], sample=1e-9) == ""


def test_a_deletion_matches_keywords_by_its_digest_and_every_box() -> None:
    events = {"here": deleted(published("rain", at=(1.0, 1.0))), "nowhere": deleted(published("😀"))}

    assert matching(events, keywords=["rain"]) == "here"
    assert matching(events, keywords=["sun"]) == ""
    assert matching(events, within=Box(50, 10, 55, 15)) == "here nowhere"
    assert matching(events, keywords=["rain"], within=Box(50, 10, 55, 15)) == "here"


@given(posts, filters)
def test_may_match_does_not_depend_on_the_content_of_posts(post: Event, filter_: EventFilter) -> None:
    """`may_match` is true for every filter that matches."""
    every_kind = replace(filter_, kinds=None)
    update = post.body
    assert isinstance(update, PostPublished)
    blank = Event(post.number, PostPublished(update.author, "!"))

    assert every_kind.may_match(post) == every_kind.may_match(deleted(post)) == every_kind.may_match(blank)
    assert filter_.may_match(post) or not filter_.matches(post)


def test_the_size_of_a_filter() -> None:
    """Users, words, hashtags and pairs of characters in phrases count 1 each, a box 16, and each filter 1 more."""
    assert EventFilter.of(firehose=True, sample=0.5).terms == 1
    assert EventFilter.of(users=[1, 2, 2]).terms == 3
    assert EventFilter.of(keywords=["rain in #berlin", "rain", "北京下雨", "雨"]).terms == 3 + 1 + 3 + 1 + 1
    assert EventFilter.of(users=[1], within=EVERYWHERE).terms == 1 + 16 + 1


def test_shares_are_fixed_and_uniform() -> None:
    """Shares depend only on the number. A larger sample contains every smaller one."""
    assert (share_of(0), share_of(1), share_of(MAX_NUMBER)) == (
        0.7891985391709461,
        0.31875248932277545,
        0.68560181564058,
    )
    shares = [share_of(number << 12) for number in range(10_000)]
    assert all(0 <= share < 1 for share in shares)
    for sample in (0.01, 0.1, 0.5):
        assert sum(share < sample for share in shares) == pytest.approx(10_000 * sample, rel=0.25)


@given(st.integers(1, MAX_NUMBER), users, users)
def test_a_follow_is_sampled_by_its_own_number(number: int, follower: int, followee: int) -> None:
    share = share_of(number)
    event = Event(number, Followed(follower, followee))

    assert not EventFilter(sample=share).matches(event)
    assert EventFilter(sample=math.nextafter(share, 1)).matches(event)


@pytest.mark.parametrize(
    ("box", "inside", "outside"),
    [
        (Box(-10, -20, 10, 20), [(0, 0), (10, 20), (-10, -20)], [(10.1, 0), (0, 20.1), (0, -20.1), (-10.1, 0)]),
        (Box(-10, 170, 10, -170), [(0, 180), (0, -180), (0, 170), (0, -170), (5, 175)], [(0, 169), (0, 0), (0, -169)]),
        (Box(0, -180, 0, -170), [(0, 180), (0, -175)], [(0, 179.9), (1, -175)]),
        (Box(0, 170, 1, 180), [(0, -180), (0, 180)], [(0, -179.9)]),
        (Box(90, -180, 90, 180), [(90, 0), (90, 180)], [(89.9, 0)]),
        (Box(5, 5, 5, 5), [(5, 5)], [(5, math.nextafter(5, 6)), (math.nextafter(5, 4), 5)]),
    ],
)
def test_a_box_includes_its_edges_and_may_cross_the_antimeridian(
    box: Box, inside: list[tuple[float, float]], outside: list[tuple[float, float]]
) -> None:
    """Longitudes 180 and -180 are the same meridian."""
    assert [place for place in inside if not box.contains(*place)] == []
    assert [place for place in outside if box.contains(*place)] == []


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({}, "'firehose: true'"),
        ({"sample": 0.5, "kinds": [EventKind.POST_REMOVED]}, "'firehose: true'"),
        ({"users": []}, "'users' must not be empty"),
        ({"users": [*range(501)]}, "'users' has 501 entries; the limit is 500"),
        ({"keywords": []}, "'keywords' must not be empty"),
        ({"keywords": ["a"] * 401}, "'keywords' has 401 entries; the limit is 400"),
        ({"keywords": ["rain", "!?"]}, "The entry '!?' of 'keywords' has no word"),
        ({"keywords": ["\ud800"]}, r"The entry '\ud800' of 'keywords' has no word"),
        ({"keywords": ["!" * 100]}, f"The entry '{'!' * 40}…' of 'keywords'"),
        ({"keywords": [" ".join(map(str, range(26)))]}, "has 26 words; the limit is 25"),
        ({"keywords": ["a" * 61]}, "has a word of 61 characters; the limit is 60"),
        ({"keywords": ["北京" * 31]}, "has a word of 62 characters; the limit is 60"),
        ({"keywords": [f"a{n} b c d e f" for n in range(400)]}, "'keywords' has 2,400 terms; the limit is 2,000"),
        ({"keywords": [f"{chr(0x5000 + n)}一二三四五六" for n in range(400)]}, "'keywords' has 2,400 terms"),
        ({"keywords": ["a " * 3101]}, "has 6,202 characters; the limit is 6,200"),
        ({"keywords": ["e" + "\u0301\u0316" * 16]}, "has more than 30 combining characters in a row"),
        ({"keywords": ["e" + "\u0301\u0316\u034f\u200d" * 16]}, "has more than 30 combining characters in a row"),
        ({"users": [1], "kinds": []}, "'kinds' must not be empty"),
        ({"firehose": True, "sample": 0.0}, "'sample' must be above 0 and at most 1, not 0.0"),
        ({"firehose": True, "sample": 1.1}, "'sample'"),
        ({"firehose": True, "sample": -0.1}, "'sample'"),
        ({"firehose": True, "sample": math.nan}, "'sample'"),
        ({"within": Box(-90.1, 0, 0, 0)}, "'within.south' must be from -90 to 90"),
        ({"within": Box(0, 0, math.inf, 0)}, "'within.north'"),
        ({"within": Box(0, math.nan, 0, 0)}, "'within.west' must be from -180 to 180"),
        ({"within": Box(0, 0, 0, 180.1)}, "'within.east'"),
        ({"within": Box(1, 0, 0, 0)}, "'within.south' must not be greater than 'within.north'"),
    ],
)
def test_a_bad_filter_is_rejected_with_the_name_of_the_field(asked: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadFilter) as refused:
        EventFilter.of(**asked)

    assert complaint in str(refused.value)
    str(refused.value).encode()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: EventFilter.of(users=[*range(500)]),
        lambda: EventFilter.of(keywords=[f"a{n} b c d e" for n in range(400)]),
        lambda: EventFilter.of(keywords=["หมู่บ้านนี้", "नमस्ते", "e" + "\u0301" * 30]),
        lambda: EventFilter.of(keywords=[f"word{n}" for n in range(400)]),
        lambda: EventFilter.of(keywords=[" ".join(map(str, range(25))), "a" * 60, "#" + "a" * 60, "北京" * 30]),
        lambda: EventFilter.of(within=EVERYWHERE, sample=1.0),
        lambda: EventFilter.of(firehose=True, sample=5e-324),
    ],
)
def test_filters_at_the_limits_are_allowed(ask: Callable[[], EventFilter]) -> None:
    ask()


def test_equivalent_filters_are_equal() -> None:
    """Streams can therefore share them."""
    one = EventFilter.of(users=[1, 2, 2], keywords=["Rain  berlin"], sample=1.0, kinds=list(EventKind))

    assert one == EventFilter.of(users=[2, 1], keywords=["BERLIN rain"])
    assert hash(one) == hash(EventFilter.of(users=[2, 1], keywords=["BERLIN rain"]))


@pytest.mark.parametrize(
    "entry",
    [
        "\u0301" * 100_000,
        "\u0345\u0323" * 3_000,
        "\u0345\u0323\u034f" * 2_000,  # unseen characters are dropped, so these are in a row too
        "x" * 6_201,
    ],
)
def test_entries_that_are_slow_to_fold_are_rejected_early(entry: str) -> None:
    """A request with sixteen of them takes only a few milliseconds."""
    spent = []
    for _ in range(5):
        start = time.process_time()
        with pytest.raises(BadFilter, match=r"combining characters in a row|the limit is 6,200"):
            EventFilter.of(keywords=[entry])
        spent.append(time.process_time() - start)

    assert min(spent) < 0.003


@pytest.mark.parametrize("word", ["Nước", "한국어", "ṩ"])
def test_words_may_be_decomposed(word: str) -> None:
    """A keyword of 25 long words is not too long, even in decomposed form."""
    words = " ".join(f"#{letter}{(word * 60)[:59]}" for letter in "abcdefghijklmnopqrstuvwxy")
    decomposed = unicodedata.normalize("NFD", words)

    assert EventFilter.of(keywords=[decomposed]) == EventFilter.of(keywords=[words])
