"""The log: what it still tells of permissions, follows, posts and deletions has left its mark somewhere.

Where only one of the places that an event was projected to has lost it, the other tells; here is found what all have
lost. It is projected again.
"""

from collections.abc import AsyncIterator, Sequence
from functools import partial

from graph import keys
from graph.log.events import (
    Event,
    Followed,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    PostPublished,
    Unfollowed,
)
from graph.log.log import READ_CHUNK
from graph.projections.mode import Mode
from graph.projections.projections import Projections
from graph.records import published_post
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
    """All events of the log about one part: of accounts the permissions, follows, or posts.

    For 500 events one round trip to read them, one for permissions, four for follows or three for posts, and a query
    of the archive if some posts are not in the store.
    """

    counts = None

    def __init__(self, scope: Scope, projections: Projections, part: Part) -> None:
        self._scope = scope
        self._projections = projections
        self.part = part

    async def subjects(self) -> AsyncIterator[list[Event]]:
        """Go through the log, from what retention has left to the watermark."""
        kinds = KINDS[self.part]
        chunk: list[Event] = []
        async for event in self._scope.log.replay(0, self._scope.watermark):
            self._scope.seen += 1
            if isinstance(event.body, kinds):
                chunk.append(event)
            if len(chunk) == READ_CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    async def compare(self, events: Sequence[Event]) -> list[Difference[Event]]:
        """Find the events that left no mark."""
        if self.part is Part.ACCOUNTS:
            return await self._permissions(events)
        return await (self._follows(events) if self.part is Part.FOLLOWS else self._posts(events))

    async def _permissions(self, events: Sequence[Event]) -> list[Difference[Event]]:
        changes = [
            (event, event.body) for event in events if isinstance(event.body, (PermissionGranted, PermissionRevoked))
        ]
        marks = await self._scope.ask(
            [("HGET", keys.user(body.user), keys.permission(body.permission)) for _, body in changes]
        )
        return [
            self._again(
                Kind.FORGOTTEN_PERMISSION,
                event,
                f"user {body.user}, {body.permission}: {type(body).__name__}, number {event.number}",
            )
            for (event, body), mark in zip(changes, marks, strict=True)
            if abs(int(mark or 0)) < event.number
        ]

    async def _follows(self, events: Sequence[Event]) -> list[Difference[Event]]:
        pairs = {
            event: Pair(event.body.follower, event.body.followee)
            for event in events
            if isinstance(event.body, (Followed, Unfollowed))
        }
        own, other = await read_sides(self._scope, list(dict.fromkeys(pairs.values())))
        return [
            self._again(
                Kind.FORGOTTEN_FOLLOW,
                event,
                f"users {pair.follower} and {pair.followee}: {type(event.body).__name__}, number {event.number}",
            )
            for event, pair in pairs.items()
            if max(own[pair].newest, own[pair].floor) < event.number
            and max(other[pair].newest, other[pair].floor) < event.number
        ]

    async def _posts(self, events: Sequence[Event]) -> list[Difference[Event]]:
        entries = {
            event: Entry(event.body.author, event.body.post if isinstance(event.body, PostDeleted) else event.number)
            for event in events
            if isinstance(event.body, (PostPublished, PostDeleted))
        }
        records = await self._scope.records([entry.post for entry in entries.values()])
        sights = dict(zip(entries, await look(self._scope, list(entries.values()), records), strict=True))
        found, missing = [], {}
        for event, sight in sights.items():
            what = f"post {sight.post} by user {sight.author}"
            if isinstance(event.body, PostDeleted):
                if sight.tombstone is None and not (sight.living and sight.unlisted):
                    found.append(
                        self._again(Kind.FORGOTTEN_DELETION, event, f"{what}, deleted by number {event.number}")
                    )
            elif not records[sight.post] and sight.listed is None and sight.unlisted is None:
                missing[sight.post] = event, sight.archived, what
        rows = await self._scope.rows(missing) if missing else {}
        if rows is None:
            return found
        for post, (event, archived, what) in missing.items():
            if post not in rows and isinstance(event.body, PostPublished):
                cure = partial(self._scope.add_row, published_post(post, event.body))
                again = self._again(Kind.FORGOTTEN_POST, event, what)
                found.append(Difference(again.kind, event, what, cure) if archived else again)
        return found

    def _again(self, kind: Kind, event: Event, what: str) -> Difference[Event]:
        async def cure() -> bool:
            await self._projections.project([event], Mode.WORKER)
            return True

        return Difference(kind, event, what, cure)
