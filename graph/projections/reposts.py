"""The projection of plain reposts.

A user has at most one plain repost of an original: the last of the user's events about the original decides. The events
change three slots: the list of reposts under the original, the record of the repost, and the user's register with the
user's timeline. `tests/properties/repost_explorer.py` shows that every part of this order is needed:

    Reposted     1 list under the original, unless the original is deleted: then the repost is void; and the record
                 2 register and timeline; fan-out
                 3 tombstones of the reposts that this one replaces, or of this one if a later event has decided
    Unreposted   1 register and timeline
                 2 tombstone of the record; list under the original
    PostDeleted  1 tombstone of the original (`graph.projections.posts`)
                 2 a worker reads the list under the original, and appends an Unreposted for each plain repost

So a repost is in the list under its original before it is in a timeline, and it meets either the tombstone of the
original or the worker that reads the list. A worker also appends an Unreposted for a void repost: the user's own events
then show what the user has reposted, and a rebuild needs no other events.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from graph import keys
from graph.archive.rows import REDACTED
from graph.binding import Binding
from graph.chunks import chunks
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.home.pacing import UNPACED, Pace
from graph.log.events import PostDeleted, Reposted, Unreposted, publication_of
from graph.log.log import IdempotencyKey, Log
from graph.model import MAX_NUMBER, Post
from graph.paging import Window
from graph.post_lists import REPOSTS, TIMELINE
from graph.projections.mode import Mode
from graph.projections.posts import (
    POSTS_PER_SCRIPT,
    ListedPost,
    PostProjection,
    counted_keys,
    free_posts,
    record_writes,
    tombstone_writes,
    unlisting,
)
from graph.records import read_post, split_posts
from graph.relations.versioned_sets import by_owner, set_keys
from graph.store.batches import run_concurrently, send_in_batches
from graph.store.commands import Command, script
from graph.store.store import Store

REPOSTS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Ended:
    """A plain repost that an event has ended, with the number of the event."""

    repost: int
    original: int
    number: int


class RepostProjection:
    """Projects Reposted and Unreposted events, and ends the plain reposts of deleted posts."""

    def __init__(self, store: Store, log: Log, binding: Binding, posts: PostProjection) -> None:
        self._store = store
        self._log = log
        self._binding = binding
        self._posts = posts

    async def add(
        self,
        events: Sequence[tuple[int, Reposted]],
        mode: Mode,
        trim_up_to: int,
        pace: Pace = UNPACED,
        notices: Sequence[Command] = (),
    ) -> None:
        """Add plain reposts, and fan them out if the mode requires it.

        Two round trips, and one for each chunk of followers; two more if reposts are void or replaced. The second one
        also sends the notices of the reposts. A worker asks the archive about the originals that are not in the store.
        """
        if not events:
            return
        void = await self._list(events, mode)
        events = [event for event in events if event[0] not in void]
        listed, ended = await self._register(events, notices)
        await self._end(ended, trim_up_to)
        await free_posts(self._store, [post.number for post in listed if post.state == "archived"])
        if mode.is_complete:
            await self._append([Unreposted(body.user, body.post, repost, body.author) for repost, body in void.items()])
        if mode.fans_out:
            await run_concurrently(
                [partial(self._posts.fan_out, post, mode, pace) for post in listed if post.state == "added"]
            )

    async def _list(self, events: Sequence[tuple[int, Reposted]], mode: Mode) -> dict[int, Reposted]:
        """List reposts under their originals, write their records, and return the void ones. One round trip."""
        groups = list(self._store.together(events, lambda event: keys.reposts(event[1].post), POSTS_PER_SCRIPT))
        commands = []
        for group in groups:
            names = [name for _, body in group for name in counted_keys(REPOSTS, body.post)]
            commands.append(script("list_repost").call(names, REPOSTS.count or "", *(repost for repost, _ in group)))
        published = [(repost, body) for repost, event in events if (body := publication_of(event)) is not None]
        _, writes = record_writes(self._store, published)
        replies = await send_in_batches(self._store, [*commands, *writes])
        states = [
            (repost, body, state)
            for group, group_states in zip(groups, replies, strict=False)
            for (repost, body), state in zip(group, group_states, strict=True)
        ]
        void = {repost: body for repost, body, state in states if state == "void"}
        unsure = {repost: body for repost, body, state in states if state == "unsure"}
        return void | (await self._of_deleted(unsure) if mode.is_complete and unsure else {})

    async def _of_deleted(self, reposts: dict[int, Reposted]) -> dict[int, Reposted]:
        """Return the reposts whose original is deleted; none if the archive does not answer.

        The store keeps the tombstone of a deleted post for a limited time only (`Tuning.tombstones_live`). Without the
        archive, the repost stays, but no page shows it without its original.
        """
        try:
            archive = await self._binding.archive()
            kinds = await archive.kinds_of({body.post for body in reposts.values()})
        except ArchiveUnavailable:
            return {}
        return {repost: body for repost, body in reposts.items() if kinds.get(body.post) == REDACTED}

    async def _register(
        self, events: Sequence[tuple[int, Reposted]], notices: Sequence[Command]
    ) -> tuple[list[ListedPost], list[Ended]]:
        """Set reposts in the registers and timelines. Return the listed and the ended reposts. One round trip."""
        commands = [script("set_repost").call(register_keys(body.user), body.post, n) for n, body in events]
        replies = (await send_in_batches(self._store, [*commands, *notices]))[: len(commands)]
        listed, ended = [], []
        for (repost, body), (state, version_or_mode, followers, *replaced) in zip(events, replies, strict=True):
            ended += [Ended(int(old), body.post, repost) for old in replaced]
            if state == "void":
                ended.append(Ended(repost, body.post, int(version_or_mode)))
            else:
                listed.append(ListedPost(repost, body.user, state, version_or_mode, followers))
        return listed, ended

    async def remove(self, events: Sequence[tuple[int, Unreposted]], trim_up_to: int) -> None:
        """End plain reposts. Two round trips. Tombstones with numbers up to `trim_up_to` are trimmed."""
        unset = script("unset_repost")
        replies = await send_in_batches(
            self._store,
            [
                unset.call(register_keys(body.user)[:5], trim_up_to, body.post, number, body.repost)
                for number, body in events
            ],
        )
        ended = [
            Ended(int(repost), body.post, number)
            for (number, body), reposts in zip(events, replies, strict=True)
            for repost in reposts
        ]
        await self._end(ended, trim_up_to)

    async def _end(self, ended: Sequence[Ended], trim_up_to: int) -> None:
        """Replace the records of reposts by tombstones, and unlist them under their originals. One round trip."""
        lowest: dict[int, Ended] = {}
        for each in sorted(ended, key=lambda each: each.number, reverse=True):
            lowest[each.repost] = each
        _, commands = tombstone_writes(self._store, {repost: each.number for repost, each in lowest.items()})
        changes = ((each.original, each.repost, each.number) for each in lowest.values())
        commands += [unlisting(REPOSTS, original, trim_up_to, pairs) for original, pairs in by_owner(changes)]
        await send_in_batches(self._store, commands)

    async def end_of_deleted(self, events: Sequence[tuple[int, PostDeleted]]) -> None:
        """Append an Unreposted for each plain repost of deleted posts, whose tombstones must have been written before.

        One round trip for every 500 posts, and two for every 500 reposts of a post; for reposts that are not in the
        store, one round trip and a query. Raises StoreUnavailable, even if only the archive does not answer.
        """
        for some in chunks([body for _, body in events], REPOSTS_AT_ONCE):
            lists = await self._store.read([("ZRANGE", keys.reposts(body.post), 0, -1, "WITHSCORES") for body in some])
            for body, rows in zip(some, lists, strict=True):
                await self._end_all(body, {member: int(score) for member, score in rows})

    async def _end_all(self, original: PostDeleted, members: Mapping[str, int]) -> None:
        """Append an Unreposted for each plain repost in the list under a deleted post, in the store and the archive."""
        is_archived = members.get("f", 0) > 0
        reposts = [number for member, number in members.items() if member != "f"]
        for some in chunks(reposts, REPOSTS_AT_ONCE):
            split = split_posts(some, await self._store.read(list(map(read_post, some))))
            await self._append_ends(split.posts.values(), original.author)
            is_archived = is_archived or bool(split.absent)
        try:
            high = MAX_NUMBER + 1
            while is_archived:
                archive = await self._binding.archive()
                window = Window(REPOSTS_AT_ONCE, forward=True, high=high)
                [found] = await archive.slices([(original.post, window)], REPOSTS)
                await self._append_ends(found, original.author)
                is_archived, high = len(found) == REPOSTS_AT_ONCE, found[-1].id if found else 0
        except ArchiveUnavailable as outage:
            raise StoreUnavailable(f"the archive does not answer: {outage.reason}") from outage

    async def _append_ends(self, posts: Iterable[Post], author: int) -> None:
        """Append an Unreposted for each plain repost among the posts; `author` is the author of the original."""
        await self._append(
            [
                Unreposted(post.author, post.repost_of, post.id, author)
                for post in posts
                if post.is_plain_repost and post.repost_of is not None
            ]
        )

    async def _append(self, bodies: Sequence[Unreposted]) -> None:
        """Append events under keys that make repetitions harmless. One round trip for every 500."""
        if bodies:
            appends = [(body, ending_key(body.repost)) for body in bodies]
            await self._log.append_each(appends, binding=await self._binding.token())


def ending_key(repost: int) -> IdempotencyKey:
    """Return the idempotency key under which the end of a plain repost is appended, once for all processes."""
    return IdempotencyKey("-", f"unrepost:{repost}", request="unrepost")


def register_keys(user: int) -> list[str]:
    """Return the keys of a user that the scripts of plain reposts take."""
    names = [*set_keys(keys.reposted, user), *set_keys(TIMELINE.key, user), TIMELINE.cold(user)]
    return [*names, keys.delivery(user), keys.followers(user)]
