"""The comparison of acknowledged changes with what can be read."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tests.faults.checker.acknowledged import Acknowledged
from tests.faults.checker.listeners import EventsListener, HomeListener, NotificationsListener
from tests.faults.checker.person import Person
from tests.faults.checker.reading import Notice, Reading, as_acknowledged, read

SETTLE_SECONDS = 60.0
AGAIN_SECONDS = 1.0  # between two comparisons
UNREAD = 100  # the highest number of unread notifications that is counted
KEPT = 1000  # notifications of a user, including those of deleted posts
OF_NEW_POSTS = ("REPLY", "QUOTE", "MENTION")
FIRST = 50  # notifications that a client with the first page must have


class Expected:
    """What follows from the acknowledged changes, computed once for all users, in O(n) for n changes."""

    def __init__(self, known: Acknowledged) -> None:
        self.known, self.world = known, known.world
        self.likers, self.reposters = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
        self.replies, self.reposts = Counter[int](), Counter[int]()
        for liker, post in self.world.likes:
            self.likers[post].add(liker)
        for user, original in self.world.reposted:
            self.reposters[original].add(user)
        for body in self.world.posts.values():
            self.replies[body.reply_to or 0] += 1
            self.reposts[body.repost_of if body.repost_of and body.is_plain_repost else 0] += 1

    def counts(self, post: int) -> tuple[int, int, int]:
        """Return the likes, replies and reposts of a post. Those of a plain repost count for its original."""
        return len(self.likers[post]), self.replies[post], self.reposts[post]

    def shown(self, viewer: int, posts: Iterable[int]) -> set[int]:
        """Return those of the given posts that a viewer can see. A plain repost is hidden with its original."""
        hidden, bodies = self.world.hidden(viewer), self.world.posts
        return {
            post
            for post in posts
            if (body := bodies.get(post)) is not None
            and hidden.isdisjoint({body.author} if body.text else {body.author, body.repost_of_author})
        }

    def notices(self, user: int) -> set[Notice]:
        """Return a user's notifications. A post notifies a user for the first reason that applies."""
        world, found = self.world, set[Notice]()
        silenced = world.hidden(user) | {other for muter, other in world.mutes if muter == user} | {user}
        for post, body in world.posts.items():
            groups = {"LIKE": self.likers[post], "REPOST": self.reposters[post]} if body.author == user else {}
            found |= {
                Notice(kind, post, frozenset(actors - silenced), len(actors - silenced))
                for kind, actors in groups.items()
                if actors - silenced
            }
            reasons = {"REPLY": body.reply_to_author == user, "QUOTE": body.repost_of_author == user}
            reasons["MENTION"] = user in body.mentions
            kind = next((kind for kind, applies in reasons.items() if applies), None)
            if kind and body.text and body.author not in silenced:
                found.add(Notice(kind, post, frozenset({body.author}), 1))
        return found

    def followers(self, user: int) -> set[int]:
        """Return the followers of a user."""
        return {follower for follower, followee in self.world.follows if followee == user}


async def differences(
    people: list[Person],
    stream: EventsListener,
    homes: list[HomeListener],
    feeds: list[NotificationsListener],
    *,
    lossy: bool = False,
    gaps: bool = False,
    seconds: float = SETTLE_SECONDS,
) -> list[str]:
    """Return the differences that remain after workers have had time to complete what faults interrupted.

    With `lossy`, acknowledged changes may be missing if a `Gap` was sent, but all derived data must agree with the
    rest. With `gaps`, there may be a `Gap`, but no change may be missing.
    """
    deadline = time.monotonic() + seconds
    while True:
        lost = lossy and stream.has_lost
        readings = {person.number: await read(person, people[i - 1]) for i, person in enumerate(people)}
        found = [
            *await asyncio.to_thread(compare_all, people, readings, lossy=lost),
            *compare_stream(people, stream, lossy=lossy, gaps=gaps),
            *(error for home in homes for error in compare_home(home, readings, lossy=lossy or gaps)),
            *(error for feed in feeds for error in compare_feed(feed, readings, lossy=lossy or gaps)),
        ]
        if not found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(AGAIN_SECONDS)


def compare_all(people: list[Person], readings: dict[int, Reading], *, lossy: bool) -> list[str]:
    """Return the differences between what users can read and what was acknowledged to all of them.

    With `lossy`, the rest is compared with what all users can read about themselves.
    """
    expected = Expected(as_acknowledged(people, readings) if lossy else people[0].acknowledged)
    return [error for person in people for error in compare(people, person, readings, expected, lossy=lossy)]


