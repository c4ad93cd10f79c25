"""The log: what it still tells of permissions, follows, posts and deletions has left its mark somewhere.

Where only one of the places that a fact was projected to has lost it, the other tells; here is found what all have
lost. It is projected again.
"""

from collections.abc import AsyncIterator, Sequence
from functools import partial

from graph import keys
from graph.log.events import (
    Fact,
    Followed,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    PostPublished,
    Unfollowed,
)
from graph.log.log import READ_CHUNK
from graph.posts import published_post
from graph.projections.projections import Projections
from graph.repair.follows import Pair, read_sides
from graph.repair.posts import Entry, look
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import Scope

KINDS: dict[Part, tuple[type, ...]] = {
    Part.ACCOUNTS: (PermissionGranted, PermissionRevoked),
    Part.FOLLOWS: (Followed, Unfollowed),
    Part.POSTS: (PostPublished, PostDeleted),
}


class Logged:
    """All facts of the log about one part: of accounts the permissions, follows, or posts.

    For 500 facts one round trip to read them, one for permissions, four for follows or three for posts, and a query
    of the archive if some posts are not in the store.
    """

    counts = None

    def __init__(self, scope: Scope, projections: Projections, part: Part) -> None:
        self._scope = scope
        self._projections = projections
        self.part = part

    async def subjects(self) -> AsyncIterator[list[Fact]]:
        """Go through the log, from what retention has left to the drained mark."""
        kinds = KINDS[self.part]
        chunk: list[Fact] = []
        async for fact in self._scope.log.replay(0, self._scope.drained):
            self._scope.seen += 1
            if isinstance(fact.event, kinds):
                chunk.append(fact)
            if len(chunk) == READ_CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    async def compare(self, facts: Sequence[Fact]) -> list[Difference[Fact]]:
        """Find the facts that left no mark."""
        if self.part is Part.ACCOUNTS:
            return await self._permissions(facts)
        return await (self._follows(facts) if self.part is Part.FOLLOWS else self._posts(facts))

    async def _permissions(self, facts: Sequence[Fact]) -> list[Difference[Fact]]:
        changes = [
            (fact, fact.event) for fact in facts if isinstance(fact.event, (PermissionGranted, PermissionRevoked))
        ]
        marks = await self._scope.ask(
            [("HGET", keys.user(event.user), keys.permission(event.permission)) for _, event in changes]
        )
        return [
            self._again(
                Kind.FORGOTTEN_PERMISSION,
                fact,
                f"user {event.user}, {event.permission}: {type(event).__name__}, number {fact.number}",
            )
            for (fact, event), mark in zip(changes, marks, strict=True)
            if abs(int(mark or 0)) < fact.number
        ]

    async def _follows(self, facts: Sequence[Fact]) -> list[Difference[Fact]]:
        pairs = {
            fact: Pair(fact.event.follower, fact.event.followee)
            for fact in facts
            if isinstance(fact.event, (Followed, Unfollowed))
        }
        own, other = await read_sides(self._scope, list(dict.fromkeys(pairs.values())))
        return [
            self._again(
                Kind.FORGOTTEN_FOLLOW,
                fact,
                f"users {pair.follower} and {pair.followee}: {type(fact.event).__name__}, number {fact.number}",
            )
            for fact, pair in pairs.items()
            if max(own[pair].newest, own[pair].floor) < fact.number
            and max(other[pair].newest, other[pair].floor) < fact.number
        ]

    async def _posts(self, facts: Sequence[Fact]) -> list[Difference[Fact]]:
        entries = {
            fact: Entry(fact.event.author, fact.event.post if isinstance(fact.event, PostDeleted) else fact.number)
            for fact in facts
            if isinstance(fact.event, (PostPublished, PostDeleted))
        }
        records = await self._scope.records([entry.post for entry in entries.values()])
        sights = dict(zip(entries, await look(self._scope, list(entries.values()), records), strict=True))
        found, missing = [], {}
        for fact, sight in sights.items():
            what = f"post {sight.post} by user {sight.author}"
            if isinstance(fact.event, PostDeleted):
                if sight.tombstone is None and not (sight.living and sight.unlisted):
                    found.append(self._again(Kind.FORGOTTEN_DELETION, fact, f"{what}, deleted by number {fact.number}"))
            elif not records[sight.post] and sight.listed is None and sight.unlisted is None:
                missing[sight.post] = fact, sight.archived, what
        rows = await self._scope.rows(missing) if missing else {}
        if rows is None:
            return found
        for post, (fact, archived, what) in missing.items():
            if post not in rows and isinstance(fact.event, PostPublished):
                cure = partial(self._scope.add_row, published_post(post, fact.event))
                again = self._again(Kind.FORGOTTEN_POST, fact, what)
                found.append(Difference(again.kind, fact, what, cure) if archived else again)
        return found

    def _again(self, kind: Kind, fact: Fact, what: str) -> Difference[Fact]:
        async def cure() -> bool:
            await self._projections.project([fact], whole=True)
            return True

        return Difference(kind, fact, what, cure)
