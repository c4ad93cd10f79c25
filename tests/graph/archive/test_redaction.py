"""Tests of events that undo others in the archive, in the order of the log and in that of a failover."""

from itertools import permutations
from random import Random

from graph.archive.archive import Archive
from graph.archive.rows import EventRow
from tests.graph.archive.events import append, deletion, ended, followed, held, post, unfollowed


def redacted(number: int) -> EventRow:
    return EventRow(number, "Redacted", 1, None, None)


async def test_a_deletion_takes_the_content_of_its_post(archive: Archive) -> None:
    """A deletion also removes the digest of the text. Other posts stay."""
    await append(archive, post(1), post(2), post(3))
    await append(archive, deletion(4, 2))

    assert await held(archive) == [post(1), redacted(2), post(3), deletion(4, 2, body="{}")]


async def test_a_deletion_keeps_where_its_post_belonged(archive: Archive) -> None:
    body = '{"terms":"x","latitude":1.5,"longitude":2,"reply_to":7,"root":6,"repost_of":5}'
    await append(archive, deletion(9, 8, body=body))

    assert await held(archive) == [deletion(9, 8, body='{"reply_to":7,"root":6,"repost_of":5}')]


async def test_a_post_and_its_deletion_arrive_together(archive: Archive) -> None:
    await append(archive, post(1), deletion(2, 1))

    assert await held(archive) == [redacted(1), deletion(2, 1, body="{}")]


async def test_a_post_that_arrives_after_its_deletion_is_redacted(archive: Archive) -> None:
    """The post may be in a later batch whose range does not contain the deletion. Other posts are not affected."""
    await append(archive, deletion(50, 10), up_to=60)
    await append(archive, post(10), post(11), low=5, up_to=20)

    assert await held(archive) == [redacted(10), post(11), deletion(50, 10, body="{}")]


async def test_a_deletion_redacts_posts_only(archive: Archive) -> None:
    """A damaged deletion that names another event does not remove its content."""
    await append(archive, followed(1), deletion(2, 1))

    assert (await held(archive))[0] == followed(1)


async def test_more_deletions_than_a_statement_lists(archive: Archive) -> None:
    await append(archive, *(post(number) for number in range(1, 2001)))
    await append(archive, *(deletion(number + 2000, number) for number in range(1, 2001)))

    assert {row.kind for row in (await held(archive))[:2000]} == {"Redacted"}


async def test_an_unfollow_ends_the_follow_before_it(archive: Archive) -> None:
    """Follows of other pairs, and the opposite follow, continue."""
    await append(archive, followed(1), followed(2, 2, 1), followed(3, 1, 3), followed(4, 3, 2))
    await append(archive, unfollowed(5))

    assert await ended(archive) == {1: 5}


async def test_each_follow_is_ended_by_the_next_unfollow(archive: Archive) -> None:
    """The next unfollow ends each follow, within one batch and across several."""
    await append(archive, followed(1), unfollowed(2), followed(3), unfollowed(4), followed(5))
    await append(archive, unfollowed(6), followed(7))

    assert await ended(archive) == {1: 2, 3: 4, 5: 6}


async def test_toggles_end_alike_in_any_order_of_arrival(archive: Archive) -> None:
    """Each order of two follows and two unfollows has the same result."""
    toggles = [followed, unfollowed, followed, unfollowed]
    orders = list(permutations(range(4)))
    for step in range(4):
        batch = [toggles[order[step]](100 * order[step] + user, user) for user, order in enumerate(orders, 1)]
        await append(archive, *sorted(batch), low=0, up_to=400)

    assert await ended(archive) == {at: at + 100 for user in range(1, 25) for at in (user, 200 + user)}


async def test_any_arrival_equals_the_order_of_the_log(archive: Archive) -> None:
    """Events of three users arrive in batches and in any order, as after a failover."""
    random = Random(5)  # noqa: S311 - reproducible
    for _ in range(5):
        last = (await archive.state()).watermark
        log = [event_of(random, number, last) for number in range(last + 1, last + 61)]
        remaining = log[:]
        while remaining:
            batch = sorted(random.sample(remaining, random.randrange(1, len(remaining) + 1)))
            remaining = [row for row in remaining if row not in batch]
            await append(archive, *batch, low=last, up_to=log[-1].number)

        rows = await archive.range(last, log[-1].number, 100)
        assert [row.number for row in rows] == [row.number for row in log]
        assert {row.number: row.body for row in rows if row.kind == "PostPublished"} == live_posts(log)
        assert {at: by for at, by in (await ended(archive)).items() if at > last} == ended_follows(log)


def event_of(random: Random, number: int, last: int) -> EventRow:
    """Return a random event. A deletion names a number above `last`, which another event may have."""
    pair = (random.choice([1, 2, 3]), random.choice([1, 2, 3]))
    gone = random.randrange(last, number)
    return random.choice([post(number), followed(number, *pair), unfollowed(number, *pair), deletion(number, gone)])


def live_posts(log: list[EventRow]) -> dict[int, str | None]:
    """Return the bodies of the posts that no deletion names."""
    deleted = {row.subject for row in log if row.kind == "PostDeleted"}
    return {row.number: row.body for row in log if row.kind == "PostPublished" and row.number not in deleted}


def ended_follows(log: list[EventRow]) -> dict[int, int]:
    """Return the unfollow that ended each follow, by the follow's number, computed in the order of the log."""
    going: dict[tuple[int, int | None], list[int]] = {}
    found: dict[int, int] = {}
    for row in log:
        pair = (row.actor, row.subject)
        if row.kind == "Followed":
            going.setdefault(pair, []).append(row.number)
        elif row.kind == "Unfollowed":
            found.update(dict.fromkeys(going.pop(pair, ()), row.number))
    return found
