"""Comparison of the log with its projections: permissions, follows, posts and deletions.

The other comparisons find an event that is missing in one of its projections. This one finds an event that is missing
in all of them, and projects the event again.
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
from graph.repair.posts import Entry, read_states
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import Scope

KINDS: dict[Part, tuple[type, ...]] = {
    Part.ACCOUNTS: (PermissionGranted, PermissionRevoked),
    Part.FOLLOWS: (Followed, Unfollowed),
    Part.POSTS: (PostPublished, PostDeleted),
}


class LogEvents:
    """Compares the logged events of one part with the data: permissions, follows or posts.

    Round trips per 500 events: one to read them, and one for permissions, four for follows, or three for posts. Posts
    that are not in the store take one query of the archive.
    """

    key_pattern = None

    def __init__(self, scope: Scope, projections: Projections, part: Part) -> None:
        self._scope = scope
        self._projections = projections
        self.part = part

    async def subjects(self) -> AsyncIterator[list[Event]]:
        """Yield the part's events in the log, up to the watermark."""
        kinds = KINDS[self.part]
        chunk: list[Event] = []
        async for event in self._scope.log.replay(0, self._scope.watermark):
            self._scope.scanned += 1
            if isinstance(event.body, kinds):
                chunk.append(event)
            if len(chunk) == READ_CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    async def compare(self, events: Sequence[Event]) -> list[Difference[Event]]:
        """Return the events that no projection has applied."""
        if self.part is Part.ACCOUNTS:
            return await self._permissions(events)
        return await (self._follows(events) if self.part is Part.FOLLOWS else self._posts(events))

    async def _permissions(self, events: Sequence[Event]) -> list[Difference[Event]]:
        changes = [
            (event, event.body) for event in events if isinstance(event.body, (PermissionGranted, PermissionRevoked))
        ]
        numbers = await self._scope.send(
            [("HGET", keys.user(body.user), keys.permission(body.permission)) for _, body in changes]
        )
        return [
            self._project_again(
                Kind.PERMISSION_NOT_APPLIED,
                event,
                f"user {body.user}, permission {body.permission}: {type(body).__name__}, event {event.number}",
            )
            for (event, body), number in zip(changes, numbers, strict=True)
            if abs(int(number or 0)) < event.number
        ]

    async def _follows(self, events: Sequence[Event]) -> list[Difference[Event]]:
        pairs = {
            event: Pair(event.body.follower, event.body.followee)
            for event in events
            if isinstance(event.body, (Followed, Unfollowed))
        }
        own, other = await read_sides(self._scope, list(dict.fromkeys(pairs.values())))
        return [
            self._project_again(
                Kind.FOLLOW_NOT_APPLIED,
                event,
                f"users {pair.follower} and {pair.followee}: {type(event.body).__name__}, event {event.number}",
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
        states = dict(zip(entries, await read_states(self._scope, list(entries.values()), records), strict=True))
        found, missing = [], {}
        for event, state in states.items():
            text = f"post {state.post} by user {state.author}"
            if isinstance(event.body, PostDeleted):
                if state.tombstone is None and not (state.live and state.unlisted):
                    found.append(
                        self._project_again(
                            Kind.DELETION_NOT_APPLIED, event, f"{text}, deleted by event {event.number}"
                        )
                    )
            elif not records[state.post] and state.listed is None and state.unlisted is None:
                missing[state.post] = event, state.archived, text
        rows = await self._scope.rows(missing) if missing else {}
        if rows is None:
            return found
        for post, (event, archived, text) in missing.items():
            if post not in rows and isinstance(event.body, PostPublished):
                correct = partial(self._scope.add_row, published_post(post, event.body))
                again = self._project_again(Kind.POST_NOT_APPLIED, event, text)
                found.append(Difference(again.kind, event, text, correct) if archived else again)
        return found

    def _project_again(self, kind: Kind, event: Event, text: str) -> Difference[Event]:
        async def correct() -> bool:
            await self._projections.project([event], Mode.WORKER)
            return True

        return Difference(kind, event, text, correct)
