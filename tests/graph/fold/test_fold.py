"""The fold equals the projections, for any history in any order, and can be computed in chunks of users."""

import asyncio
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.expected.event_folds import FOLDS, fold
from graph.expected.stored import stored
from graph.fold.content import Content, Part
from graph.fold.hot_window import Cut
from graph.log.encoding import KINDS
from graph.log.events import Event, Followed, PostDeleted, PostPublished, SessionsEnded, Unfollowed, UserCreated
from graph.post_lists import TIMELINE
from graph.projections.mode import Mode
from graph.store.store import Store
from tests.graph.fold.histories import USERS, histories, shuffled, user_id
from tests.support.graph_worlds import state
from tests.support.graphs import CHEAP, empty, open_graph
from tests.support.raw import open_raw

SECRETS: dict[int, str | None] = {user_id(0): "a hash", user_id(1): None, user_id(2): "another hash"}
"""The password hashes of the users whose sign-ups are not void."""


def test_every_kind_of_event_has_a_fold() -> None:
    assert set(FOLDS) == set(KINDS.values())


def test_the_fold_equals_the_projections(store_url: str, *, long_profile: bool) -> None:
    """Project a history in any order, with repetitions, and compare all keys."""

    @settings(max_examples=2000 if long_profile else 15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data(), histories())
    def run(data: st.DataObject, events: list[Event]) -> None:
        expected = dict(stored(fold(Content(secrets=SECRETS), events)))
        found = asyncio.run(projected(store_url, data.draw(shuffled(events))))
        assert found == expected

    run()


async def projected(url: str, batches: list[list[Event]]) -> dict[str, Any]:
    """Return the content of an empty store after these batches, in the form in which the fold returns it."""
    async with open_raw(url) as raw:
        empty(url)  # a worker appends the ends of reposts, so the store must be bound to its archive
        graph = await open_graph(url, CHEAP, partial(Store, single_slot=True))
        try:
            claims = [(f"user{place}", f"nonce{place}", SECRETS[user_id(place)]) for place in range(USERS - 1)]
            await graph.users.claim_many(claims)
            for batch in batches:
                await graph.projections.project(batch, Mode.WORKER)
        finally:
            await graph.close()
        found = await state(raw)
    return {
        key: value
        for key, value in found.items()
        # Whether a timeline without posts has a key depends on the order of the events.
        if not (key.startswith("login:") and "user" not in value)
        and not (key.startswith(("posts:", "replied:")) and value == {"f": 0})
    }


@given(st.data(), histories())
@settings(max_examples=50, deadline=None)
def test_the_order_of_events_does_not_matter(data: st.DataObject, events: list[Event]) -> None:
    content = Content(secrets=SECRETS)
    for batch in data.draw(shuffled(events)):
        fold(content, batch)
    assert dict(stored(content)) == dict(stored(fold(Content(secrets=SECRETS), events)))
    assert content.ended == fold(Content(), events).ended


@given(histories(), st.integers(1, 10))
@settings(max_examples=50, deadline=None)
def test_chunks_of_users_and_parts_add_up_to_the_whole(events: list[Event], size: int) -> None:
    """No key is in two chunks; a record may be, but none of its fields is. Together, the chunks are the whole.

    Tombstones have no counts: a caller that folds the lists under posts names the deleted posts.
    """
    owners = [event.number for event in events]
    deleted = {event.body.post for event in events if isinstance(event.body, PostDeleted)}
    found: dict[str, Any] = {}
    for start in range(0, len(owners), size):
        for part in Part:
            content = fold(Content(owners[start : start + size], secrets=SECRETS, parts=[part]), events)
            for key, value in stored(content, deleted=deleted):
                held = found.get(key)
                if held is not None:
                    assert key.startswith(("post:", "{suspended}", "{log}:"))
                    assert isinstance(value, dict)
                    assert (value == held and "deleted" in held) or not held.keys() & value
                found[key] = value if held is None else held | value
    assert found == dict(stored(fold(Content(secrets=SECRETS), events)))


def test_a_sign_up_without_credentials_is_void() -> None:
    assert not list(stored(fold(Content(), [Event(1, UserCreated("alice", "Alice", "n"))])))


def test_an_account_without_a_password_has_an_empty_secret() -> None:
    """The claim of a login without a password stores the same."""
    keys = dict(stored(fold(Content(secrets={1: None}), [Event(1, UserCreated("alice", "Alice", "n"))])))
    assert keys["login:{alice}"] == {"secret": "", "nonce": "n", "user": "1"}


def test_ended_sessions_are_named() -> None:
    content = fold(Content([1]), [Event(3, SessionsEnded(1, ["a"])), Event(4, SessionsEnded(2, ["b"]))])
    assert content.ended == {1: {"a"}}
    assert not list(stored(content))


def test_old_tombstones_can_be_left_out() -> None:
    events = [
        *(Event(10, PostPublished(1, "x")), Event(11, PostPublished(1, "y"))),
        *(Event(12, PostDeleted(1, 10)), Event(13, PostDeleted(1, 11)), Event(14, PostDeleted(1, 10))),
        *(Event(15, Followed(1, 2)), Event(16, Unfollowed(1, 2)), Event(20, Unfollowed(1, 3))),
    ]
    content = fold(Content([1]), events)

    assert dict(stored(content, tombstones_after=12)) == {
        "following:{1}:gone": {"2": 16, "3": 20},
        "posts:{1}:gone": {"11": 13},
        "post:{11}": {"deleted": "13"},
    }
    assert dict(stored(content, tombstones_after=16)) == {"following:{1}:gone": {"3": 20}}


def test_posts_up_to_the_floor_are_left_out() -> None:
    content = fold(Content(), [Event(n, PostPublished(1, f"post {n}")) for n in (10, 20, 30)])
    keys = dict(stored(content, cuts={TIMELINE: Cut({1: 20}, {1: 2})}))
    assert keys == {
        "posts:{1}": {"f": 20, "30": 30},
        "cold:{1}": "2",
        "post:{30}": {"id": "30", "author": "1", "text": "post 30"},
    }


def test_a_timeline_whose_posts_are_all_archived_keeps_its_floor() -> None:
    """Otherwise a repeated projection would list an archived post again."""
    content = fold(Content(), [Event(10, PostPublished(1, "a"))])
    assert dict(stored(content, cuts={TIMELINE: Cut({1: 10}, {1: 1})})) == {"posts:{1}": {"f": 10}, "cold:{1}": "1"}


@pytest.mark.parametrize("number", [14, 16])
def test_an_unfollow_and_a_follow_count_by_their_numbers(number: int) -> None:
    content = fold(Content([1], parts=[Part.FOLLOWING]), [Event(15, Unfollowed(1, 2)), Event(number, Followed(1, 2))])
    assert content.following[1].members == ({2: 16} if number == 16 else {})
    assert not content.followers
