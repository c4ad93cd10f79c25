"""The archiver: moves the oldest hot posts of authors who have very many from the store to the archive.

A move is safe to break off anywhere and to repeat by anyone. Everything up to its new floor is projected before it
begins; the rows are copied and the archive's own floor moved in one transaction; then rows of posts that were
deleted meanwhile are removed, and only when the store's hot posts and the rows are the very same does one script
drop the posts and move the store's floor; last, the posts' records are freed. A floor of the archive ahead of the
store's tells of a move that broke off, which is taken up after its transaction.
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
VERIFICATIONS = 5
POSTS_PER_SCRIPT = 200
EVERY_SECONDS = 5.0

logger = logging.getLogger("fanline.archiver")


class Archiver:
    """Keeps at most `hot_posts` posts of an author in the store, and up to `batch` more: it moves that many at once.

    `moved`, `failures` and `waiting` (authors, at the last look) are for whoever watches over it.
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
        """Do what there is to do, every few seconds, until cancelled. Survives outages of the store and the archive."""
        while True:
            try:
                await self.work()
            except ArchiveUnavailable as outage:
                self.failures += 1
                logger.warning("Posts wait for the archive: %s", outage.reason)
            except StoreUnavailable as outage:
                logger.warning("The archiver waits for the store: %s", outage.reason)
            except Exception:
                self.failures += 1
                logger.exception("The archiver failed; it tries again")
            await asyncio.sleep(EVERY_SECONDS)

    async def work(self) -> None:
        """Delete the rows of deleted posts, then move posts of every author noted.

        Raises ArchiveUnavailable, and WrongArchive.
        """
        while await self._delete_rows():
            continue
        while await self._free_rewritten():
            continue
        self.waiting = await self._store.run("ZCARD", keys.ARCHIVABLE)
        if self.waiting:
            await self._binding.claim()
        left = 0
        while noted := await self._noted(left):
            for author, number in noted:
                if await self._settle_alone(author):
                    # Only this very note: a post listed meanwhile may have left a newer one.
                    await self._store.run("ZREMRANGEBYSCORE", keys.ARCHIVABLE, number, number)
                else:
                    left += 1

    async def _free_rewritten(self) -> bool:
        """Free records that were written again though the archive has them; tell whether there may be more."""
        noted = await self._store.run("ZRANGE", keys.REWRITTEN, 0, ROWS_AT_ONCE - 1)
        if noted:
            rows = await (await self._binding.archive()).get_many([int(post) for post in noted])
            await self._free_records([row.id for row in rows if row is not None])
            await self._store.run("ZREM", keys.REWRITTEN, *noted)
        return len(noted) == ROWS_AT_ONCE

    async def _noted(self, start: int) -> list[tuple[int, int]]:
        """Read notes from this place on: author, and the number of the post that left the note. One round trip."""
        rows = await self._store.run("ZRANGE", keys.ARCHIVABLE, start, start + AUTHORS_AT_ONCE - 1, "WITHSCORES")
        return [(int(author), int(number)) for author, number in rows]

    async def _settle_alone(self, author: int) -> bool:
        """Settle one author, so that whatever is wrong there holds up nobody else."""
        try:
            return await self.settle(author)
        except (ArchiveUnavailable, StoreUnavailable):
            raise
        except Exception:
            self.failures += 1
            logger.exception("Posts of author %d could not be archived", author)
            return False

    async def _delete_rows(self) -> bool:
        """Delete rows of posts that were deleted; tell whether there may be more."""
        noted = await self._store.run("ZRANGE", keys.DELETED, 0, ROWS_AT_ONCE - 1)
        if noted:
            await self._archive.delete([int(post) for post in noted])
            await self._store.run("ZREM", keys.DELETED, *noted)
        return len(noted) == ROWS_AT_ONCE

    async def settle(self, author: int) -> bool:
        """Move an author's posts until few enough are hot, and finish what was left half done; True if nothing is left.

        For every batch about ten round trips and seven queries or transactions. Raises ArchiveUnavailable.
        """
        while True:
            watermark = await self._log.watermark()
            floor, hot, oldest = await self._oldest(author)
            floors = await self._archive.floors(author)
            if floors.moved < floor:
                return self._damaged(author, "the archive has never got as far as the store says")
            if floors.moved > floor:
                if not await self._trim(author, floor, floors.moved):
                    return False
            elif floors.freed < floor:
                await self._free(author, floors.freed, floor)
            elif hot < self._hot_posts + self._batch:
                return True
            elif not await self._copy(author, floor, [post for post in oldest if post <= watermark]):
                return False

    def _damaged(self, author: int, what: str) -> bool:
        """Tell that an author's posts are not as they should be; nothing is moved until they are repaired."""
        self.failures += 1
        logger.error("Posts of author %d are not archived: %s. Run a repair.", author, what)
        return False

    async def _oldest(self, author: int) -> tuple[int, int, list[int]]:
        """Read the archive floor, how many posts are hot, and the batch of the oldest of them. One round trip."""
        name = keys.posts(author)
        [members, rows] = await self._store.read(
            [("ZCARD", name), ("ZRANGE", name, 0, self._batch, "WITHSCORES")],
        )
        floor, posts = divided(rows)
        return floor, members - 1, posts[: self._batch]

    async def _copy(self, author: int, floor: int, posts: list[int]) -> bool:
        """Copy posts, and move the archive's floor to the last of them; False if none can be moved now."""
        if not posts:
            return False
        records = await self._store.read([read_post(post) for post in posts])
        living: list[Post] = [post for post in map(as_post, posts, records) if post is not None]
        return await self._archive.add(author, living, floor, posts[-1]) or (
            (await self._archive.floors(author)).moved > floor
        )

    async def _trim(self, author: int, old: int, new: int) -> bool:
        """Drop the posts that the archive holds, once they are the very same; tell whether that is done.

        Rows of posts that were deleted meanwhile go first. A row of a post that is neither hot nor deleted is a sign
        of damage, and may be all that is left of the post.
        """
        for _ in range(VERIFICATIONS):
            # Posts first: a floor that stands still afterwards stood still when they were read.
            name = keys.posts(author)
            [members, floor] = await self._store.read(
                [("ZRANGE", name, f"({old}", new, "BYSCORE"), ("ZSCORE", name, "f")],
            )
            if int(floor or 0) != old:
                return True
            hot = [int(post) for post in members]
            archived = await self._archive.ids(author, old, new)
            strangers = sorted(archived - set(hot))
            buried = await self._store.read([("HEXISTS", keys.post(post), "deleted") for post in strangers])
            if not all(buried):
                return self._damaged(author, "the archive holds posts that the store has lost")
            await self._archive.delete(strangers)
            same = sorted(archived & set(hot))
            trim = script("trim_posts").call([keys.posts(author), keys.cold(author)], old, new, *same)
            outcome = await self._store.run(*trim)
            if outcome != "differs":
                self.moved += len(same) if outcome == "trimmed" else 0
                return True
        return False

    async def _free(self, author: int, low: int, high: int) -> None:
        """Free the store's records of archived posts."""
        posts = sorted(await self._archive.ids(author, low, high))
        await self._free_records(posts)
        await self._archive.note_freed(author, high)

    async def _free_records(self, posts: Sequence[int]) -> None:
        """Free the records of posts that the archive has. One round trip."""
        groups = self._store.together(posts, keys.post, POSTS_PER_SCRIPT)
        await self._store.send([script("free_post").call([keys.post(p) for p in group]) for group in groups])


def divided(rows: Sequence[tuple[str, float]]) -> tuple[int, list[int]]:
    """Divide members of a timeline and their scores into the archive floor and the hot posts."""
    floor = next((int(score) for member, score in rows if member == "f"), 0)
    return floor, [int(member) for member, _ in rows if member != "f"]
