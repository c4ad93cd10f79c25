"""Plain reposts: reposting, undoing reposts, and looking up which posts a viewer has reposted.

A user has at most one plain repost of a post. As with follows (`graph.people.follows`), whether a request changes
something depends on the last event, not only on the store. The version of the register is part of the idempotency key,
so two requests that find the same version append only one event. If the key was used before, the repost may have been
undone since. The request then looks for the last event and, if that event ended the repost, appends again with the next
version in the key.

A repost counts as *renewed* if the register has a version, which means that the user has reposted the post before. This
depends only on the version, so that two requests with the same key append the same event.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

from graph import keys
from graph.commit import Commit
from graph.errors import ProblemCode, Rejected
from graph.log.events import Event, PostPublished, Reposted, Unreposted, publication_of
from graph.log.log import IdempotencyKey, Log
from graph.model import Post, Repost
from graph.posts.posts import Posts
from graph.projections.reposts import ending_key
from graph.records import published_post
from graph.relations.latest import read_latest
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility.views import SYSTEM, View, no_post, refuse_blocked

MAX_REPOSTS = 100_000
"""The maximum number of plain reposts that a user can have. The register takes 76 bytes for each that is not undone."""


class RepostRegister(NamedTuple):
    """The state of a user's plain repost of one post: its id (0 if there is none), and the number of the last event."""

    repost: int
    version: int


class Reposts:
    """The plain reposts of users."""

    def __init__(self, store: Store, log: Log, commit: Commit, posts: Posts) -> None:
        self._store = store
        self._log = log
        self._commit = commit
        self._posts = posts

    async def repost(self, view: View, viewer: int, post: int) -> Repost:
        """Repost a post and return the plain repost.

        Reposting a post again returns the same repost and appends nothing. Raises Rejected: NOT_FOUND, BLOCKED if there
        is a block between the viewer and the author, and TOO_MANY beyond `MAX_REPOSTS`, which concurrent calls may
        together exceed. Four round trips and those of the fan-out, and more if the store says that the viewer has
        already reposted the post, or the idempotency key was used before.
        """
        view.begin()
        original, held, watermark, count = await self._look_up(viewer, post)
        if original is None or original.is_plain_repost:
            raise no_post("postId")
        await refuse_blocked(view, original.author, "postId")
        if held.repost:
            held = await self._confirmed(viewer, original.id, held, watermark)
        elif count >= MAX_REPOSTS:
            raise too_many(count)
        body = Reposted(viewer, original.id, original.author)
        while not held.repost:
            body = replace(body, renewed=held.version > 0)
            [event], is_new = await self._commit.idempotently([body], self.key_of(viewer, original.id, held.version))
            if is_new:
                return plain_repost(event.number, body)
            held = await self._confirmed(viewer, original.id, RepostRegister(0, event.number), watermark)
        [found] = await self._posts.get_many(SYSTEM, [held.repost])
        return found if isinstance(found, Repost) else plain_repost(held.repost, body)

    @staticmethod
    def key_of(viewer: int, post: int, version: int) -> IdempotencyKey:
        """Return the idempotency key of a repost that found this version of the register."""
        return IdempotencyKey("-", f"repost:{viewer}:{post}:{version}")

    async def unrepost(self, view: View, viewer: int, post: int) -> int | None:
        """Undo the viewer's plain repost of a post. Return the id of the repost, or None if there was none.

        Undoing a repost again appends nothing, and returns the same id while the log holds the event. Raises Rejected
        (NOT_FOUND). Four round trips, and two if there was no repost.
        """
        view.begin()
        original, held, watermark, _ = await self._look_up(viewer, post)
        if not held.repost:
            held = await self._confirmed(viewer, post, held, watermark)
        if held.repost:
            body = Unreposted(viewer, post, held.repost, None if original is None else original.author)
            await self._commit([body], ending_key(held.repost))
            return held.repost
        if original is not None and (original.is_plain_repost or await view.hidden([original.author])):
            raise no_post("postId")
        event = await self._log.get(held.version) if held.version else None
        if event is not None and isinstance(event.body, Unreposted):
            return event.body.repost
        if original is None:
            raise no_post("postId")
        return None

    async def _look_up(self, viewer: int, post: int) -> tuple[Post | None, RepostRegister, int, int]:
        """Return a post, the viewer's register for it, the watermark, and the number of the viewer's plain reposts.

        One round trip.
        """
        reads: list[Command] = [("GET", keys.WATERMARK), ("ZCARD", keys.reposted(viewer)), *read_held(viewer, post)]
        [found], [watermark, count, *row] = await asyncio.gather(
            self._posts.get_many(SYSTEM, [post]), self._store.read(reads)
        )
        return found, held_in(row), int(watermark or 0), count

    async def _confirmed(self, viewer: int, original: int, held: RepostRegister, watermark: int) -> RepostRegister:
        """Return the register after the last event (`graph.relations.latest`). `held` is the state known so far.

        If there are too many events to search, the result is what the store and `held` say.
        """
        latest = await read_latest(self._store, self._log, read_held(viewer, original), watermark)
        return latest.after(newer(held_in(latest.rows), held), partial(after, viewer, original))

    async def reposted_among(self, viewer: int, posts: Sequence[int]) -> list[bool]:
        """Return for each post whether the viewer has a plain repost of it. One round trip."""
        if not posts:
            return []
        [scores] = await self._store.read([("ZMSCORE", keys.reposted(viewer), *posts)])
        return [score is not None for score in scores]


def read_held(viewer: int, post: int) -> list[Command]:
    """Return the commands that read a user's register for one post."""
    name = keys.reposted(viewer)
    return [("ZSCORE", name, post), ("ZSCORE", keys.gone(name), post)]


def held_in(row: Sequence[float | None]) -> RepostRegister:
    """Return the register from the replies to `read_held`."""
    repost, gone = (int(score or 0) for score in row)
    return RepostRegister(repost, repost or gone)


def newer(one: RepostRegister, other: RepostRegister) -> RepostRegister:
    """Return the register that the later event wrote, or the first one if the same event wrote both."""
    return max(one, other, key=lambda each: each.version)


def after(viewer: int, original: int, held: RepostRegister, event: Event) -> RepostRegister:
    """Return a register after an event. An unrelated event leaves the register unchanged."""
    match event.body:
        case Reposted(user, post) | Unreposted(user, post) if (user, post) == (viewer, original):
            return newer(RepostRegister(event.number if isinstance(event.body, Reposted) else 0, event.number), held)
        case _:
            return held


def plain_repost(number: int, body: Reposted) -> Repost:
    """Return the plain repost that an event created, without counts."""
    return cast("Repost", published_post(number, cast("PostPublished", publication_of(body))))


def too_many(count: int) -> Rejected:
    """Return the rejection for a repost beyond the limit."""
    message = f"You have reposted {count:,} posts; the limit is {MAX_REPOSTS:,}. Undo a repost first."
    return Rejected.because(ProblemCode.TOO_MANY, message, "postId", max=MAX_REPOSTS, length=count + 1)
