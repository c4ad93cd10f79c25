"""Follows: whom somebody follows, and who follows somebody, are two versioned sets that must say the same.

The side with the higher number is right, and its number is given to the other side, so a change that happens
meanwhile wins over the repair. Where the one side holds a follow and the other knows only, from the floor of its
tombstones, that an undoing may have been forgotten, the follower's own list decides: of the two it is the last to
change when a follow begins and the first when it ends.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass

from graph import keys
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import Key, Scope, pattern
from graph.store.commands import script


@dataclass(frozen=True, slots=True)
class Pair:
    """Somebody who follows somebody, as one of the two lists has it."""

    follower: int
    followee: int


@dataclass(frozen=True, slots=True)
class Side:
    """What one list knows of a pair: the number of the follow, or of its undoing, and the floor of all undoings."""

    follow: int | None
    undone: int | None
    floor: int

    @property
    def newest(self) -> int:
        """The highest number that this side knows of the pair for certain."""
        return max(self.follow or 0, self.undone or 0)


class Follows:
    """All pairs of one kind of list: `keys.following` or `keys.followers`.

    For 500 lists and 10,000 pairs in them a round trip to read them, and one for every thousand people on either side;
    four more where something differs. Pairs that both lists hold are judged in the walk through `following`.
    """

    part = Part.FOLLOWS

    def __init__(self, scope: Scope, key: Key) -> None:
        self._scope = scope
        self._key = key
        self.counts = pattern(key)

    async def subjects(self) -> AsyncIterator[list[Pair]]:
        """Go through all pairs."""
        async for owners in self._scope.owners(self._key):
            async for members in self._scope.members(self._key, owners):
                if self._key == keys.following:
                    yield [Pair(follower, followee) for follower, followee in members]
                else:
                    yield [Pair(follower, followee) for followee, follower in members]

    async def compare(self, pairs: Sequence[Pair]) -> list[Difference[Pair]]:
        """Read both sides of each pair, and find those that differ."""
        following = await self._scope.scores(keys.following, [(p.follower, p.followee) for p in pairs])
        followers = await self._scope.scores(keys.followers, [(p.followee, p.follower) for p in pairs])
        unlike = [
            pair
            for pair in dict.fromkeys(pairs)
            if following[pair.follower, pair.followee] != followers[pair.followee, pair.follower]
        ]
        own, others = await read_sides(self._scope, unlike)
        judged = [self._judge(pair, own[pair], others[pair]) for pair in unlike]
        return [difference for difference in judged if difference is not None]

    def _judge(self, pair: Pair, own: Side, other: Side) -> Difference[Pair] | None:
        """Say what is wrong with a pair, if anything is that counts."""
        v, a = pair.follower, pair.followee
        if own.follow == other.follow or max(own.newest, other.newest) > self._scope.watermark:
            return None
        if own.follow and other.follow:
            if self._key == keys.followers:
                return None
            what = f"user {v} follows user {a}: number {own.follow} in the one list, {other.follow} in the other"
            return Difference(Kind.FOLLOW_NUMBER, pair, what, lambda: self._add(pair, own.newest, other.newest))
        if own.follow:
            what = f"user {v} follows user {a} since number {own.follow}"
            if (other.undone or 0) > own.follow:
                what = f"{what}; number {other.undone} undid it"
                return Difference(Kind.UNFOLLOWED, pair, what, lambda: self._remove(pair, own.newest, other.newest))
            what = f"{what}, but is not among the followers"
            return Difference(Kind.FOLLOWER, pair, what, lambda: self._add(pair, own.newest, 0))
        undone = own.undone or (own.floor if own.floor >= (other.follow or 0) else 0)
        what = f"user {v} is among the followers of user {a} since number {other.follow}"
        if undone > (other.follow or 0):
            what = f"{what}; number {undone} undid it"
            return Difference(Kind.UNFOLLOWED, pair, what, lambda: self._remove(pair, undone, other.newest))
        what = f"{what}, but does not follow"
        return Difference(Kind.FOLLOWING, pair, what, lambda: self._add(pair, 0, other.newest))

    async def _add(self, pair: Pair, own: int, other: int) -> bool:
        """Let both sides hold a follow with the higher of their numbers. The followers first, as always.

        The home cache is forgotten last: a post that was fanned out without this follower is in the next one.
        """
        v, a, number = pair.follower, pair.followee, max(own, other)
        followers, following = keys.followers(a), keys.following(v)
        put, applied = script("repair_follow"), True
        if other < number:
            [done] = await self._scope.ask([put.call([followers, keys.gone(followers)], number, v)])
            applied = bool(done)
        if own < number:
            [done] = await self._scope.ask([put.call([following, keys.gone(following), keys.home(v)], number, a)])
            applied = applied and bool(done)
        elif applied:
            await self._scope.ask([("UNLINK", keys.home(v))])
        return applied

    async def _remove(self, pair: Pair, own: int, other: int) -> bool:
        """Let both sides undo a follow with the higher of their numbers."""
        v, a, number, remove = pair.follower, pair.followee, max(own, other), script("remove")
        followers, following = keys.followers(a), keys.following(v)
        if own < number:
            [[done]] = await self._scope.ask(
                [remove.call([following, keys.gone(following), keys.home(v)], 0, a, number)]
            )
        else:
            [[done]] = await self._scope.ask([remove.call([followers, keys.gone(followers)], 0, v, number)])
        return bool(done)


async def read_sides(scope: Scope, pairs: Sequence[Pair]) -> tuple[dict[Pair, Side], dict[Pair, Side]]:
    """Read what the follower's own list knows of each pair, then what the followee's knows. Four round trips."""
    own = {pair: (pair.follower, pair.followee) for pair in pairs}
    other = {pair: (pair.followee, pair.follower) for pair in pairs}
    return await _sides(scope, keys.following, own), await _sides(scope, keys.followers, other)


async def _sides(scope: Scope, key: Key, pairs: dict[Pair, tuple[int, int]]) -> dict[Pair, Side]:
    """Read one side: the tombstones last, so that no undoing is missed between the reads."""

    def gone(owner: int) -> str:
        return keys.gone(key(owner))

    places: Collection[tuple[int, int | str]] = pairs.values()
    scores = await scope.scores(key, places)
    undone = await scope.scores(gone, [*places, *((owner, "f") for owner, _ in places)])
    return {pair: Side(scores[place], undone[place], undone[place[0], "f"] or 0) for pair, place in pairs.items()}
