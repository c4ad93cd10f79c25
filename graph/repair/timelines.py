"""Comparison of timelines: posts above an author's archive floor are listed and have records, the others are counted.

The floor in the store decides which posts the store holds. It is replaced by the floor of the canonical hot window only
if it is missing, or if the store lacks posts above it and the archive has more posts above it than a hot window may
hold.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

from graph import keys
from graph.archive.rows import POSTS, REDACTED
from graph.expected.event_folds import fold_event
from graph.fold.content import Content
from graph.fold.content import Part as FoldedPart
from graph.fold.hot_window import HotLimits, floor
from graph.fold.reading import FoldedBatch
from graph.log.events import PostPublished
from graph.paging import Window
from graph.post_lists import REPLIED, TIMELINE, PostList, lists_of
from graph.projections.posts import set_cold
from graph.repair import defects
from graph.repair.posts import Record, deletion_unknown, deletions, post_unknown, readable, record_wrong, set_listing
from graph.repair.report import Difference
from graph.repair.scope import Comparison, number, state_of
from graph.store.commands import Command, script

POSTS_AT_ONCE = 10_000


@dataclass(slots=True, eq=False)
class AuthorTimeline:
    """An author's posts in the archive, up to the number that a repair compares, and in the store.

    found: the archive floor in the store, or None if there is none.
    floor: the floor that the timeline should have.
    size: the number of posts that the store lists.
    cold, hot: the numbers of posts in the archive up to the floor and above it, when the archive ended at `archived`.
    posts: the posts above the floor in the archive.
    members, gone, count: the members, the tombstones and the number of archived posts in the store.
    may_lack_floor: whether a missing floor is right and means 0.
    """

    author: int
    found: int | None
    size: int
    cold: int
    hot: int
    archived: int
    floor: int = 0
    posts: dict[int, PostPublished] = field(default_factory=dict)
    members: dict[int, int] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)
    count: str | None = None
    may_lack_floor: bool = False

    def lacks_posts(self, largest: int) -> bool:
        """Return True if the floor is missing, or over `largest` archived posts are above it, not all in the store."""
        return (self.found is None and not self.may_lack_floor) or self.size < self.hot > largest

    @property
    def is_floor_wrong(self) -> bool:
        """Whether the floor in the store is not the one that the timeline should have."""
        return self.right_floor != self.found

    @property
    def right_floor(self) -> int | None:
        """The floor that the store should hold."""
        return None if self.may_lack_floor and not self.floor and self.found is None else self.floor


class TimelineComparison(Comparison):
    """Compares each author's timeline, the records of the posts in it, and the count of archived posts.

    For 500 authors: one query per 128 authors, one or two for the watermark, and one round trip. Then for 10,000 posts:
    one query per 256 authors, two round trips per 1,000 posts, and a query for the posts that only the store lists and
    for tombstones of archived posts.
    """

    part = defects.POSTS
    key: ClassVar["staticmethod[[int], str]"] = staticmethod(keys.posts)
    post_list: ClassVar[PostList] = TIMELINE

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in these authors' timelines."""
        found: list[Difference] = []
        up_to = self.scope.up_to
        for timelines in batches(await self._count(subjects)):
            await self._read_archive(timelines)
            records = await self._read_store(timelines)
            surplus = {p for t in timelines for p in t.members if p not in t.posts and p <= up_to}
            records |= await self.scope.records([*surplus])
            buried = {p for t in timelines for p, n in t.gone.items() if p <= t.floor and n <= t.archived}
            kinds = await self.scope.archive.kinds_of(surplus | buried)
            deleted = await deletions(self.scope, [post for post in surplus if kinds.get(post) == REDACTED])
            for timeline in timelines:
                found += floor_and_count(self.post_list, timeline, kinds)
                found += self._deletions(timeline, records, kinds)
                found += hot_posts(self.post_list, timeline, records)
                found += self._surplus(timeline, records, kinds, deleted)
        return found

    async def _count(self, authors: Sequence[int]) -> list[AuthorTimeline]:
        """Return the timelines of authors who have posts, or a timeline in the store."""
        commands: list[Command] = []
        for author in authors:
            commands += [("ZSCORE", self.post_list.key(author), "f"), ("ZCARD", self.post_list.key(author))]
        replies = await self.scope.send(commands)
        floors = [None if score is None else int(score) for score in replies[::2]]
        parts = [(author, bottom or 0) for author, bottom in zip(authors, floors, strict=True)]
        wholes = [(author, max(bottom, self.scope.up_to)) for author, bottom in parts]
        counts, archived = await self.scope.archive.post_counts([*parts, *wholes], self.post_list)
        rows = zip(authors, floors, replies[1::2], counts[: len(authors)], counts[len(authors) :], strict=True)
        return [
            AuthorTimeline(
                *(author, bottom, size - (bottom is not None), cold, whole - cold, archived),
                may_lack_floor=not self.post_list.is_of_users,
            )
            for author, bottom, size, cold, whole in rows
            if size or whole
        ]

    async def _read_archive(self, timelines: Sequence[AuthorTimeline]) -> None:
        """Read the posts above the floors. Choose a new floor for each timeline that `lacks_posts`."""
        tuning, high = self.scope.tuning, self.scope.up_to + 1
        limits, largest = HotLimits.of(tuning, datetime.now(UTC)), tuning.hot_posts + tuning.hot_slack
        reads = []
        for t in timelines:
            count = limits.posts + 1 if t.lacks_posts(largest) else max(1, t.hot)
            reads.append((t.author, Window(count, forward=True, low=min(t.found or 0, high), high=high)))
        for t, rows in zip(timelines, await self.scope.archive.post_rows(reads, self.post_list), strict=True):
            lowest = floor([row.number for row in rows], limits) if t.lacks_posts(largest) else 0
            t.floor = max(t.found or 0, lowest)
            batch = FoldedBatch(Content(parts=[FoldedPart.POSTS, FoldedPart.REPLIED]), fold_event)
            batch.add(row for row in rows if row.number > t.floor)
            folded = (*batch.content.posts.values(), *batch.content.replied.values())
            t.posts = {post: body for posts in folded for post, body in posts.live.items()}
            if t.lacks_posts(largest):
                t.cold += t.hot - len(t.posts)

    async def _read_store(self, timelines: list[AuthorTimeline]) -> dict[int, Record]:
        """Read the timelines and the records of their posts. Leave out timelines whose floor has changed.

        Records are read first, because a cut of a timeline frees its records before it raises the floor.
        """
        records: dict[int, Record] = {**await self.scope.records([post for t in timelines for post in t.posts])}
        commands: list[Command] = []
        for t in timelines:
            name = self.post_list.key(t.author)
            commands += [("ZRANGE", key, 0, -1, "WITHSCORES") for key in (name, keys.gone(name))]
            commands.append(("GET", self.post_list.cold(t.author)))
        replies = await self.scope.send(commands)
        for t, members, gone, count in list(zip(timelines, replies[::3], replies[1::3], replies[2::3], strict=True)):
            t.members, t.gone, t.count = numbers(members), numbers(gone), count
            if next((int(score) for member, score in members if member == "f"), None) != t.found:
                timelines.remove(t)
        return records

    def _deletions(
        self, t: AuthorTimeline, records: Mapping[int, Record], kinds: Mapping[int, str]
    ) -> Iterator[Difference]:
        """Yield a difference for each post that the archive shows, but whose timeline or record has a tombstone."""
        tombstones = {post: number(records[post]["deleted"]) for post in t.posts if "deleted" in records[post]} | t.gone
        for post, deletion in tombstones.items():
            is_shown = post in t.posts or (post <= t.floor and kinds.get(post) in POSTS)
            if is_shown and deletion <= self.scope.up_to:
                score = t.members.get(post) if post in t.gone else None  # its projection skips a post with a tombstone
                unlist = set_listing(t.author, post, score, -deletion, t.right_floor, self.post_list)
                yield deletion_unknown(self.scope, t.author, t.author, post, [unlist] if score else [])

    def _surplus(
        self, t: AuthorTimeline, records: Mapping[int, Record], kinds: Mapping[int, str], deleted: Mapping[int, int]
    ) -> Iterator[Difference]:
        """Yield a difference for each listed post that the archive does not have above the floor.

        A post that the database refused to store is redacted, too, but has no deletion, and stays listed.
        """
        for post, score in t.members.items():
            if post in t.posts or post > self.scope.up_to:
                continue
            deletion, kind = deleted.get(post), kinds.get(post)
            unlist = set_listing(
                t.author, post, score, None if deletion is None else -deletion, t.right_floor, self.post_list
            )
            if kind is None:
                body = readable(post, records[post])
                body = body if body is not None and body.author == t.author else None
                yield post_unknown(self.scope, t.author, post, body, [] if post > t.floor else [unlist], unlist)
            elif kind != REDACTED or deletion is not None or post <= t.floor:
                text = f"post {post} in the {self.post_list.name} of user {t.author}"
                yield Difference(defects.POST_LISTED, t.author, post, text, [unlist])


