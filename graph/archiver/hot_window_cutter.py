"""Cuts post lists to their hot windows: the newest posts, which stay in the store. The archive holds all posts.

A cut removes the oldest posts from a list, such as a timeline:

1. Read from the archive which of these posts it holds. The log has lost the events of the others, so no worker will
   complete their projections: project the posts again from their records, and insert them into the archive.
2. Free the records of the posts, except records that belong to another list. Readers that find no record ask the
   archive.
3. In one script, remove the posts from the list, raise its floor and count the posts as archived.
4. Free the records again, because a repeated projection may have written one in the meantime.

A cut can stop after any step; the next cut starts over. A process that shuts down completes the last three steps first.
Otherwise, until the next cut, readers would have to ask the archive for each post of the list whose record was freed.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from graph import keys
from graph.archive.rows import EventRow, EventsRefused
from graph.archiver.like_windows import LikeWindows
from graph.binding import Binding
from graph.log.dead_letters import DeadLetters
from graph.log.encoding import decode, encode
from graph.log.events import publisher_of
from graph.log.numbers import before, entry_id
from graph.log.requests import superseded
from graph.post_lists import TIMELINE, PostList
from graph.projections.mode import Mode
from graph.projections.posts import free_posts
from graph.projections.projections import Projections
from graph.records import as_published
from graph.store.commands import Command, script
from graph.store.store import Store
from graph.tasks import to_the_end
from graph.tuning import Tuning

if TYPE_CHECKING:
    from graph.archive.archive import Archive

POSTS_PER_CUT = 1000
ATTEMPTS = 5

logger = logging.getLogger("fanline.archiver")


class HotWindowCutter:
    """Cuts lists of posts. `trimmed` counts the posts that were removed from timelines. `likes` cuts sets of likes."""

    def __init__(
        self, store: Store, binding: Binding, projections: Projections, dead_letters: DeadLetters, tuning: Tuning
    ) -> None:
        self._store = store
        self._binding = binding
        self._projections = projections
        self._dead_letters = dead_letters
        self._tuning = tuning
        self.likes = LikeWindows(store, binding, tuning)
        self.trimmed = 0

    async def cut_full(self, lists: Sequence[tuple[PostList, int]], up_to: int) -> None:
        """Cut the lists with more than `hot_posts` + `hot_slack` hot posts. `lists` contains (kind, owner) pairs.

        Only posts up to the number `up_to` are removed: all events up to it must be projected and archived. One round
        trip, plus four round trips and one query for every 1,000 posts removed; more if the archive lacks some of them.
        """
        commands: list[Command] = []
        for post_list, owner in lists:
            commands += [("ZSCORE", post_list.key(owner), "f"), ("ZCARD", post_list.key(owner))]
        replies = await self._store.read(commands)
        for (post_list, owner), floor, size in zip(lists, replies[::2], replies[1::2], strict=True):
            await self._cut(post_list, owner, int(floor or 0), self._surplus(size - (floor is not None)), up_to)

    async def cut_old(self, post_list: PostList, owners: Sequence[int], up_to: int, now: int) -> None:
        """Cut like `cut_full`, and also remove posts older than `hot_age`, except the newest `hot_newest` of a list.

        `now` is the lowest number that an event can have at the present time, according to the store's clock.
        """
        oldest = before(now, self._tuning.hot_age)
        commands: list[Command] = []
        for owner in owners:
            name = post_list.key(owner)
            commands += [("ZSCORE", name, "f"), ("ZCARD", name), ("ZCOUNT", name, "-inf", f"({oldest}")]
        replies = await self._store.read(commands)
        for owner, floor, size, older in zip(owners, replies[::3], replies[1::3], replies[2::3], strict=True):
            floors = int(floor is not None)
            aged = min(older - floors, size - floors - self._tuning.hot_newest)
            await self._cut(post_list, owner, int(floor or 0), max(self._surplus(size - floors), aged), up_to)

    def _surplus(self, posts: int) -> int:
        hot = self._tuning.hot_posts
        return posts - hot if posts > hot + self._tuning.hot_slack else 0

    async def _cut(self, post_list: PostList, owner: int, floor: int, surplus: int, up_to: int) -> None:
        """Remove the archived posts among the `surplus` oldest posts of a list.

        `floor` is the archive floor that was read before the list was counted. If the floor has changed, another
        process has cut the list, and the surplus is gone.
        """
        attempts = ATTEMPTS
        while surplus > 0 and attempts:
            rows = await self._store.run("ZRANGE", post_list.key(owner), 0, min(surplus, POSTS_PER_CUT), "WITHSCORES")
            present, posts = split_floor(rows)
            posts = [post for post in posts[:surplus] if post <= up_to]
            if present != floor or not posts:
                return
            try:
                is_cut = await self._cut_posts(post_list, owner, floor, posts)
            except ValueError as error:
                logger.error(
                    "Posts of the %s list of %d cannot be archived and stay in the store: %s",
                    post_list.name,
                    owner,
                    error,
                )
                return
            if is_cut:
                floor = posts[-1]
                surplus -= len(posts)
                self.trimmed += len(posts) if post_list is TIMELINE else 0
            else:
                attempts -= 1

    async def _cut_posts(self, post_list: PostList, owner: int, floor: int, posts: Sequence[int]) -> bool:
        """Remove posts, all above the floor, in ascending order. Return False if the list has changed.

        A post that has neither an archive row nor a record was deleted meanwhile or is lost. A post whose request was
        repeated after a failover counts as lost too. Such posts are removed together with the others.
        """
        archive = await self._binding.archive()
        missing = {*posts} - await archive.post_ids(owner, floor, posts[-1], post_list)
        if missing:
            rows = await self._rows(missing)
            repeated = await superseded(self._store, [decode(*row) for row in rows])
            rows = [row for row in rows if row.number not in repeated]
            logger.warning(
                "%d posts of list %d were missing from the archive; inserting %d", len(missing), owner, len(rows)
            )
            await self._projections.project([decode(*row) for row in rows], Mode.WORKER)
            await self._insert(archive, rows)
        return await to_the_end(self._remove(post_list, owner, floor, posts))

    async def _remove(self, post_list: PostList, owner: int, floor: int, posts: Sequence[int]) -> bool:
        """Remove archived posts and free their records. Return False if the list has changed. Three round trips."""
        await free_posts(self._store, posts, post_list)
        cut = script("cut_posts").call([post_list.key(owner), post_list.cold(owner)], floor, posts[-1], *posts)
        outcome = await self._store.run(*cut)
        await free_posts(self._store, posts, post_list)
        return bool(outcome == "cut")

    async def _insert(self, archive: "Archive", rows: Sequence[EventRow]) -> None:
        """Insert rows. A row that the archive refuses becomes a dead letter, and is inserted without its content."""
        store_id = await self._binding.store_id()
        try:
            await archive.insert(rows, store=store_id)
        except EventsRefused as refusal:
            if len(rows) > 1:
                for row in rows:
                    await self._insert(archive, [row])
                return
            [row] = rows
            words = ("kind", row.kind, "actor", str(row.actor), "body", row.body or "")
            await self._dead_letters.keep(entry_id(row.number), words, str(refusal))
            await archive.insert([row._replace(body=None)], store=store_id)

    async def _rows(self, posts: Iterable[int]) -> list[EventRow]:
        """Build rows of the archive from the records of posts. One round trip."""
        rows = []
        wanted = sorted(posts)
        records = await self._store.read([("HGETALL", keys.post(post)) for post in wanted])
        for post, record in zip(wanted, records, strict=True):
            body = as_published(record)
            if body is not None:
                encoded = encode(publisher_of(body))
                rows.append(EventRow(post, encoded.kind, body.author, encoded.subject, encoded.body))
        return rows


def split_floor(rows: Sequence[tuple[str, float]]) -> tuple[int, list[int]]:
    """Split the members and scores of a list into its archive floor and its hot posts."""
    floor = next((int(score) for member, score in rows if member == "f"), 0)
    return floor, [int(member) for member, _ in rows if member != "f"]