def compare(
    people: list[Person], person: Person, readings: dict[int, Reading], expected: Expected, *, lossy: bool
) -> Iterator[str]:
    """Yield the differences between what a user can read and what is expected."""
    mine, login, texts = readings[person.number], person.login, expected.known.texts
    if not lossy:
        yield from difference(f"{login}'s deleted posts", set(), mine.existing)
    wrong = {post for post, each in mine.posts.items() if texts.get(post, each.text) != each.text}
    yield from difference(f"{login}'s texts", set(), wrong)
    yield from compare_users(person, mine, expected)
    yield from compare_posts(person, mine, expected, neighbour_of(people, person))
    yield from compare_lists(person, mine, expected.known)
    yield from compare_notices(person, mine, expected, lossy=lossy)


def neighbour_of(people: list[Person], person: Person) -> int:
    """Return the other user whose timeline a user has read."""
    return people[people.index(person) - 1].number


def compare_users(person: Person, mine: Reading, expected: Expected) -> Iterator[str]:
    """Yield the differences in whom a user follows, mutes and blocks, in followers, and in the user's counts."""
    user, world, login = person.number, expected.world, person.login
    following = {other for follower, other in world.follows if follower == user}
    followers = expected.followers(user)
    yield from difference(f"{login} follows", following, mine.following)
    yield from difference(f"{login}'s followers", followers, mine.followers)
    yield from difference(f"{login} mutes", {other for muter, other in world.mutes if muter == user}, mine.muted)
    yield from difference(f"{login} blocks", {other for who, other in world.blocks if who == user}, mine.blocked)
    counts = len(world.own(user)), len(followers), len(following)
    if mine.counts != counts:
        yield f"{login}'s counts are {mine.counts} instead of {counts}"
    read_once = (mine.followers, mine.following, mine.muted, mine.blocked, mine.liked, mine.bookmarked)
    if mine.entries != sum(map(len, read_once)):
        yield f"{login}'s lists contain something twice: {mine.entries} entries"


def compare_posts(person: Person, mine: Reading, expected: Expected, neighbour: int) -> Iterator[str]:
    """Yield the differences in a user's timelines, likes and bookmarks, and in the counts of the user's posts."""
    user, world, login = person.number, expected.world, person.login
    hidden = world.hidden(user)

    def shown(posts: Iterable[int]) -> set[int]:
        return expected.shown(user, posts)

    yield from difference(f"{login}'s timeline", shown(world.own(user)), set(mine.timeline))
    yield from difference(f"{login}'s replies", shown(world.replied(user)), set(mine.replies))
    yield from difference(f"{login}'s home", set(world.home(user)), set(mine.home))
    of_neighbour = set() if neighbour in hidden else shown(world.own(neighbour))
    yield from difference(f"the timeline of {neighbour} as {login} sees it", of_neighbour, set(mine.neighbour))
    yield from difference(f"{login} likes", shown(post for liker, post in world.likes if liker == user), mine.liked)
    bookmarks = expected.known.bookmarks
    bookmarked = shown(post for owner, post in bookmarks if owner == user)
    yield from difference(f"{login}'s bookmarks", bookmarked, mine.bookmarked)
    for post, each in mine.posts.items():
        if each.counts != expected.counts(post):
            yield f"the counts of {login}'s post {post} are {each.counts} instead of {expected.counts(post)}"
        reposted = (user, post) in world.reposted
        mine_of = (user, post) in world.likes, (user, post) in bookmarks, reposted
        if each.mine != mine_of:
            yield f"{login}'s post {post} shows {each.mine} instead of {mine_of} as what {login} has done"
        likers = expected.likers[post] - hidden
        yield from difference(f"the likes of {login}'s post {post}", likers, mine.likers[post])


def compare_lists(person: Person, mine: Reading, known: Acknowledged) -> Iterator[str]:
    """Yield the differences in a user's lists of users and their timelines."""
    user, world, login = person.number, known.world, person.login
    hidden = world.hidden(user)
    expected = known.lists_of(user)
    yield from difference(f"{login}'s lists", set(expected), set(mine.lists))
    for number in mine.lists.keys() & expected.keys():
        before, after = expected[number], mine.lists[number]
        members = before.members - hidden
        if (before.name, len(before.members)) != (after.name, mine.sizes[number]):
            yield f"{login}'s list {number} is {after.name} of {mine.sizes[number]}, not {before}"
        yield from difference(f"the members of {login}'s list {number}", set(members), set(after.members))
        timeline = set(world.merged(user, before.members))
        yield from difference(f"{login}'s list {number}", timeline, set(mine.list_timelines[number]))