class Replied(TimelineComparison):
    """Compares each author's replies, and the records of the replies that are not listed in a timeline.

    Costs as much as `TimelineComparison`.
    """

    key = staticmethod(keys.replied)
    post_list = REPLIED

    def subjects(self) -> AsyncIterator[list[int]]:
        """Yield the authors who have replies in the archive or in the store."""
        return self.scope.list_owners(self.post_list)


def floor_and_count(post_list: PostList, t: AuthorTimeline, kinds: Mapping[int, str]) -> Iterator[Difference]:
    """Yield a difference if the floor is wrong, and one if the count of archived posts is wrong.

    The archive also counts posts whose deletions it does not hold yet or has lost.
    """
    if t.is_floor_wrong:
        found = "" if t.found is None else t.found
        command = script("repair_floor").call([post_list.key(t.author)], found, t.floor)
        yield Difference(
            defects.FLOOR_WRONG, t.author, "f", f"user {t.author}: {found or 'none'}, not {t.floor}", [command]
        )
    deleted = sum(p <= t.floor and (n > t.archived or kinds.get(p) in POSTS) for p, n in t.gone.items())
    count = t.cold - deleted
    if number(t.count) != count:
        command = set_cold(post_list, t.author, t.floor, t.count, count)
        yield Difference(defects.COUNT_WRONG, t.author, "count", f"user {t.author}: {t.count}, not {count}", [command])


