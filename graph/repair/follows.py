"""Comparison of follows: the followees of a user and the followers of a user are two versioned sets that must agree.

The side with the higher number is right. The correction writes its number to the other side, so that a newer change
wins over the repair. If one side holds a follow and the other side has only a tombstone floor above it, the follower's
own list decides: a follow changes it last, and an unfollow changes it first.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from graph import keys
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import Key, Scope, pattern
from graph.store.commands import script


@dataclass(frozen=True, slots=True)
class Pair:
    """A follower and a followee, as named by one of the two lists."""

    follower: int
    followee: int


@dataclass(frozen=True, slots=True)
class Side:
    """The state of a pair in one list: the numbers of the follow and of its tombstone, and the tombstone floor."""

    follow: int | None
    undone: int | None
    floor: int

    @property
    def newest(self) -> int:
        """The highest number of the pair itself, without the floor."""
        return max(self.follow or 0, self.undone or 0)


class Follows:
    """Compares all pairs of one kind of list, `keys.following` or `keys.followers`, with the other kind.

    Round trips per chunk of 500 lists and 10,000 pairs: one to read the lists, one per 1,000 users on each side, and
    four more for differences. Pairs in both lists are compared only with `keys.following`.
    """

    part = Part.FOLLOWS

    def __init__(self, scope: Scope, key: Key) -> None:
        self._scope = scope
        self._key = key
        self.key_pattern = pattern(key)

    async def subjects(self) -> AsyncIterator[list[Pair]]:
        """Yield all pairs."""
        async for owners in self._scope.owners(self._key):
            async for members in self._scope.members(self._key, owners):
                if self._key == keys.following:
                    yield [Pair(follower, followee) for follower, followee in members]
                else:
                    yield [Pair(follower, followee) for followee, follower in members]

    async def compare(self, pairs: Sequence[Pair]) -> list[Difference[Pair]]:
        """Return the pairs whose two sides differ."""
        following = await self._scope.scores(keys.following, [(p.follower, p.followee) for p in pairs])
        followers = await self._scope.scores(keys.followers, [(p.followee, p.follower) for p in pairs])
        different = [
            pair
            for pair in dict.fromkeys(pairs)
            if following[pair.follower, pair.followee] != followers[pair.followee, pair.follower]
        ]
        own, others = await read_sides(self._scope, different)
        checked = [self._check(pair, own[pair], others[pair]) for pair in different]
        return [difference for difference in checked if difference is not None]

    def _check(self, pair: Pair, own: Side, other: Side) -> Difference[Pair] | None:
        """Return the difference of a pair, or None if there is none up to the watermark."""
        v, a = pair.follower, pair.followee
        if own.follow == other.follow or max(own.newest, other.newest) > self._scope.watermark:
            return None
        if own.follow and other.follow:
            if self._key == keys.followers:
                return None
            text = f"user {v} follows user {a}: event {own.follow} in the follower's list, {other.follow} in the other"
            return Difference(Kind.FOLLOW_NUMBERS_DIFFER, pair, text, lambda: self._add(pair, own.newest, other.newest))
        if own.follow:
            text = f"user {v} follows user {a} since event {own.follow}"
            if (other.undone or 0) > own.follow:
                text = f"{text}, until event {other.undone}"
                correct = partial(self._remove, pair, own.newest, other.newest)
                return Difference(Kind.UNFOLLOW_ONE_SIDED, pair, text, correct)
            text = f"{text}, but is not in the list of followers"
            return Difference(Kind.FOLLOWER_MISSING, pair, text, lambda: self._add(pair, own.newest, 0))
        undone = own.undone or (own.floor if own.floor >= (other.follow or 0) else 0)
        text = f"user {v} is in the list of followers of user {a} since event {other.follow}"
        if undone > (other.follow or 0):
            text = f"{text}, until event {undone}"
            return Difference(Kind.UNFOLLOW_ONE_SIDED, pair, text, lambda: self._remove(pair, undone, other.newest))
        text = f"{text}, but does not follow that user"
        return Difference(Kind.FOLLOWEE_MISSING, pair, text, lambda: self._add(pair, 0, other.newest))

    async def _add(self, pair: Pair, own: int, other: int) -> bool:
        """Write a follow with the higher of the two numbers to both sides, the list of followers first.

        Delete the home cache last: the rebuilt cache then has every post that fan-out did not send to this follower.
        """
        v, a, number = pair.follower, pair.followee, max(own, other)
        followers, following = keys.followers(a), keys.following(v)
        add, applied = script("repair_follow"), True
        if other < number:
            [done] = await self._scope.send([add.call([followers, keys.gone(followers)], number, v)])
            applied = bool(done)
        if own < number:
            [done] = await self._scope.send([add.call([following, keys.gone(following), keys.home(v)], number, a)])
            applied = applied and bool(done)
        elif applied:
            await self._scope.send([("UNLINK", keys.home(v))])
        return applied

    async def _remove(self, pair: Pair, own: int, other: int) -> bool:
        """Remove a follow on both sides, with the higher of the two numbers."""
        v, a, number, remove = pair.follower, pair.followee, max(own, other), script("remove")
        followers, following = keys.followers(a), keys.following(v)
        if own < number:
            [[done]] = await self._scope.send(
                [remove.call([following, keys.gone(following), keys.home(v)], 0, a, number)]
            )
        else:
            [[done]] = await self._scope.send([remove.call([followers, keys.gone(followers)], 0, v, number)])
        return bool(done)


async def read_sides(scope: Scope, pairs: Sequence[Pair]) -> tuple[dict[Pair, Side], dict[Pair, Side]]:
    """Return the state of each pair in the follower's list, and in the followee's list. 4 round trips."""
    own = {pair: (pair.follower, pair.followee) for pair in pairs}
    other = {pair: (pair.followee, pair.follower) for pair in pairs}
    return await _sides(scope, keys.following, own), await _sides(scope, keys.followers, other)


async def _sides(scope: Scope, key: Key, pairs: dict[Pair, tuple[int, int]]) -> dict[Pair, Side]:
    """Read one side: the tombstones last, so that no removal between the reads is missed."""

    def gone(owner: int) -> str:
        return keys.gone(key(owner))

    wanted: Collection[tuple[int, int | str]] = pairs.values()
    scores = await scope.scores(key, wanted)
    undone = await scope.scores(gone, [*wanted, *((owner, "f") for owner, _ in wanted)])
    return {pair: Side(scores[item], undone[item], undone[item[0], "f"] or 0) for pair, item in pairs.items()}
