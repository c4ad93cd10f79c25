"""The archiver: moves the oldest hot posts of authors who have very many from the store to the archive.

A move is safe to break off anywhere and to repeat by anyone. Everything up to its new floor is projected before it
begins; the rows are copied and the archive's own floor moved in one transaction; then rows of posts that were
deleted meanwhile are removed, and only when the store's hot posts and the rows are the very same does one script
drop the posts and move the store's floor; last, the posts' records are freed. A floor of the archive ahead of the
store's tells of a move that broke off, which is taken up after its transaction.
"""

import asyncio
import logging

from graph import keys
from graph.archive import Archive
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive
from graph.log import Log
from graph.model import Post
from graph.posts import as_post
from graph.store import Store, script

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

    def __init__(self, store: Store, log: Log, archive: Archive, hot_posts: int, batch: int) -> None:
        self._store = store
        self._log = log
        self._archive = archive
        self._hot_posts = hot_posts
        self._batch = batch
        self._owned = False
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

    async def check(self) -> None:
        """Bring the archive's schema up to date, and see that it is the one that holds this store's older posts.

        Raises ArchiveUnavailable, and WrongArchive if the store's older posts went into another one.
        """
        await self._archive.migrate()
        owner = await self._store.run("GET", keys.ARCHIVE)
        if owner is not None and owner != await self._archive.identity():
            raise WrongArchive

    async def _own(self) -> None:
        """Note in the store, before the first post goes there, which archive holds its posts."""
        if not self._owned:
            await self._store.run("SET", keys.ARCHIVE, await self._archive.identity(), "NX")
            await self.check()
            self._owned = True

    async def work(self) -> None:
        """Delete the rows of deleted posts, then move posts of every author noted.

        Raises ArchiveUnavailable, and WrongArchive.
        """
        while await self._delete_rows():
            continue
        noted = await self._store.run("ZRANGE", keys.ARCHIVABLE, 0, AUTHORS_AT_ONCE - 1, "WITHSCORES")
        self.waiting = await self._store.run("ZCARD", keys.ARCHIVABLE)
        if noted:
            await self._own()
        for author, number in noted:
            if await self.settle(int(author)):
                # Only this very note: a post listed meanwhile may have left a newer one.
                await self._store.run("ZREMRANGEBYSCORE", keys.ARCHIVABLE, int(number), int(number))

    async def _delete_rows(self) -> bool:
        """Delete rows of posts that were deleted; tell whether there may be more."""
        noted = await self._store.run("ZRANGE", keys.DELETED, 0, ROWS_AT_ONCE - 1)
        if noted:
            await self._archive.delete([int(post) for post in noted])
            await self._store.run("ZREM", keys.DELETED, *noted)
        return len(noted) == ROWS_AT_ONCE

    async def settle(self, author: int) -> bool:
        """Move an author's posts until few enough are hot, and finish what was left half done; True if nothing is left.

        For every batch five round trips and four queries or transactions. Raises ArchiveUnavailable.
        """
        while True:
            drained = await self._log.drained()
            floors = await self._archive.floors(author)
            floor, posts = await self._hot(author)
            if floors.moved < floor:
                self.failures += 1
                logger.error(
                    "The archive lacks posts of author %d up to number %d: is it the right one?", author, floor
                )
                return False
            if floors.moved > floor:
                if not await self._trim(author, floor, floors.moved):
                    return False
            elif floors.freed < floor:
                await self._free(author, floors.freed, floor)
            elif len(posts) < self._hot_posts + self._batch:
                return True
            elif not await self._copy(author, floor, [post for post in posts[: self._batch] if post <= drained]):
                return False

    async def _hot(self, author: int, upto: int | str = "+inf") -> tuple[int, list[int]]:
        """Read the archive floor and the hot posts above it, oldest first. One round trip."""
        rows = await self._store.run("ZRANGE", keys.posts(author), "-inf", upto, "BYSCORE", "WITHSCORES")
        floor = next((int(score) for member, score in rows if member == "f"), 0)
        return floor, [int(member) for member, _ in rows if member != "f"]

    async def _copy(self, author: int, floor: int, posts: list[int]) -> bool:
        """Copy posts, and move the archive's floor to the last of them; False if none can be moved now."""
        if not posts:
            return False
        records = await self._store.read([("HGETALL", keys.post(post)) for post in posts])
        living: list[Post] = [post for post in map(as_post, records) if post is not None]
        return await self._archive.add(author, living, floor, posts[-1]) or (
            (await self._archive.floors(author)).moved > floor
        )

    async def _trim(self, author: int, old: int, new: int) -> bool:
        """Drop the posts that the archive holds, once they are the very same; tell whether that is done."""
        for _ in range(VERIFICATIONS):
            floor, hot = await self._hot(author, new)
            if floor != old:
                return True
            rows = await self._archive.ids(author, old, new)
            await self._archive.delete(rows - set(hot))
            same = sorted(rows & set(hot))
            trim = script("trim_posts").call([keys.posts(author), keys.cold(author)], old, new, *same)
            outcome = await self._store.run(*trim)
            if outcome != "differs":
                self.moved += len(same) if outcome == "trimmed" else 0
                return True
        return False

    async def _free(self, author: int, low: int, high: int) -> None:
        """Free the store's records of archived posts."""
        posts = sorted(await self._archive.ids(author, low, high))
        groups = self._store.together(posts, keys.post, POSTS_PER_SCRIPT)
        await self._store.read([script("free_post").call([keys.post(p) for p in group]) for group in groups])
        await self._archive.note_freed(author, high)
