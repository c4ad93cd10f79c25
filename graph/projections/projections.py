"""Projections: from events to the keys that reads use.

The API projects an event before it answers, the worker projects every event again; any of it may be repeated, by
anyone, in any order of events, and the result is the same. Within one event the order of steps is what makes it right:
a follower stands in the followee's list before the followee stands in theirs, so no fan-out misses anyone, and a
post stands in its author's timeline before anyone's followers are read.
"""

import asyncio
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

import orjson

from graph import keys
from graph.home.delivery import PULL, DeliveryModes
from graph.home.fan_out import FanOut, FanOuts
from graph.log.events import (
    Event,
    Followed,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    PostPublished,
    ProfileChanged,
    SessionsEnded,
    Unfollowed,
    UserCreated,
)
from graph.log.log import Log
from graph.model import number_at
from graph.store.commands import Command, script
from graph.store.store import Store

E = TypeVar("E")

COMMANDS_PER_TRIP = 500
PEOPLE_PER_SCRIPT = 1000
OWNERS_PER_SCRIPT = 1000
CHANGES_PER_SCRIPT = 500
POSTS_PER_SCRIPT = 1000
AT_ONCE = 16


class Projections:
    """Projects events.

    `sync_followers` is how many followers a publishing request serves before it answers, `archivable_from` how many
    hot posts an author has when the archive may take some: infinity if there is no archive.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        fan_outs: FanOuts,
        delivery_modes: DeliveryModes,
        *,
        sync_followers: int,
        archivable_from: float,
        tombstones_live: timedelta,
    ) -> None:
        self._store = store
        self._log = log
        self._fan_outs = fan_outs
        self._delivery_modes = delivery_modes
        self._sync_followers = sync_followers
        self._archivable_from = archivable_from
        self._tombstones_live = tombstones_live

    async def project(self, events: Sequence[Event], *, whole: bool, fan_out: bool = True) -> None:
        """Project events: wholly, or only what must be seen when a mutation returns. Safe to repeat.

        Without fan-out, posts come into no home cache: whoever projects so has to forget all caches afterwards.

        A publish costs three round trips and one for every 1,000 followers; a sign-up, follow or unfollow two, a
        deletion two, the others one. A batch of events shares the trips. Wholly projected, a post with very many
        followers leaves tasks behind (`graph.home.fan_out`), and an author with very many posts, or a deletion,
        leaves work for the archive (`graph.archive.archiver`).
        """
        await self._create_users(of_type(events, UserCreated))
        await self._change_profiles(of_type(events, ProfileChanged))
        await self._change_permissions([*of_type(events, PermissionGranted), *of_type(events, PermissionRevoked)])
        await self._end_sessions(of_type(events, SessionsEnded))
        await self._follow(of_type(events, Followed))
        await self._publish(of_type(events, PostPublished), whole=whole, fan_out=fan_out)
        await self._unfollow(of_type(events, Unfollowed))
        await self._delete(of_type(events, PostDeleted), whole=whole)

    async def catch_up(self, viewer: int, events: Sequence[Event]) -> None:
        """Project events that concern a viewer so that the viewer's next page shows them; no cache is filled by it."""
        if events:
            await self.project(events, whole=False, fan_out=False)
            await self._store.send([("UNLINK", keys.home(viewer))])

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        replies: list[Any] = []
        for start in range(0, len(commands), COMMANDS_PER_TRIP):
            replies += await self._store.send(commands[start : start + COMMANDS_PER_TRIP])
        return replies

    async def _create_users(self, events: Sequence[tuple[int, UserCreated]]) -> None:
        groups = list(self._store.together(events, lambda event: keys.login(event[1].login), PEOPLE_PER_SCRIPT))
        commands = []
        for group in groups:
            words = [word for number, body in group for word in (body.nonce, number)]
            commands.append(script("settle_login").call([keys.login(body.login) for _, body in group], "", *words))
        replies = await self._send(commands)
        await self._set_profiles(
            [
                (number, [str(number), "id", str(number), "login", body.login, "name", body.name, "bio", body.bio])
                for group, outcomes in zip(groups, replies, strict=True)
                for (number, body), outcome in zip(group, outcomes, strict=True)
                if outcome == "won"
            ]
        )

    async def _change_profiles(self, events: Sequence[tuple[int, ProfileChanged]]) -> None:
        changes: list[tuple[int, list[str]]] = []
        for number, body in events:
            fields = (("name", body.name), ("bio", body.bio))
            words = [word for name, value in fields if value is not None for word in (name, value)]
            changes.append((body.user, [str(number), *words]))
        await self._set_profiles(changes)

    async def _set_profiles(self, changes: Sequence[tuple[int, list[str]]]) -> None:
        """Set fields of people's profiles: for each the number of the event, then fields and values by turns."""
        commands = []
        for group in self._store.together(changes, lambda change: keys.user(change[0]), PEOPLE_PER_SCRIPT):
            names = [keys.user(user) for user, _ in group]
            commands.append(script("set_profile").call(names, orjson.dumps([words for _, words in group])))
        await self._send(commands)

    async def _change_permissions(self, events: Sequence[tuple[int, PermissionGranted | PermissionRevoked]]) -> None:
        commands = []
        for group in self._store.together(events, lambda event: keys.user(event[1].user), PEOPLE_PER_SCRIPT):
            names = [keys.user(body.user) for _, body in group]
            words = [
                word for number, body in group for word in (keys.permission(body.permission), signed(number, body))
            ]
            commands.append(script("set_permission").call(names, *words))
        await self._send(commands)

    async def _end_sessions(self, events: Sequence[tuple[int, SessionsEnded]]) -> None:
        await self._send([("HDEL", keys.sessions(body.user), *body.sessions) for _, body in events if body.sessions])

    async def _follow(self, events: Sequence[tuple[int, Followed]]) -> None:
        await self._send(self._adds(keys.followers, ((e.followee, n, e.follower) for n, e in events)))
        await self._send(self._adds(keys.following, ((e.follower, n, e.followee) for n, e in events), forget=True))

    async def _unfollow(self, events: Sequence[tuple[int, Unfollowed]]) -> None:
        await self._send(self._removals(keys.following, ((e.follower, e.followee, n) for n, e in events), forget=True))
        await self._send(self._removals(keys.followers, ((e.followee, e.follower, n) for n, e in events)))

    def _adds(
        self, key: Callable[[int], str], changes: Iterable[tuple[int, int, int]], *, forget: bool = False
    ) -> list[Command]:
        """Make the commands that add (owner, number, member) to versioned sets, and forget the owners' home caches."""
        commands = []
        for group in self._store.together(grouped(changes), lambda change: key(change[0]), OWNERS_PER_SCRIPT):
            names = [name for owner, _ in group for name in set_keys(key, owner, forget=forget)]
            pairs = orjson.dumps([pairs for _, pairs in group])
            commands.append(script("add").call(names, 3 if forget else 2, pairs))
        return commands

    def _removals(
        self, key: Callable[[int], str], changes: Iterable[tuple[int, int, int]], *, forget: bool = False
    ) -> list[Command]:
        """Make the commands that remove (owner, member, number) from versioned sets."""
        remove, trim = script("remove"), self._trimmable()
        return [remove.call(set_keys(key, owner, forget=forget), trim, *pairs) for owner, pairs in grouped(changes)]

    def _trimmable(self) -> int:
        """Give the highest number of a tombstone that no late or repeated event can still need."""
        return max(0, min(self._log.known_watermark, number_at(datetime.now(UTC) - self._tombstones_live)))

    async def _publish(self, events: Sequence[tuple[int, PostPublished]], *, whole: bool, fan_out: bool) -> None:
        posts = await self._list(await self._write(events))
        await self._note_rewritten([post.number for post in posts if post.state == "archived"])
        listed = [post for post in posts if post.state == "listed"]
        if whole:
            await self._note_archivable(listed)
        if fan_out:
            await at_once([partial(self._fan_out, post, whole=whole) for post in listed])
        else:
            newest = list({post.author: post for post in listed}.values())
            await at_once([partial(self._update_modes, newest[n::AT_ONCE], whole=whole) for n in range(AT_ONCE)])

    async def _write(self, events: Sequence[tuple[int, PostPublished]]) -> list[tuple[int, PostPublished]]:
        """Write posts' records; give those that were not deleted."""
        groups = list(self._store.together(events, lambda event: keys.post(event[0]), POSTS_PER_SCRIPT))
        commands = []
        for group in groups:
            records = orjson.dumps([record(number, body) for number, body in group])
            commands.append(script("write_post").call([keys.post(number) for number, _ in group], records))
        replies = await self._send(commands)
        return [
            event
            for group, stands in zip(groups, replies, strict=True)
            for event, stood in zip(group, stands, strict=True)
            if stood
        ]

    async def _list(self, events: Sequence[tuple[int, PostPublished]]) -> list["Listed"]:
        """Put posts into their authors' timelines."""
        groups = list(self._store.together(events, lambda event: keys.posts(event[1].author), POSTS_PER_SCRIPT))
        commands = []
        for group in groups:
            names = [name for _, body in group for name in listing_keys(body.author)]
            commands.append(script("list_post").call(names, *(number for number, _ in group)))
        replies = await self._send(commands)
        return [
            Listed(number, body.author, *answer)
            for group, answers in zip(groups, replies, strict=True)
            for (number, body), answer in zip(group, answers, strict=True)
        ]

    async def _note_rewritten(self, archived: Sequence[int]) -> None:
        """Note posts that the archive should hold, though a repeated event has written their records again."""
        if archived:
            words = [word for post in archived for word in (post, post)]
            await self._store.run("ZADD", keys.REWRITTEN, *words)

    async def _note_archivable(self, listed: Sequence["Listed"]) -> None:
        """Note authors with more posts than the store should hold: the archiver works through them."""
        full = {post.author: post.number for post in listed if post.hot >= self._archivable_from}
        if full:
            words = [word for author, number in full.items() for word in (number, author)]
            await self._store.run("ZADD", keys.ARCHIVABLE, *words)

    async def _fan_out(self, post: "Listed", *, whole: bool) -> None:
        """Bring a listed post to its author's home cache and to the followers', unless reads merge this author."""
        mode = post.mode
        if whole or post.followers <= self._sync_followers:
            mode = await self._update_mode(post, whole=whole)
        in_tasks = whole and mode != PULL and self._fan_outs.is_long(post.followers)
        most = float("inf") if whole else self._sync_followers
        if mode == PULL or in_tasks or not post.followers:
            most = 0
        await self._fan_outs.push(FanOut(post.number, post.author), most, own=True)
        if in_tasks:
            await self._fan_outs.open(post.number, post.author, post.followers)

    async def _update_modes(self, posts: Iterable["Listed"], *, whole: bool) -> None:
        for post in posts:
            await self._update_mode(post, whole=whole)

    async def _update_mode(self, post: "Listed", *, whole: bool) -> str:
        return await self._delivery_modes.update(post.author, post.number, post.mode, post.followers, take_over=whole)

    async def _delete(self, events: Sequence[tuple[int, PostDeleted]], *, whole: bool) -> None:
        bodies = {body.post: (number, body.author) for number, body in sorted(events, key=itemgetter(0), reverse=True)}
        counts: dict[int, int] = {}
        groups = list(self._store.together(bodies, keys.post, POSTS_PER_SCRIPT))
        bury = script("bury_post")
        replies = await self._send(
            [bury.call([keys.post(post) for post in group], *(bodies[post][0] for post in group)) for group in groups]
        )
        for group, numbers in zip(groups, replies, strict=True):
            counts.update(zip(group, map(int, numbers), strict=True))
        trim = self._trimmable()
        by_author = grouped((author, post, counts[post]) for post, (_, author) in bodies.items())
        await self._send(
            [
                script("unlist_post").call([*set_keys(keys.posts, author), keys.cold(author)], trim, *pairs)
                for author, pairs in by_author
            ]
        )
        if whole and counts and self._archivable_from < math.inf:
            words = [word for post, number in counts.items() for word in (number, post)]
            await self._store.run("ZADD", keys.DELETED, *words)


