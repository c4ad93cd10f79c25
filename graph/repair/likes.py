"""Comparison of likes: the likes above the archive floor of each post and of each user, and the counts.

As with timelines, the floor in the store decides which likes the store holds. It is replaced only if the store lacks
likes above it, and the archive has more likes above it than a hot window may hold.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from graph import keys
from graph.archive.rows import POST, REDACTED, LikeRow
from graph.archiver.like_counts import LikeCount, LikeCounts, set_count
from graph.model import MAX_NUMBER
from graph.paging import Window
from graph.posts.like_pages import LIKED, LIKERS, LikeList
from graph.projections.likes import like_keys
from graph.repair import defects
from graph.repair.posts import lost_among
from graph.repair.report import Difference
from graph.repair.scope import Comparison, set_element, state_of
from graph.store.commands import Command, script


@dataclass(slots=True, eq=False)
class LikeSet:
    """The likes of a post by user, or the likes of a user by post, with the numbers of the likes.

    found: the archive floor in the store, or None if there is none.
    floor: the floor that the set should have.
    expected: the likes above that floor in the archive, up to the number that a repair compares.
    held: the members in the store, with their numbers.
    """

    owner: int
    found: int | None
    floor: int
    expected: dict[int, int]
    held: dict[int, int] = field(default_factory=dict)

    @property
    def right_floor(self) -> int | None:
        """The floor that the store should hold."""
        return self.floor if self.floor or self.found is not None else None

    def wrong(self) -> list[int]:
        """Return the members that are missing, wrong, or newer than the archive."""
        members = dict.fromkeys([*self.expected, *self.held])
        return [each for each in members if self.expected.get(each) != self.held.get(each)]

    def state(self, member: int, held: int | None, tombstone: int | None) -> int | None:
        """Return the state that an element with this number and tombstone must have; see `repair_element.lua`.

        A like that the archive does not hold becomes a tombstone, so that projecting its event again does not add it.
        """
        above = held if held is not None and held > self.floor else 0
        return self.expected.get(member) or -max(above, tombstone or 0) or None


class LikeComparison(Comparison):
    """Compares sets of likes with the archive.

    For 500 owners: one query per owner and two round trips, and one more round trip if there are differences. Sets
    whose archive floor changes during the comparison are left out.
    """

    part = defects.LIKES
    kind: ClassVar[LikeList]

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in the sets of these owners."""
        sets = await self._read(list(dict.fromkeys(subjects)))
        wrong = [(each.owner, member) for each in sets for member in each.wrong()]
        scores = await self.scope.scores(self.kind.key, wrong, lambda owner: keys.gone(self.kind.key(owner)))
        found = await self._floors([each for each in sets if each.right_floor != each.found])
        by_owner = {each.owner: each for each in sets}
        for owner, member in wrong:
            found += self._wrong(by_owner[owner], member, *scores[owner, member])
        return found

    async def _read(self, owners: Sequence[int]) -> list[LikeSet]:
        """Return the sets of these owners whose archive floor does not change while they are read."""
        tuning, up_to, names = self.scope.tuning, self.scope.up_to, [self.kind.key(owner) for owner in owners]
        commands: list[Command] = [command for name in names for command in (("ZSCORE", name, "f"), ("ZCARD", name))]
        replies = await self.scope.send(commands)
        floors = [None if score is None else int(score) for score in replies[::2]]
        largest = tuning.hot_posts + tuning.hot_slack
        reads = []
        for owner, floor, size in zip(owners, floors, replies[1::2], strict=True):
            low = min(floor or 0, up_to + 1)
            reads.append((owner, Window(max(size, largest) + 1, forward=True, low=low, high=up_to + 1)))
        rows = await self.scope.archive.likes(self.kind.owner, reads)
        sets = [
            self._set(owner, floor, likes, complete=len(likes) < window.count)
            for (owner, window), floor, likes in zip(reads, floors, rows, strict=True)
        ]
        held = await self.scope.send([("ZRANGE", name, 0, -1, "WITHSCORES") for name in names])
        for each, members in zip(list(sets), held, strict=True):
            each.held = {int(member): int(score) for member, score in members if member.isdecimal()}
            if next((int(score) for member, score in members if member == "f"), None) != each.found:
                sets.remove(each)
        return sets

    def _set(self, owner: int, floor: int | None, likes: Sequence[LikeRow], *, complete: bool) -> LikeSet:
        """Return the set that the store should have, with a new floor if `likes` is not complete."""
        kept = likes if complete else likes[: self.scope.tuning.hot_posts]
        bottom = (floor or 0) if complete else likes[len(kept)].number
        return LikeSet(owner, floor, bottom, {self.kind.member(like): like.number for like in kept})

    def _wrong(self, each: LikeSet, member: int, held: int | None, tombstone: int | None) -> Iterator[Difference]:
        """Yield a difference if an element is still wrong and not newer than the archive."""
        if held != each.expected.get(member) and max(held or 0, tombstone or 0) <= self.scope.up_to:
            states = (state_of(held, tombstone), each.state(member, held, tombstone))
            command = set_element(self.kind.key, (each.owner, member), *states, floor=each.right_floor)
            text = f"{member} in {self.kind.key(each.owner)}"
            yield Difference(defects.LIKE_WRONG, each.owner, member, text, [command, *self._recount(each.owner)])

    async def _floors(self, sets: Sequence[LikeSet]) -> list[Difference]:
        """Return a difference for each of these sets, whose floors are wrong."""
        counts = await self._archived_counts(sets)
        found = []
        for each in sets:
            name, present = self.kind.key(each.owner), "" if each.found is None else each.found
            correction = [script("repair_floor").call([name], present, each.floor), *counts.get(each.owner, [])]
            found.append(Difference(defects.LIKE_FLOOR_WRONG, each.owner, "f", name, correction))
        return found

    async def _archived_counts(self, sets: Sequence[LikeSet]) -> dict[int, list[Command]]:
        """Return, by owner, the commands that set the count of archived likes after the floor is corrected."""
        return {}

    def _recount(self, owner: int) -> list[Command]:
        """Return the commands that count the likes of a set again."""
        return []


