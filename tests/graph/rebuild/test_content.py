"""Rebuilt content, for random histories and for users with many events."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph import keys
from graph.archive.archive import Archive
from graph.archive.rows import EventRow
from graph.expected.event_folds import fold
from graph.expected.stored import stored
from graph.fold.content import Content
from graph.fold.hot_window import Cut, HotLimits, cold, floor
from graph.log.events import Event, EventBody, Followed, PostDeleted, PostPublished, Unfollowed
from graph.post_lists import REPLIED, TIMELINE, PostList
from graph.rebuild.rebuild import Rebuild
from graph.relations.pair_sets import stored_member
from graph.relations.register import PAIRS
from graph.tuning import Tuning
from tests.graph.fold.histories import STEP, USERS, histories, user_id
from tests.graph.rebuild.stores import content, empty_store, opened, signed_up, write_archive

FOREVER = Tuning(hot_age=timedelta(days=36_500), tombstones_live=timedelta(days=36_500), push_limit=2)
"""A limit under which everything in the archive is in the store, however old it is."""

AUTHOR = user_id(0)


def numbered(users: int, bodies: list[EventBody]) -> list[Event]:
    """Return sign-ups, then events with ascending numbers."""
    start = user_id(users)
    return [*signed_up(users), *(Event(start + place * STEP, body) for place, body in enumerate(bodies))]


async def rebuilt(
    url: str, archive_url: str, tuning: Tuning, *, users: int = 500, rows: int = 10_000
) -> dict[str, Any]:
    """Rebuild an empty store, and return its content."""
    await empty_store(url)
    graph = await opened(url, archive_url)
    try:
        report = await Rebuild(graph.store, graph.archive, tuning, users=users, rows=rows).run()
        found = await content(url)
        assert report.users == len([key for key in found if key.startswith("user:")])
        assert report.follows == sum(len(of) for key, of in found.items() if is_set(key, "following:"))
        assert report.likes == sum(len(of) for key, of in found.items() if is_set(key, "liked:"))
        assert report.posts == sum(len(of) - 1 for key, of in found.items() if is_set(key, "posts:")) + sum(
            int(count) for key, count in found.items() if key.startswith("cold:")
        )
        return found
    finally:
        await graph.close()


def is_set(key: str, prefix: str) -> bool:
    return key.startswith(prefix) and not key.endswith((":gone", ":held"))


def test_a_rebuild_equals_the_fold(store_url: str, tmp_path: Path, *, long_profile: bool) -> None:
    """Both are equal for any number of users and rows per read, and any order of the events in SQL."""

    @settings(max_examples=1000 if long_profile else 8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(), st.integers(1, USERS), st.integers(2, 12), st.integers(1, 5), st.integers(1, 3))
    def run(events: list[Event], users: int, rows: int, hot_posts: int, hot_newest: int) -> None:
        file = tmp_path / "archive.sqlite"
        for suffix in ("", "-wal", "-shm"):
            file.with_name(file.name + suffix).unlink(missing_ok=True)
        tuning = replace(FOREVER, hot_posts=hot_posts, hot_newest=hot_newest)
        found = asyncio.run(written_and_rebuilt(store_url, f"sqlite:///{file}", events, users, rows, tuning))
        assert without_deleted(found, events) == without_deleted(expected(events, tuning), events)

    run()


def expected(events: list[Event], tuning: Tuning) -> dict[str, Any]:
    """Return the fold of a whole history, cut to the hot windows, with the delivery modes."""
    folded = fold(Content(secrets={user_id(place): None for place in range(USERS)}), events)
    limits = HotLimits.of(tuning, datetime.now(UTC))
    cuts = {}
    lists: dict[PostList, Any] = {TIMELINE: folded.posts, REPLIED: folded.replied, **folded.under_posts}
    for post_list, by_owner in lists.items():
        floors = {owner: floor(sorted(held.live, reverse=True), limits) for owner, held in by_owner.items()}
        archived = {owner: cold(held.live, floors[owner]) for owner, held in by_owner.items()}
        cuts[post_list] = Cut(floors, archived)
    for lists_by_post in folded.under_posts.values():
        for held in lists_by_post.values():
            held.deleted.clear()  # the posts' own tombstones are enough
    found: dict[str, Any] = dict(stored(folded, cuts=cuts))
    for author, followers in folded.followers.items():
        if len(folded.placed(author, followers).members) > tuning.push_limit:
            found[keys.delivery(author)] = "pull"
    return found


def without_deleted(found: dict[str, Any], events: list[Event]) -> dict[str, Any]:
    """Return keys without the notifications of deleted posts, which readers do not see and the archive may lack."""
    deleted = {str(event.body.post) for event in events if isinstance(event.body, PostDeleted)}
    kept = {
        key: {group: number for group, number in value.items() if group.partition(":")[2] not in deleted}
        if key.startswith("notifications:") and isinstance(value, dict)
        else value
        for key, value in found.items()
    }
    return {key: value for key, value in kept.items() if value}


async def written_and_rebuilt(
    url: str, archive_url: str, events: list[Event], users: int, rows: int, tuning: Tuning = FOREVER
) -> dict[str, Any]:
    archive = Archive(archive_url)
    await write_archive(archive, events)
    await archive.close()
    return await rebuilt(url, archive_url, tuning, users=users, rows=rows)


async def test_a_heavy_author_has_only_the_hot_window_in_the_store(store_url: str, url: str) -> None:
    """Older posts are counted, not read."""
    published = [PostPublished(AUTHOR, f"post {place}") for place in range(1200)]
    events = numbered(2, [PostPublished(user_id(1), "other"), *published])
    ids = [event.number for event in events if isinstance(event.body, PostPublished) and event.body.author == AUTHOR]
    tuning = Tuning(hot_posts=100, hot_newest=10, hot_age=timedelta(days=36_500))

    found = await written_and_rebuilt(store_url, url, events, 500, 50, tuning)

    assert found[keys.posts(AUTHOR)] == {"f": ids[-101], **{str(post): post for post in ids[-100:]}}
    assert found[keys.cold(AUTHOR)] == "1100"
    assert {key for key in found if key.startswith("post:")} == {
        keys.post(post) for post in [*ids[-100:], ids[0] - STEP]
    }
    assert keys.cold(user_id(1)) not in found


async def test_a_heavy_followee_is_written_in_pages(store_url: str, url: str) -> None:
    """A follow in one page, its end in a later page, and a follow after that count as if they were in one page."""
    fans = [user_id(place) for place in range(1, 300)]
    bodies: list[EventBody] = [Followed(fan, AUTHOR) for fan in fans]
    bodies += [Unfollowed(fan, AUTHOR) for fan in fans[::2]]
    bodies += [Followed(fan, AUTHOR) for fan in fans[::4]]
    events = numbered(300, bodies)
    expected = dict(stored(fold(Content(secrets=dict.fromkeys([AUTHOR, *fans])), events)))

    found = await written_and_rebuilt(store_url, url, events, 500, 40)

    assert found.pop(keys.delivery(AUTHOR)) == "pull"
    assert found == expected
    assert len(found[keys.followers(AUTHOR)]) == 299 - 150 + 75


async def test_pairs_of_a_user_with_many_are_written_in_pages(store_url: str, url: str) -> None:
    """A pair in one page, its end in a later page, and a pair after that count as if they were in one page."""
    bodies: list[EventBody] = []
    for each in PAIRS.pair_sets:
        members = [stored_member(n if each.begun.SUBJECT else str(n)) for n in range(100)]
        begins = [each.body_of(AUTHOR, member, begins=True) for member in members]
        ends = [each.body_of(AUTHOR, member, begins=False) for member in members[::2]]
        bodies += [*begins, *ends, *begins[::4]]
    events = numbered(1, bodies)
    expected = dict(stored(fold(Content(secrets={AUTHOR: None}), events)))

    assert await written_and_rebuilt(store_url, url, events, 500, 40) == expected
    assert [len(expected[each.key(AUTHOR)]) for each in PAIRS.pair_sets] == [50 + 25] * len(PAIRS.pair_sets)


async def test_a_heavy_followee_whose_followers_have_left_is_pushed(store_url: str, url: str) -> None:
    """The number of followers after all pages counts."""
    fans = [user_id(place) for place in range(1, 60)]
    events = numbered(60, [*(Followed(fan, AUTHOR) for fan in fans), *(Unfollowed(fan, AUTHOR) for fan in fans[2:])])
    found = await written_and_rebuilt(store_url, url, events, 500, 40)
    assert keys.delivery(AUTHOR) not in found
    assert len(found[keys.followers(AUTHOR)]) == 2


async def test_the_first_deletion_of_a_post_decides_whether_its_tombstone_is_old(store_url: str, url: str) -> None:
    bodies: list[EventBody] = [PostPublished(AUTHOR, "a"), PostDeleted(AUTHOR, user_id(1)), PostPublished(AUTHOR, "b")]
    events = numbered(1, bodies)
    now = 1 << 52
    events += [Event(now, PostDeleted(AUTHOR, user_id(1))), Event(now + 1, PostDeleted(AUTHOR, user_id(3)))]
    found = await written_and_rebuilt(store_url, url, events, 500, 40, Tuning())
    assert keys.post(user_id(1)) not in found
    assert found[keys.post(user_id(3))] == {"deleted": str(now + 1)}
    assert found[keys.gone(keys.posts(AUTHOR))] == {str(user_id(3)): now + 1}


async def test_a_user_without_credentials_is_not_rebuilt(store_url: str, url: str) -> None:
    archive = Archive(url)
    await write_archive(archive, signed_up(1))
    void = EventRow(user_id(1), "UserCreated", user_id(1), None, '{"login":"user0","name":"","nonce":"other"}')
    await archive.append([void], [], store="lost", watermark=user_id(0), up_to=user_id(1))
    await archive.close()
    found = await rebuilt(store_url, url, Tuning())
    assert set(found) == {keys.user(user_id(0)), keys.login("user0")}


@pytest.mark.parametrize("body", [None, "[]"])
async def test_a_damaged_event_is_left_out_and_reported(store_url: str, url: str, body: str | None) -> None:
    archive = Archive(url)
    await write_archive(archive, signed_up(2))
    number = user_id(2)
    damaged = EventRow(number, "ProfileChanged", AUTHOR, None, body)
    await archive.append([damaged], [], store="lost", watermark=user_id(1), up_to=number)
    await archive.close()
    await empty_store(store_url)
    graph = await opened(store_url, url)
    try:
        report = await graph.rebuild().run()
        assert report.damaged == 1
        assert await graph.users.ids_of_logins(["user0", "user1"]) == [user_id(0), user_id(1)]
    finally:
        await graph.close()