@dataclass(frozen=True, slots=True)
class Listed:
    """What became of a post when it was put into its author's timeline, and what its fan-out needs to know."""

    number: int
    author: int
    state: str
    mode: str = ""
    followers: int = 0
    hot: int = 0


async def at_once(work: Sequence[Callable[[], Awaitable[object]]]) -> None:
    """Do things, some at once; raise the first failure, but only when what went on beside it has ended."""
    for start in range(0, len(work), AT_ONCE):
        outcomes = await asyncio.gather(*(do() for do in work[start : start + AT_ONCE]), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


def of_type(events: Iterable[Event], kind: type[E]) -> list[tuple[int, E]]:
    """Pick the events of one kind, as pairs of number and event."""
    return [(event.number, event.body) for event in events if isinstance(event.body, kind)]


def signed(number: int, body: PermissionGranted | PermissionRevoked) -> int:
    """Give the form in which an account remembers such an event: its number, negative for a revocation."""
    return number if isinstance(body, PermissionGranted) else -number


def set_keys(key: Callable[[int], str], owner: int, *, forget: bool = False) -> list[str]:
    """Name a versioned set, its tombstones and, to forget it, the owner's home cache."""
    name = key(owner)
    return [name, keys.gone(name), keys.home(owner)] if forget else [name, keys.gone(name)]


def grouped(changes: Iterable[tuple[int, int, int]]) -> Iterable[tuple[int, list[str]]]:
    """Group pairs by owner, as flat words for one script call each, at most 500 pairs long."""
    words: defaultdict[int, list[str]] = defaultdict(list)
    for owner, one, other in changes:
        words[owner] += (str(one), str(other))
    for owner, pairs in words.items():
        for start in range(0, len(pairs), 2 * CHANGES_PER_SCRIPT):
            yield owner, pairs[start : start + 2 * CHANGES_PER_SCRIPT]


def listing_keys(author: int) -> tuple[str, str, str, str]:
    """Name what putting a post into its author's timeline touches."""
    name = keys.posts(author)
    return name, keys.gone(name), keys.delivery(author), keys.followers(author)


def record(number: int, body: PostPublished) -> list[str]:
    """Give a post's record: fields and values by turns."""
    words = ["id", str(number), "author", str(body.author), "text", body.text]
    for name, value in (("platform", body.platform), ("latitude", body.latitude), ("longitude", body.longitude)):
        if value is not None:
            words += (name, str(value))
    return words
