"""Groups of notifications, their members, and the users whom an event notifies."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from graph.log.events import (
    Event,
    EventBody,
    Followed,
    Liked,
    PostPublished,
    Reposted,
    Unfollowed,
    Unliked,
    Unreposted,
)
from graph.log.notification_groups import Group, NotificationKind, day_of, group_of, numbers_of_day, parse_member
from graph.log.recipients import concerned, recipients
from graph.model import MAX_NUMBER, number_at

ALICE, BOB, CAROL = 1, 2, 3


def notified(body: EventBody, number: int = 50) -> list[tuple[int, str]]:
    """Return the users whom an event notifies, with the members of their groups."""
    return [(user, group.member) for user, group in recipients(Event(number, body))]


@pytest.mark.parametrize("kind", NotificationKind)
def test_members_and_codes_are_read_back(kind: NotificationKind) -> None:
    group = Group(kind, MAX_NUMBER)
    assert parse_member(group.member) == group == group_of(kind.value, MAX_NUMBER)


@pytest.mark.parametrize("member", ["f", "", "later:5", "like:", "like:x", "like:-1"])
def test_other_members_are_no_groups(member: str) -> None:
    """The floor, and members of kinds of later versions, are not groups."""
    assert parse_member(member) is None


def test_an_unknown_code_is_no_group() -> None:
    assert group_of(99, 5) is None


def test_a_day_is_one_in_utc() -> None:
    first = number_at(datetime(2026, 3, 1, tzinfo=UTC))
    low, high = numbers_of_day(day_of(first))
    assert low == first
    assert high == number_at(datetime(2026, 3, 2, tzinfo=UTC))
    assert [day_of(number) - day_of(first) for number in (first - 1, first, high - 1, high)] == [-1, 0, 0, 1]


def test_a_follow_notifies_the_followee_in_the_group_of_the_day() -> None:
    number = number_at(datetime(1970 + 60, 1, 1, tzinfo=UTC))
    assert notified(Followed(ALICE, BOB), number) == [(BOB, f"follow:{day_of(number)}")]
    assert notified(Unfollowed(ALICE, BOB)) == []


def test_a_like_notifies_the_author() -> None:
    """A like notifies the author unless the author made it."""
    assert notified(Liked(ALICE, 40, BOB)) == [(BOB, "like:40")]
    assert notified(Liked(BOB, 40, BOB)) == notified(Unliked(ALICE, 40, BOB)) == []


def test_a_repost_notifies_the_author_of_the_original() -> None:
    """A repost notifies the original's author unless the author made it."""
    assert notified(Reposted(ALICE, 40, BOB)) == [(BOB, "repost:40")]
    assert notified(Reposted(BOB, 40, BOB)) == notified(Unreposted(ALICE, 40, 50, BOB)) == []


@pytest.mark.parametrize("body", [Followed(ALICE, BOB), Liked(ALICE, 40, BOB), Reposted(ALICE, 40, BOB)])
def test_what_is_renewed_notifies_nobody(body: Followed | Liked | Reposted) -> None:
    """The first action already notified these users."""
    again = replace(body, renewed=True)
    assert notified(again) == []
    assert [*concerned(Event(50, again))] == [*recipients(Event(50, body))]


def test_a_post_notifies_each_user_once_for_the_first_reason() -> None:
    """A reply comes before a quote, and a quote before a mention."""
    everything = PostPublished(
        ALICE, "", reply_to=9, reply_to_author=BOB, repost_of=8, repost_of_author=CAROL, mentions=(4, BOB, CAROL)
    )
    assert sorted(notified(everything)) == [(BOB, "reply:50"), (CAROL, "quote:50"), (4, "mention:50")]
    both = PostPublished(ALICE, "", reply_to=9, reply_to_author=BOB, repost_of=8, repost_of_author=BOB)
    assert notified(both) == [(BOB, "reply:50")]
    assert notified(PostPublished(ALICE, "", mentions=(BOB, BOB))) == [(BOB, "mention:50")]


def test_nobody_is_notified_of_the_own_post() -> None:
    own = PostPublished(ALICE, "", reply_to=9, reply_to_author=ALICE, repost_of_author=ALICE, mentions=(ALICE, BOB))
    assert notified(own) == [(BOB, "mention:50")]


def test_a_post_notifies_at_most_twenty_mentioned_users() -> None:
    post = PostPublished(ALICE, "", mentions=tuple(range(100, 150)))
    assert [user for user, _ in notified(post)] == list(range(100, 120))
