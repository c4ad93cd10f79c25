"""The scan: a slow pass over all posts and likes in the store, for work that no event triggers.

The scan removes old posts and likes from the hot windows, drops old tombstones, frees records that a crash has left
behind, and corrects the counts of archived posts and likes. It keeps no state: a pass that is interrupted starts over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from graph import keys
from graph.archive.rows import REDACTED
from graph.archiver.hot_window_cutter import HotWindowCutter
from graph.archiver.lease import Lease
from graph.archiver.like_scan import LikeScan
from graph.binding import Binding
from graph.chunks import chunks
from graph.commit import Commit
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.log.log import NONCE_SECONDS, IdempotencyKey
from graph.log.numbers import before
from graph.model import EPOCH_MS
from graph.post_lists import POST_LISTS, PostList
from graph.posts.posts import deletion_of
from graph.projections.posts import free_posts, set_cold
from graph.records import parse_details
from graph.store.commands import Command, script
from graph.store.store import Store

PATTERN = "[lpqr]*{*}"
LISTS = {post_list.key(0).partition(":")[0]: post_list for post_list in POST_LISTS}
"""The kinds of lists by the first word of their keys."""
FIRST_PASS_SECONDS = 60.0
PASS_SECONDS = 3600.0
IDLE_SHARE = 4  # after each chunk the scan rests for this multiple of the time that the chunk took
KEYS_AT_ONCE = 500
COUNTS_AT_ONCE = 20  # counting is slow for authors with many archived posts

logger = logging.getLogger("fanline.archiver")


@dataclass(frozen=True, slots=True)
class Count:
    """A list's archive floor and its count of archived posts, as the store holds them.

    `posts` is None if the store has no count. `last` is the highest event number that the log had assigned when the
    values were read.
    """

    post_list: PostList
    owner: int
    floor: int
    posts: str | None
    last: int = 0


class Scan:
    """Runs passes of the scan. Tombstones of posts are kept for at least `tombstones_live`."""

    def __init__(
        self,
        store: Store,
        binding: Binding,
        commit: Commit,
        hot_window: HotWindowCutter,
        lease: Lease,
        tombstones_live: timedelta,
    ) -> None:
        self._store = store
        self._binding = binding
        self._commit = commit
        self._hot_window = hot_window
        self._lease = lease
        self._tombstones_live = tombstones_live

    async def run(self) -> None:
        """Run a pass every hour until cancelled, using a fifth of the time, while this process holds the lease.

        Continue after outages.
        """
        pause = FIRST_PASS_SECONDS
        while True:
            await asyncio.sleep(pause)
            try:
                if self._lease.is_held:
                    await self.run_pass(IDLE_SHARE)
                    pause = PASS_SECONDS
            except (ArchiveUnavailable, StoreUnavailable) as outage:
                logger.warning("The scan of the store was interrupted: %s", outage.reason)
            except Exception:
                logger.exception("The scan of the store failed and will be retried")

    async def run_pass(self, idle_share: float = 0) -> None:
        """Scan all posts and likes once.

        One round trip per 1,000 keys in the store, about three more and up to three queries per 500 posts or lists of
        posts or likes, and one query per 20 lists with archived posts or likes. Cuts and corrections cost extra.

        Raises ArchiveUnavailable and StoreUnavailable.
        """
        loop = asyncio.get_running_loop()
        waiting: dict[str, list[int]] = {name: [] for name in ("post", *LISTS, "likes", "liked")}
        likes = LikeScan(self._store, self._binding, self._hot_window.likes)
        suspects: list[Count] = []

        async def check_lists(post_list: PostList, owners: Sequence[int]) -> None:
            await self._hot_window.cut_old(post_list, owners, *await self._up_to_and_now())
            suspects.extend(await self._suspect_counts(post_list, owners))

        async def check_likes(posts: Sequence[int]) -> None:
            await likes.check_posts(posts, *await self._up_to_and_now())

        async def check_liked(users: Sequence[int]) -> None:
            await likes.check_users(users, *await self._up_to_and_now())

        handlers: dict[str, Callable[[Sequence[int]], Awaitable[None]]] = {"post": self._check_records}
        handlers |= {name: partial(check_lists, post_list) for name, post_list in LISTS.items()}
        handlers |= {"likes": check_likes, "liked": check_liked}
        started = loop.time()
        async for names in self._store.scan(PATTERN):
            for name in names:
                kind, _, owner = name.removesuffix("}").partition(":{")
                if kind in waiting and owner.isdecimal():
                    waiting[kind].append(int(owner))
            for kind, handle in handlers.items():
                while len(waiting[kind]) >= KEYS_AT_ONCE:
                    await handle(waiting[kind][:KEYS_AT_ONCE])
                    del waiting[kind][:KEYS_AT_ONCE]
            await asyncio.sleep(idle_share * (loop.time() - started))
            started = loop.time()
        for kind, handle in handlers.items():
            if waiting[kind]:
                await handle(waiting[kind])
        for post_list in POST_LISTS:
            some = [count for count in suspects if count.post_list is post_list]
            for counts in chunks(some, COUNTS_AT_ONCE):
                await self._correct_counts(post_list, counts)
        await likes.correct_counts()

    async def _up_to_and_now(self) -> tuple[int, int]:
        """Return the number up to which every event is projected and archived, and the number for the present time.

        The latter is the lowest number that an event can have now, according to the store's clock. The archive is read
        too: if it was restored from a backup, and no archiver has noticed this yet, it ends at a lower number than the
        store's copy of the archive watermark. One round trip and one query.
        """
        clock = script("clock").call([keys.LOG], EPOCH_MS)
        *marks, now = await self._store.read([("GET", keys.ARCHIVED), ("GET", keys.WATERMARK), clock])
        state = await (await self._binding.archive()).state()
        return min(state.watermark, *(int(mark or 0) for mark in marks)), int(now)

    async def _suspect_counts(self, post_list: PostList, owners: Sequence[int]) -> list[Count]:
        """Return the counts of archived posts that differ from the archive.

        Such counts are wrong, or the archive does not hold the newest deletions yet.
        """
        commands: list[Command] = []
        for owner in owners:
            commands += [("ZSCORE", post_list.key(owner), "f"), ("GET", post_list.cold(owner))]
        rows = await self._store.read(commands)
        counts = [
            Count(post_list, owner, int(floor), cold)
            for owner, floor, cold in zip(owners, rows[::2], rows[1::2], strict=True)
            if floor is not None and int(floor)
        ]
        if not counts:
            return []
        archive = await self._binding.archive()
        expected: list[int] = []
        for some in chunks(counts, COUNTS_AT_ONCE):
            expected += (await archive.post_counts([(count.owner, count.floor) for count in some], post_list))[0]
        suspects = [count for count, posts in zip(counts, expected, strict=True) if int(count.posts or 0) != posts]
        if not suspects:
            return []
        last = int(await self._store.run(*script("last_number").call([keys.LOG], EPOCH_MS)))
        return [replace(count, last=last) for count in suspects]

    async def _correct_counts(self, post_list: PostList, suspects: Sequence[Count]) -> None:
        """Correct the counts that still differ from the archive, unless they have changed.

        The archive's count is right if the archive holds every event that the count in the store may include.
        """
        archive = await self._binding.archive()
        expected, archived = await archive.post_counts([(count.owner, count.floor) for count in suspects], post_list)
        wrong = [
            set_cold(post_list, c.owner, c.floor, c.posts, posts)
            for c, posts in zip(suspects, expected, strict=True)
            if c.last <= archived and int(c.posts or 0) != posts
        ]
        if wrong:
            logger.warning("The numbers of archived posts of %d lists are wrong and are being corrected", len(wrong))
            await self._store.send(wrong)

    async def _check_records(self, posts: Sequence[int]) -> None:
        """Drop old tombstones, and free the records of archived posts."""
        up_to, now = await self._up_to_and_now()
        rows = await self._store.read([("HMGET", keys.post(post), "author", "details", "deleted") for post in posts])
        tombstones: dict[int, int] = {}
        records: dict[int, str] = {}
        for post, (author, details, deleted) in zip(posts, rows, strict=True):
            if deleted is not None:
                tombstones[post] = int(deleted)
            elif author is not None and post <= up_to:
                is_listed = details is None or parse_details(details)[-1]
                records[post] = keys.posts(int(author)) if is_listed else keys.replied(int(author))
        oldest = min(up_to, before(now, self._tombstones_live))
        await self._drop_tombstones({post: number for post, number in tombstones.items() if number <= oldest})
        await self._free_records(records)

    async def _drop_tombstones(self, tombstones: dict[int, int]) -> None:
        """Drop the tombstones of posts that the archive no longer shows. Delete the other posts again."""
        if not tombstones:
            return
        archive = await self._binding.archive()
        kinds = await archive.kinds_of(list(tombstones))
        hidden = [post for post in tombstones if kinds.get(post, REDACTED) == REDACTED]
        drop = script("drop_tombstones")
        await self._store.send(
            [
                drop.call([keys.post(post) for post in group], *(tombstones[post] for post in group))
                for group in self._store.together(hidden, keys.post, KEYS_AT_ONCE)
            ]
        )
        shown = [post for post in tombstones if post not in {*hidden}]
        for post in (await archive.look_up(shown)).posts.values() if shown else ():
            logger.warning("The archive shows post %d, which was deleted; deleting it again", post.id)
            key = IdempotencyKey("-", f"deletion:{post.id}:again", NONCE_SECONDS)
            await self._commit([deletion_of(post)], key)

    async def _free_records(self, records: dict[int, str]) -> None:
        """Free the records of posts that are in the archive and not above the floor of their list, or that are deleted.

        `records` maps each post to the key of the list that its record belongs to. The record of a deleted post can be
        left behind by a process that repeats a projection after the tombstone was dropped and is then killed.
        """
        commands: list[Command] = []
        for post, name in records.items():
            commands.append(("ZMSCORE", name, "f", str(post)))
        replies = await self._store.read(commands)
        floors = {
            post: int(floor or 0) for post, (floor, listed) in zip(records, replies, strict=True) if listed is None
        }
        if floors:
            kinds = await (await self._binding.archive()).kinds_of(floors)
            leaked = [post for post, kind in kinds.items() if post <= floors[post] or kind == REDACTED]
            await free_posts(self._store, leaked)
