"""The rebuild of a store from the archive.

An empty store is reserved, filled with the content that the events in the archive determine, and opened. Each step can
be repeated: an interrupted rebuild that is run again starts over. Events that were not archived yet are lost with the
former store; sessions and home caches start empty, and so do idempotency keys, except those of posts, lists and
sign-ups.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import orjson

from graph import keys
from graph.chunks import chunks
from graph.errors import RebuildRefused
from graph.expected.loading import ContentLoader
from graph.fold.hot_window import HotLimits
from graph.fold.reading import ROWS, FoldedBatch, names_of
from graph.log.encoding import decode
from graph.log.log import KEY_SECONDS
from graph.log.requests import CREATIONS, superseded
from graph.model import MAX_NUMBER, number_at
from graph.post_lists import LISTS_UNDER_POSTS, TIMELINE
from graph.rebuild.likes import LikeLoading
from graph.rebuild.reservation import REPLACED, Reservation, complete, reserve
from graph.rebuild.writes import pulls, writes
from graph.relations.relation import KeyCommand
from graph.store.commands import Command, script
from graph.store.store import Store
from graph.tuning import Tuning

if TYPE_CHECKING:
    from graph.archive.archive import Archive

T = TypeVar("T")

OnProgress = Callable[[int, int], None]
"""Called with the number of rebuilt users and the total number of users."""

USERS = 500
COMMANDS_PER_TRIP = 10_000
COMMANDS_PER_SCRIPT = 500
REQUESTS_AT_ONCE = 1_000
CREATED = names_of(CREATIONS)


@dataclass(slots=True)
class RebuildReport:
    """The numbers of users, live follows, listed posts and likes after a rebuild, including archive-only ones.

    `events` is the number of events from which the store was rebuilt. `damaged` events could not be decoded and are
    left out.
    """

    users: int = 0
    follows: int = 0
    posts: int = 0
    likes: int = 0
    events: int = 0
    damaged: int = 0
    seconds: float = 0.0


class Rebuild:
    """Rebuilds a store from the archive, `users` users at a time. Memory is bounded by a few batches of `rows` rows."""

    def __init__(
        self, store: Store, archive: "Archive", tuning: Tuning, *, users: int = USERS, rows: int = ROWS
    ) -> None:
        self._store = store
        self._archive = archive
        self._tuning = tuning
        self._users = users
        self._rows = rows

    async def run(self, on_progress: OnProgress | None = None) -> RebuildReport:
        """Rebuild the store, and bind the archive and the store to each other.

        Raises RebuildRefused if the store is not empty, the archive was never used, or another process interferes.
        """
        state = await self._archive.state()
        if not state.watermark and state.store is None:
            raise RebuildRefused("The archive holds no events, so there is nothing to rebuild.")
        return await self.fill(await reserve(self._store, self._archive), on_progress)

    async def fill(self, reservation: Reservation, on_progress: OnProgress | None = None) -> RebuildReport:
        """Fill a reserved store and open it. Raises RebuildRefused if another process has taken over."""
        now, started = datetime.now(UTC), time.monotonic()
        tombstones_after = max(0, number_at(now - self._tuning.tombstones_live))
        loader = ContentLoader(
            self._archive,
            HotLimits.of(self._tuning, now),
            tombstones_after,
            rows=self._rows,
            notifications_kept=self._tuning.notifications_kept,
        )
        total = await self._archive.user_count()
        report = RebuildReport()
        after = 0
        while users := await self._archive.user_ids(after, self._users):
            if await self._store.run("GET", keys.REBUILD) != reservation.binding:
                raise RebuildRefused(REPLACED)
            if on_progress:
                on_progress(report.users, total)
            await self._fill_users(users, loader, tombstones_after, report)
            after = users[-1]
        report.likes = await LikeLoading(self._store, self._archive, self._tuning, rows=self._rows).load(
            tombstones_after
        )
        report.events += report.likes
        await self._fill_under_posts(loader, tombstones_after)
        async for batch in loader.deleted_users():
            await self._send([("UNLINK", key) for user in batch.content.erased for key in keys_of_sets(user)])
            await self._send(writes(batch, tombstones_after, self._tuning.notifications_kept))
        await self._keep_requests(number_at(now - timedelta(seconds=KEY_SECONDS)))
        await self._store.send([("SET", keys.SUSPENDED_VERSION, secrets.token_hex(8))])
        await complete(self._store, self._archive, reservation)
        if on_progress:
            on_progress(report.users, total)
        report.seconds = time.monotonic() - started
        return report

    async def _fill_users(
        self, users: Sequence[int], loader: ContentLoader, tombstones_after: int, report: RebuildReport
    ) -> None:
        in_pages: dict[str, set[int]] = {"following": set(), "followers": set()}
        followers: dict[int, int] = {}
        async with aclosing(prefetched(loader.batches(users))) as batches:
            async for batch in batches:
                await self._send(writes(batch, tombstones_after, self._tuning.notifications_kept))
                count(batch, report)
                if batch.is_page:
                    in_pages["following"].update(batch.content.following)
                    in_pages["followers"].update(batch.content.followers)
                else:
                    placed = batch.content.placed
                    report.follows += sum(len(placed(*each).members) for each in batch.content.following.items())
                    followers |= {each[0]: len(placed(*each).members) for each in batch.content.followers.items()}
        report.users += len(users)
        report.follows += sum((await self._sizes(keys.following, in_pages["following"])).values())
        followers |= await self._sizes(keys.followers, in_pages["followers"])
        await self._send(pulls(followers.items(), self._tuning.push_limit))

    async def _fill_under_posts(self, loader: ContentLoader, tombstones_after: int) -> None:
        """Write the replies, reposts and quotes of posts."""
        for post_list in LISTS_UNDER_POSTS:
            after = 0
            while owners := await self._archive.owners(post_list, after, self._users):
                async with aclosing(prefetched(loader.under_posts(post_list, owners))) as batches:
                    async for batch in batches:
                        await self._send(writes(batch, tombstones_after, self._tuning.notifications_kept))
                after = owners[-1]

    async def _keep_requests(self, after: int) -> None:
        """Restore the idempotency keys of events after a number, so that repeated requests create nothing again.

        One query and one round trip for every 1,000 events.
        """
        while rows := await self._archive.range(after, MAX_NUMBER, REQUESTS_AT_ONCE):
            created = [row for row in rows if row.kind in CREATED and '"request":' in (row.body or "")]
            await superseded(self._store, [decode(*row) for row in created])
            after = rows[-1].number

    async def _sizes(self, key: Callable[[int], str], users: Collection[int]) -> dict[int, int]:
        """Return the sizes of sets that were written in pages, from which later pages can remove members."""
        sizes: dict[int, int] = {}
        for some in chunks(sorted(users), COMMANDS_PER_SCRIPT):
            sizes |= zip(some, await self._store.send([("ZCARD", key(user)) for user in some]), strict=True)
        return sizes

    async def _send(self, commands: Iterable[KeyCommand]) -> None:
        """Send commands. One round trip for about every 10,000."""
        for group in chunks(list(commands), COMMANDS_PER_TRIP):
            scripts = self._store.together(group, lambda command: command[1], COMMANDS_PER_SCRIPT)
            await self._store.send([fill(some) for some in scripts])


def keys_of_sets(user: int) -> list[str]:
    """Return the keys of the sets of a user, and of their tombstones."""
    return [name for key in keys.USER_SETS for name in (key(user), keys.gone(key(user)))]


def fill(commands: Sequence[KeyCommand]) -> Command:
    """Return the call of a script that runs these commands, at a fraction of the cost of sending them one by one."""
    words = [[name, *rest] for name, _, *rest in commands]
    return script("fill").call([key for _, key, *_ in commands], orjson.dumps(words))


def count(batch: FoldedBatch, report: RebuildReport) -> None:
    """Add the numbers of events, damaged events and posts in a batch to the report."""
    report.events += batch.events
    report.damaged += len(batch.damaged)
    cold = batch.cuts[TIMELINE].cold if TIMELINE in batch.cuts else {}
    report.posts += sum(cold.values()) + sum(len(posts.live) for posts in batch.content.posts.values())


async def prefetched(items: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Yield the items, and load the next one while the caller works on the current one."""
    upcoming = asyncio.ensure_future(_next(items))
    try:
        while (item := await upcoming) is not None:
            upcoming = asyncio.ensure_future(_next(items))
            yield item
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)


async def _next(items: AsyncIterator[T]) -> T | None:
    return await anext(items, None)