def compare_notices(person: Person, mine: Reading, expected: Expected, *, lossy: bool) -> Iterator[str]:
    """Yield the differences in a user's notifications, and in which of them are read.

    Notifications of follows are grouped by day, so they are all compared together. After midnight, and if changes may
    be lost, followers may be missing: a user who follows again after an unfollow notifies nobody, even if the first
    follow was lost.
    """
    user, login, found = person.number, person.login, set(mine.notices.values())
    posts, told = expected.notices(user), {each for each in found if each.kind != "FOLLOW"}
    muted = {other for muter, other in expected.world.mutes if muter == user}
    followers = expected.followers(user) - muted
    follows = {actor for each in found if each.kind == "FOLLOW" for actor in each.actors}
    are_all_kept = len(expected.known.authors) < KEPT
    if are_all_kept and not lossy and expected.known.day == datetime.now(UTC).date():
        yield from difference(f"{login} is notified of follows", followers, follows)
    else:
        yield from difference(f"{login} is notified of follows", followers & follows, follows)
    if are_all_kept:
        yield from difference(f"{login}'s notifications", posts, told)
    else:  # older ones may have been dropped; follows, likes and reposts move up
        oldest = min((each.post for each in told if each.kind in OF_NEW_POSTS), default=0)
        kept = {each for each in posts if each.kind in OF_NEW_POSTS and each.post >= oldest}
        yield from difference(f"{login}'s notifications", kept | told & posts, told)
    unread = {cursor for cursor in mine.notices if cursor > expected.known.seen.get(user, "")}
    yield from difference(f"{login}'s unread notifications", unread, mine.unread)
    if mine.unread_count != min(UNREAD, len(mine.unread)):
        yield f"{login} has {mine.unread_count} unread notifications instead of {len(mine.unread)}"


def compare_stream(people: list[Person], stream: EventsListener, *, lossy: bool, gaps: bool) -> Iterator[str]:
    """Yield the events that the stream of all users lacks, repeats, or has in the wrong order.

    With `gaps`, the stream sends the events after a `Gap` again, and none may be missing. The same holds with `lossy`
    if the only gaps are those of a repair, which follows each failover.
    """
    repeated = {post for count in (stream.published, stream.deleted) for post, times in count.items() if times > 1}
    yield from difference("sent twice", set(), repeated)
    if any(posts != sorted(posts) for posts in stream.by_author.values()):
        yield "posts came in the wrong order"
    if lossy and stream.has_lost:
        return
    if stream.gaps and not gaps and not lossy:
        yield f"the stream has gaps: {stream.gaps}"
    known = people[0].acknowledged
    for person in people:
        login, user = person.login, person.number
        posts = {post for post, body in known.world.posts.items() if body.author == user}
        received = {post for post, author in stream.received.items() if author == user}
        yield from difference(f"{login}'s posts in the stream", posts, received & posts)
        if not stream.gaps:  # those before a gap may have been lost
            yield from difference(f"{login}'s unknown posts in the stream", set(), received - posts - known.ended)
        deleted = {post for post in known.deleted if known.authors[post] == user}
        yield from difference(f"{login}'s deletions in the stream", deleted, deleted & stream.removed)
        follows, streamed = [
            {pair for pair in pairs if pair[0] == user} for pairs in (known.world.follows, stream.follows)
        ]
        yield from difference(f"{login} follows, by the stream", follows, streamed - known.cut)


def compare_home(home: HomeListener, readings: dict[int, Reading], *, lossy: bool) -> Iterator[str]:
    """Yield the differences between a home timeline that a client keeps up to date and the one that it would fetch."""
    login = home.person.login
    newest = {post for post in readings[home.person.number].home if post >= home.floor}
    yield from difference(f"{login}'s live home", newest, set(home.held))
    if not lossy:
        yield from difference(f"{login}'s posts that only a refetch showed", set(), set(home.due))
        if home.gaps:
            yield f"{login}'s live home has gaps: {home.gaps}"


def compare_feed(feed: NotificationsListener, readings: dict[int, Reading], *, lossy: bool) -> Iterator[str]:
    """Yield the differences between the newest notifications that a client holds and those that it would fetch."""
    login, notices = feed.person.login, readings[feed.person.number].notices
    newest, held = [dict(sorted(some.items(), reverse=True)[:FIRST]) for some in (notices, feed.held)]
    if newest != held:
        differing = {cursor for cursor in newest.keys() | held.keys() if newest.get(cursor) != held.get(cursor)}
        examples = [(newest.get(cursor), held.get(cursor)) for cursor in sorted(differing)[:3]]
        yield f"{login}'s live notifications: {len(differing)} differ, such as {examples}"
    if feed.gaps and not lossy:
        yield f"{login}'s live notifications have gaps: {feed.gaps}"


def difference(what: str, expected: set[Any], actual: set[Any]) -> Iterator[str]:
    """Yield a sentence if two sets differ."""
    if expected != actual:
        missing, surplus = [sorted(some, key=str) for some in (expected - actual, actual - expected)]
        yield f"{what}: {len(missing)} missing {missing[:3]}, {len(surplus)} too many {surplus[:3]}"
