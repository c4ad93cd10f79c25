"""Projections: from facts to the keys that reads use.

The API projects a fact before it answers, the worker projects every fact again; any of it may be repeated, by
anyone, in any order of facts, and the result is the same. Within one fact the order of steps is what makes it right:
a follower stands in the followee's list before the followee stands in theirs, so no fan-out misses anyone, and a
post stands in its author's timeline before anyone's followers are read.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from graph import keys
from graph.facts import (
    Fact,
    Followed,
    PostDeleted,
    PostPublished,
    ProfileChanged,
    SessionsEnded,
    Unfollowed,
    UserCreated,
)
from graph.log import Log
from graph.model import number_at
from graph.store import Command, Store, Word, script
from graph.timelines.cache import HomeCache
from graph.timelines.reach import LARGE, Reach, follower_chunks

E = TypeVar("E")

TOMBSTONES_LIVE = timedelta(hours=24)
COMMANDS_PER_TRIP = 500
CHANGES_PER_SCRIPT = 500
FAN_OUTS_AT_ONCE = 16


class Projections:
    """Projects facts. `sync_followers` is how many followers a publishing request serves before it answers."""

    def __init__(self, store: Store, log: Log, cache: HomeCache, reach: Reach, sync_followers: int) -> None:
        self._store = store
        self._log = log
        self._cache = cache
        self._reach = reach
        self._sync_followers = sync_followers

    async def project(self, facts: Sequence[Fact], *, whole: bool) -> None:
        """Project facts: wholly, or only what must be seen when a mutation returns. Safe to repeat.

        A publish costs three round trips and two for every 500 followers; a sign-up, follow or unfollow two, a
        deletion two, the others one. A batch of facts shares the trips.
        """
        await self._create_users(of_type(facts, UserCreated))
        await self._change_profiles(of_type(facts, ProfileChanged))
        await self._end_sessions(of_type(facts, SessionsEnded))
        await self._follow(of_type(facts, Followed))
        await self._publish(of_type(facts, PostPublished), whole=whole)
        await self._unfollow(of_type(facts, Unfollowed))
        await self._delete(of_type(facts, PostDeleted))

    async def _send(self, commands: Sequence[Command]) -> list[object]:
        replies: list[object] = []
        for start in range(0, len(commands), COMMANDS_PER_TRIP):
            replies += await self._store.send(commands[start : start + COMMANDS_PER_TRIP])
        return replies

    async def _create_users(self, facts: Sequence[tuple[int, UserCreated]]) -> None:
        settle, write = script("settle_login"), script("set_profile")
        outcomes = await self._send(
            [settle.call([keys.login(event.login)], event.nonce, number, "") for number, event in facts]
        )
        await self._send(
            [
                write.call(
                    [keys.user(number)],
                    number,
                    "id",
                    number,
                    "login",
                    event.login,
                    "name",
                    event.name,
                    "bio",
                    event.bio,
                )
                for (number, event), outcome in zip(facts, outcomes, strict=True)
                if outcome == "won"
            ]
        )

    async def _change_profiles(self, facts: Sequence[tuple[int, ProfileChanged]]) -> None:
        write = script("set_profile")
        commands: list[Command] = []
        for number, event in facts:
            fields = (("name", event.name), ("bio", event.bio))
            words = [word for name, value in fields if value is not None for word in (name, value)]
            commands.append(write.call([keys.user(event.user)], number, *words))
        await self._send(commands)

    async def _end_sessions(self, facts: Sequence[tuple[int, SessionsEnded]]) -> None:
        await self._send([("HDEL", keys.sessions(event.user), *event.sessions) for _, event in facts if event.sessions])

    async def _follow(self, facts: Sequence[tuple[int, Followed]]) -> None:
        await self._send(self._adds(keys.followers, ((e.followee, e.follower, n) for n, e in facts)))
        await self._send(self._adds(keys.following, ((e.follower, e.followee, n) for n, e in facts), forget=True))

    async def _unfollow(self, facts: Sequence[tuple[int, Unfollowed]]) -> None:
        await self._send(self._removals(keys.following, ((e.follower, e.followee, n) for n, e in facts), forget=True))
        await self._send(self._removals(keys.followers, ((e.followee, e.follower, n) for n, e in facts)))

    def _adds(
        self, key: Callable[[int], str], changes: Iterable[tuple[int, int, int]], *, forget: bool = False
    ) -> list[Command]:
        """Make the commands that add (owner, member, number) to versioned sets, and forget the owners' home caches."""
        add = script("add")
        return [add.call(set_keys(key, owner, forget=forget), *pairs) for owner, pairs in grouped(changes)]

    def _removals(
        self, key: Callable[[int], str], changes: Iterable[tuple[int, int, int]], *, forget: bool = False
    ) -> list[Command]:
        """Make the commands that remove (owner, member, number) from versioned sets."""
        remove, trim = script("remove"), self._trimmable()
        return [remove.call(set_keys(key, owner, forget=forget), trim, *pairs) for owner, pairs in grouped(changes)]

    def _trimmable(self) -> int:
        """Give the highest number of a tombstone that no late or repeated fact can still need."""
        return max(0, min(self._log.known_drained, number_at(datetime.now(UTC) - TOMBSTONES_LIVE)))

    async def _publish(self, facts: Sequence[tuple[int, PostPublished]], *, whole: bool) -> None:
        written = await self._send([write_post(number, event) for number, event in facts])
        standing = [fact for fact, stands in zip(facts, written, strict=True) if stands]
        list_post = script("list_post")
        listed = await self._store.send(
            [
                list_post.call(
                    [
                        keys.posts(event.author),
                        keys.gone(keys.posts(event.author)),
                        keys.reach(event.author),
                        keys.followers(event.author),
                    ],
                    number,
                )
                for number, event in standing
            ]
        )
        audiences = [
            (number, event.author, *audience)
            for (number, event), [stands, *audience] in zip(standing, listed, strict=True)
            if stands
        ]
        for start in range(0, len(audiences), FAN_OUTS_AT_ONCE):
            some = audiences[start : start + FAN_OUTS_AT_ONCE]
            outcomes = await asyncio.gather(
                *(self._fan_out(*audience, whole=whole) for audience in some), return_exceptions=True
            )
            for failure in filter(None, outcomes):
                raise failure  # only now: a fan-out that went on behind a failed one would outlive its caller

    async def _fan_out(self, post: int, author: int, reach: str, followers: int, *, whole: bool) -> None:
        """Bring a listed post to its author's home cache and to the followers', unless reads merge this author."""
        if whole or followers <= self._sync_followers:
            reach = await self._reach.settle(author, post, reach, followers, take_over=whole)
        await self._cache.insert(author, post, [author])
        if reach == LARGE or not followers:
            return
        most = float("inf") if whole else self._sync_followers
        async for viewers in follower_chunks(self._store, author, most):
            await self._cache.insert(author, post, viewers)

    async def _delete(self, facts: Sequence[tuple[int, PostDeleted]]) -> None:
        bury, remove, trim = script("bury_post"), script("remove"), self._trimmable()
        await self._send([bury.call([keys.post(event.post)], number) for number, event in facts])
        await self._send(
            [remove.call(set_keys(keys.posts, event.author), trim, event.post, number) for number, event in facts]
        )


