"""The comparison of acknowledged changes with what can be read."""

import asyncio
import time
from collections.abc import Iterator

from tests.faults.checker.listeners import EventsListener, HomeListener
from tests.faults.checker.person import Person
from tests.faults.checker.reading import Reading, read

SETTLE_SECONDS = 60.0


async def differences(
    people: list[Person],
    stream: EventsListener,
    homes: list[HomeListener],
    *,
    lossy: bool = False,
    gaps: bool = False,
    seconds: float = SETTLE_SECONDS,
) -> list[str]:
    """Return the differences that remain after workers had time to complete what faults interrupted.

    With `lossy`, acknowledged changes may be missing if a `Gap` was sent, but all derived data must agree with the
    rest. With `gaps`, there may be a `Gap`, but no change may be missing.
    """
    deadline = time.monotonic() + seconds
    while True:
        readings = {person.id: await read(person) for person in people}
        found = [
            *(error for person in people for error in compare(person, readings, lossy=lossy and bool(stream.gaps))),
            *compare_stream(people, stream, lossy=lossy or gaps),
            *(error for home in homes for error in compare_home(home, readings, lossy=lossy or gaps)),
        ]
        if not found or time.monotonic() > deadline:
            return [*found, *(f"{person.login}: {person.unexpected()}" for person in people if person.unexpected())]
        await asyncio.sleep(0.5)


def compare(person: Person, readings: dict[str, Reading], *, lossy: bool) -> Iterator[str]:
    """Yield the differences between a user's acknowledged and readable data, and between that and other users' data."""
    mine = readings[person.id]
    if not lossy:
        yield from difference(f"{person.login}'s posts", set(person.posts), set(mine.posts))
        yield from difference(f"{person.login} follows", person.following, mine.following)
        yield from difference(f"{person.login}'s deleted posts", set(), mine.existing)
        yield from difference(f"{person.login}'s posts that were not found", set(), person.not_found)
    wrong = {post for post, text in mine.posts.items() if person.posts.get(post, text) != text}
    yield from difference(f"{person.login}'s texts", set(), wrong)
    followers = {user for user, other in readings.items() if person.id in other.following}
    yield from difference(f"{person.login}'s followers", followers, mine.followers)
    home = {post for author in {person.id, *mine.following} for post in readings[author].posts}
    yield from difference(f"{person.login}'s home", home, set(mine.home))
    lengths = (len(mine.posts), len(mine.followers), len(mine.following))
    if mine.counts != lengths or mine.listed != sum(lengths):
        yield f"{person.login}'s counts are {mine.counts}, but the lists have {lengths}, and {mine.listed} entries"


def compare_stream(people: list[Person], stream: EventsListener, *, lossy: bool) -> Iterator[str]:
    """Yield the events that the stream of all users lacks, repeats, or has in the wrong order."""
    repeated = {post for count in (stream.published, stream.deleted) for post, times in count.items() if times > 1}
    yield from difference("sent twice", set(), repeated)
    if lossy and stream.gaps:
        return
    if stream.gaps:
        yield f"the stream has gaps: {stream.gaps}"
    for person in people:
        received = stream.by_author.get(person.id, [])
        yield from difference(f"{person.login}'s posts in the stream", set(person.posts), {*received} - person.deleted)
        left = [post for post in received if post in person.posts]
        if left != [post for post in person.posts if post in set(left)]:
            yield f"{person.login}'s posts came in the wrong order"
        yield from difference(
            f"{person.login}'s deletions in the stream", person.deleted, person.deleted & set(stream.deleted)
        )
        followed = {followee for follower, followee in stream.follows if follower == person.id}
        yield from difference(f"{person.login} follows, by the stream", person.following, followed)


def compare_home(home: HomeListener, readings: dict[str, Reading], *, lossy: bool) -> Iterator[str]:
    """Yield the differences between a home timeline that a client keeps up to date and the one that it would fetch."""
    login = home.person.login
    yield from difference(f"{login}'s live home", set(readings[home.person.id].home), set(home.held))
    if not lossy:
        yield from difference(f"{login}'s posts that only a refetch showed", set(), set(home.due))
        if home.gaps:
            yield f"{login}'s live home has gaps: {home.gaps}"


def difference(what: str, expected: set[str], actual: set[str]) -> Iterator[str]:
    """Yield a sentence if two sets differ."""
    if expected != actual:
        missing, surplus = sorted(expected - actual), sorted(actual - expected)
        yield f"{what}: {len(missing)} missing {missing[:3]}, {len(surplus)} too many {surplus[:3]}"