def hot_posts(post_list: PostList, t: AuthorTimeline, records: Mapping[int, Record]) -> Iterator[Difference]:
    """Yield a difference for each hot post that is not listed at its position, or has a missing or wrong record.

    The records of replies that are listed in a timeline are compared only with the timeline.
    """
    for post, body in t.posts.items():
        if post in t.gone or "deleted" in records[post]:
            continue
        if t.members.get(post) != post:
            command = set_listing(
                t.author, post, state_of(t.members.get(post), t.gone.get(post)), post, t.right_floor, post_list
            )
            yield Difference(defects.POST_UNLISTED, t.author, post, f"post {post} by user {t.author}", [command])
        if next(lists_of(body))[0] is post_list and readable(post, records[post]) != body:
            yield record_wrong(t.author, post, body, records[post])


def batches(timelines: Iterable[AuthorTimeline]) -> Iterator[list[AuthorTimeline]]:
    """Yield groups of timelines that together have about 10,000 posts."""
    batch: list[AuthorTimeline] = []
    for timeline in timelines:
        if batch and sum(t.hot for t in batch) + timeline.hot > POSTS_AT_ONCE:
            yield batch
            batch = []
        batch.append(timeline)
    if batch:
        yield batch


def numbers(rows: Iterable[tuple[str, float]]) -> dict[int, int]:
    """Return the elements of a sorted set with their scores, without floors."""
    return {int(member): int(score) for member, score in rows if member.isdecimal()}
