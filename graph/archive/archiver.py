"""The archiver: moves the oldest hot posts of authors with many posts from the store to the archive.

A move consists of these steps:

1. Wait until every event up to the new floor is projected.
2. Insert the rows and raise the archive's floor, in one transaction.
3. Delete the rows of posts that were deleted in the meantime.
4. In one script, compare the hot posts with the rows; if they are equal, remove the posts and raise the store's floor.
5. Free the posts' records.

A move can stop after any step, and any process can continue it: if the archive's floor is above the store's floor, the
next run continues with step 3.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graph import keys
from graph.archive.binding import ArchiveBinding
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.log.log import Log
from graph.model import Post
from graph.records import as_post, read_post
from graph.store.commands import script
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive

AUTHORS_AT_ONCE = 100
ROWS_AT_ONCE = 1000
TRIM_ATTEMPTS = 5
POSTS_PER_SCRIPT = 200
INTERVAL_SECONDS = 5.0

logger = logging.getLogger("fanline.archiver")


class Archiver:
    """Moves `batch` posts of an author at once, as soon as the store holds `hot_posts` + `batch` of them.

    Metrics: `moved` counts posts, `failures` counts failed attempts, and `waiting` is the number of authors with posts
    to move at the beginning of the last run.
    """

    def __init__(
        self, store: Store, log: Log, archive: "Archive", binding: ArchiveBinding, hot_posts: int, batch: int
    ) -> None:
        self._store = store
        self._log = log
        self._archive = archive
        self._hot_posts = hot_posts
        self._batch = batch
        self._binding = binding
        self.moved = 0
        self.failures = 0
        self.waiting = 0

    async def run(self) -> None:
        """Call `work` every few seconds until cancelled. Continue after outages of the store and the archive."""
        while True:
            try:
                await self.work()
            except ArchiveUnavailable as outage:
                self.failures += 1
                logger.warning("The archive is unavailable; posts remain in the store: %s", outage.reason)
            except StoreUnavailable as outage:
                logger.warning("The store is unavailable; the archiver will retry: %s", outage.reason)
            except Exception:
                self.failures += 1
                logger.exception("The archiver failed and will retry")
            await asyncio.sleep(INTERVAL_SECONDS)

    async def work(self) -> None:
        """Delete the rows of deleted posts, then move posts of every author in the work set.

        Raises ArchiveUnavailable and WrongArchive.
        """
        while await self._delete_rows():
            continue
        while await self._free_rewritten():
            continue
        self.waiting = await self._store.run("ZCARD", keys.ARCHIVABLE)
        if self.waiting:
            await self._binding.claim()
        skipped = 0
        while authors := await self._next_authors(skipped):
            for author, number in authors:
                if await self._archive_or_log(author):
                    # By score: a post listed in the meantime may have added the author again with a newer number.
                    await self._store.run("ZREMRANGEBYSCORE", keys.ARCHIVABLE, number, number)
                else:
                    skipped += 1

    async def _free_rewritten(self) -> bool:
        """Free records of archived posts that a repeated event has written. Return whether there may be more."""
        posts = await self._store.run("ZRANGE", keys.REWRITTEN, 0, ROWS_AT_ONCE - 1)
        if posts:
            rows = await (await self._binding.archive()).get_many([int(post) for post in posts])
            archived = [row.id for row in rows if row is not None]
            await self._free_records(archived)
            await self._store.run("ZREM", keys.REWRITTEN, *posts)
            # Again: a projection may have written a record between the two, and its note is removed with the older one.
            await self._free_records(archived)
        return len(posts) == ROWS_AT_ONCE

    async def _next_authors(self, start: int) -> list[tuple[int, int]]:
        """Return authors of the work set from index `start`, each with the number of the post that added it."""
        rows = await self._store.run("ZRANGE", keys.ARCHIVABLE, start, start + AUTHORS_AT_ONCE - 1, "WITHSCORES")
        return [(int(author), int(number)) for author, number in rows]

    async def _archive_or_log(self, author: int) -> bool:
        """Archive one author's posts. Log unexpected errors, so that one author cannot block the others."""
        try:
            return await self.archive_author(author)
        except (ArchiveUnavailable, StoreUnavailable):
            raise
        except Exception:
            self.failures += 1
            logger.exception("Archiving the posts of user %d failed", author)
            return False

    async def _delete_rows(self) -> bool:
        """Delete the rows of deleted posts. Return whether there may be more."""
        posts = await self._store.run("ZRANGE", keys.DELETED, 0, ROWS_AT_ONCE - 1)
        if posts:
            await self._archive.delete([int(post) for post in posts])
            await self._store.run("ZREM", keys.DELETED, *posts)
        return len(posts) == ROWS_AT_ONCE

    async def archive_author(self, author: int) -> bool:
        """Continue an unfinished move of an author, then move posts until few enough are hot.

        Return True if nothing is left to do. About 10 round trips and 7 queries or transactions per batch. Raises
        ArchiveUnavailable.
        """
        while True:
            watermark = await self._log.watermark()
            floor, hot, oldest = await self._oldest(author)
            floors = await self._archive.floors(author)
            if floors.moved < floor:
                return self._report_damage(author, "the archive's floor is below the store's floor")
            if floors.moved > floor:
                if not await self._trim(author, floor, floors.moved):
                    return False
            elif floors.freed < floor:
                await self._free(author, floors.freed, floor)
            elif hot < self._hot_posts + self._batch:
                return True
            elif not await self._copy(author, floor, [post for post in oldest if post <= watermark]):
                return False

    def _report_damage(self, author: int, what: str) -> bool:
        """Log that an author's data is inconsistent, and return False. Nothing is moved until it is repaired."""
        self.failures += 1
        logger.error("Posts of user %d cannot be archived: %s. Run `fanline repair`.", author, what)
        return False

    async def _oldest(self, author: int) -> tuple[int, int, list[int]]:
        """Return the archive floor, the number of hot posts, and the oldest batch of hot posts. One round trip."""
        name = keys.posts(author)
        [members, rows] = await self._store.read(
            [("ZCARD", name), ("ZRANGE", name, 0, self._batch, "WITHSCORES")],
        )
        floor, posts = split_floor(rows)
        return floor, members - 1, posts[: self._batch]

    async def _copy(self, author: int, floor: int, posts: list[int]) -> bool:
        """Copy posts and raise the archive's floor to the last one. Return False if no post can be moved now."""
        if not posts:
            return False
        records = await self._store.read([read_post(post) for post in posts])
        living: list[Post] = [post for post in map(as_post, posts, records) if post is not None]
        return await self._archive.add(author, living, floor, posts[-1]) or (
            (await self._archive.floors(author)).moved > floor
        )

    async def _trim(self, author: int, old: int, new: int) -> bool:
        """Remove the archived posts from the hot timeline if they equal the rows. Return True if they were removed.

        Delete the rows of posts that were deleted in the meantime. Keep a row whose post is neither hot nor deleted:
        that is damage, and the row may be the last copy of the post.
        """
        for _ in range(TRIM_ATTEMPTS):
            # Posts before the floor: if the floor is unchanged afterwards, no post was removed before the read.
            name = keys.posts(author)
            [members, floor] = await self._store.read(
                [("ZRANGE", name, f"({old}", new, "BYSCORE"), ("ZSCORE", name, "f")],
            )
            if int(floor or 0) != old:
                return True
            hot = [int(post) for post in members]
            archived = await self._archive.ids(author, old, new)
            not_hot = sorted(archived - set(hot))
            deleted = await self._store.read([("HEXISTS", keys.post(post), "deleted") for post in not_hot])
            if not all(deleted):
                return self._report_damage(author, "the archive holds posts that are missing in the store")
            await self._archive.delete(not_hot)
            same = sorted(archived & set(hot))
            trim = script("trim_posts").call([keys.posts(author), keys.cold(author)], old, new, *same)
            outcome = await self._store.run(*trim)
            if outcome != "differs":
                self.moved += len(same) if outcome == "trimmed" else 0
                return True
        return False

    async def _free(self, author: int, low: int, high: int) -> None:
        """Delete the store's records of the archived posts in (`low`, `high`], and raise the `freed` floor."""
        posts = sorted(await self._archive.ids(author, low, high))
        await self._free_records(posts)
        await self._archive.raise_freed_floor(author, high)

    async def _free_records(self, posts: Sequence[int]) -> None:
        """Delete records, but not tombstones. One round trip."""
        groups = self._store.together(posts, keys.post, POSTS_PER_SCRIPT)
        await self._store.send([script("free_post").call([keys.post(p) for p in group]) for group in groups])


def split_floor(rows: Sequence[tuple[str, float]]) -> tuple[int, list[int]]:
    """Return the archive floor and the hot posts of a timeline's members and scores."""
    floor = next((int(score) for member, score in rows if member == "f"), 0)
    return floor, [int(member) for member, _ in rows if member != "f"]