class LikedPosts(LikeComparison):
    """Compares the posts that each user likes."""

    kind = LIKED
    key = staticmethod(keys.liked)


class LikesOfPosts(LikeComparison):
    """Compares the likes of each post and their count, and finds leftover likes of deleted and lost posts.

    For 500 posts, two queries and two round trips more than `LikeComparison`, two more of each for wrong counts, and
    one round trip for posts that are not in the archive.
    """

    kind = LIKERS
    key = staticmethod(keys.likes)
    of_users = False

    async def subjects(self) -> AsyncIterator[list[int]]:
        """Yield the posts with likes in the archive, then those with likes only in the store. One query per chunk."""
        after = 0
        while posts := await self.scope.archive.liked_posts(after, self.owners_at_once):
            after = posts[-1]
            yield [post for post in posts if post <= self.scope.up_to]
        async for held in super().subjects():
            counts, _ = await self.scope.archive.like_counts([(post, MAX_NUMBER) for post in held])
            yield [post for post, count in zip(held, counts, strict=True) if not count and post <= self.scope.up_to]

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in the likes of these posts. Ids of anything but posts are skipped."""
        kinds = await self.scope.archive.kinds_of(subjects)
        live = [post for post in dict.fromkeys(subjects) if kinds.get(post) == POST]
        lost = await lost_among(self.scope, dict.fromkeys(subjects), kinds)
        ended = [post for post in dict.fromkeys(subjects) if kinds.get(post) == REDACTED or post in lost]
        found = await super().compare(live)
        floors = {each.subject for each in found if each.defect is defects.LIKE_FLOOR_WRONG}
        found += await self._counts([post for post in live if post not in floors])
        return found + await self._left(ended)

    def _recount(self, owner: int) -> list[Command]:
        name, _, cold, record = like_keys(owner)
        return [script("count_list").call([name, cold, record], "likes")]

    async def _counts(self, posts: Sequence[int]) -> list[Difference]:
        """Return the differences in the counts of archived likes, and in the numbers of likes in records."""
        counts = LikeCounts(self.scope.store, self.scope.binding)
        archived = await counts.wrong(await counts.suspects(posts), certain=True)
        found = [_count_wrong(count.post, [set_count(count, likes)]) for count, likes in archived]
        commands: list[Command] = []
        for post in posts:
            name, _, cold, record = like_keys(post)
            commands += [("ZCARD", name), ("ZSCORE", name, "f"), ("GET", cold), ("HGET", record, "likes")]
        replies = await self.scope.send(commands)
        for place, post in enumerate(posts):
            size, floor, cold_likes, likes = replies[4 * place : 4 * place + 4]
            if floor is None and cold_likes is not None:
                found.append(_count_wrong(post, [("UNLINK", keys.cold_likes(post)), *self._recount(post)]))
            elif int(likes or 0) != size - (floor is not None) + int(cold_likes or 0):
                found.append(_count_wrong(post, self._recount(post)))
        return list({each.identity: each for each in reversed(found)}.values())

    async def _archived_counts(self, sets: Sequence[LikeSet]) -> dict[int, list[Command]]:
        held = await self.scope.send([("GET", keys.cold_likes(each.owner)) for each in sets])
        likes, _ = await self.scope.archive.like_counts([(each.owner, each.floor) for each in sets])
        return {
            each.owner: [set_count(LikeCount(each.owner, each.floor, found), count)]
            for each, found, count in zip(sets, held, likes, strict=True)
        }

    async def _left(self, posts: Sequence[int]) -> list[Difference]:
        """Return a difference for each of these deleted or lost posts that still has likes. One round trip."""
        sizes = await self.scope.send([("EXISTS", *like_keys(post)[:3]) for post in posts])
        return [
            Difference(defects.LIKE_LEFT, post, "likes", f"post {post}", [("UNLINK", *like_keys(post)[:3])])
            for post, size in zip(posts, sizes, strict=True)
            if size
        ]


def _count_wrong(post: int, correction: list[Command]) -> Difference:
    return Difference(defects.LIKE_COUNT_WRONG, post, "count", f"post {post}", correction)