def of_type(facts: Iterable[Fact], kind: type[E]) -> list[tuple[int, E]]:
    """Pick the facts of one kind, as pairs of number and event."""
    return [(fact.number, fact.event) for fact in facts if isinstance(fact.event, kind)]


def set_keys(key: Callable[[int], str], owner: int, *, forget: bool = False) -> list[str]:
    """Name a versioned set, its tombstones and, to forget it, the owner's home cache."""
    name = key(owner)
    return [name, keys.gone(name), keys.home(owner)] if forget else [name, keys.gone(name)]


def grouped(changes: Iterable[tuple[int, int, int]]) -> Iterable[tuple[int, list[Word]]]:
    """Group (owner, member, number) by owner, as flat words for one script call each, at most 500 changes long."""
    words: defaultdict[int, list[Word]] = defaultdict(list)
    for owner, member, number in changes:
        words[owner] += (member, number)
    for owner, pairs in words.items():
        for start in range(0, len(pairs), 2 * CHANGES_PER_SCRIPT):
            yield owner, pairs[start : start + 2 * CHANGES_PER_SCRIPT]


def write_post(number: int, event: PostPublished) -> Command:
    """Make the command that writes a post's record."""
    fields: dict[str, Word | None] = {
        "id": number,
        "author": event.author,
        "text": event.text,
        "platform": event.platform,
        "latitude": event.latitude,
        "longitude": event.longitude,
    }
    words = [word for name, value in fields.items() if value is not None for word in (name, value)]
    return script("write_post").call([keys.post(number)], *words)
