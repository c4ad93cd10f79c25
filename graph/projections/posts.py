"""The projection of posts: records, the authors' timelines, and fan-out."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import orjson

from graph import keys
from graph.home.delivery import PULL, PUSH, DeliveryModes
from graph.home.fan_out import FanOut, FanOutInterrupted, FanOuts
from graph.home.pacing import UNPACED, Pace
from graph.log.events import PostDeleted, PostPublished
from graph.post_lists import TIMELINE, PostList, lists_of
from graph.projections.likes import like_keys
from graph.projections.mode import Mode
from graph.records import record_fields
from graph.relations.versioned_sets import by_owner, set_keys
from graph.store.batches import run_concurrently, send_in_batches
from graph.store.commands import Command, script
from graph.store.store import Store

POSTS_PER_SCRIPT = 1000
FAN_OUT_SECONDS = 1.0
"""The time limit of a request's fan-out to followers."""


@dataclass(frozen=True, slots=True)
class ListedPost:
    """The reply of `list_post.lua` for one post: its state, and the facts that fan-out needs.

    `state` is 'added', 'deleted' or 'archived'. `is_in_timeline` is False for a reply that is in no home timeline.
    """

    number: int
    author: int
    state: str
    delivery_mode: str = PUSH
    followers: int = 0
    is_in_timeline: bool = field(default=True, kw_only=True)


class Membership(NamedTuple):
    """A post in one of its lists. `is_first` is True in the list that keeps the post's record while the post is hot."""

    post: int
    author: int
    post_list: PostList
    owner: int
    is_first: bool

    @property
    def key(self) -> str:
        """The key of the list."""
        return self.post_list.key(self.owner)


class PostProjection:
    """Projects PostPublished and PostDeleted events. A mutation pushes a post to at most `sync_followers` followers."""

    def __init__(
        self,
        store: Store,
        fan_outs: FanOuts,
        delivery_modes: DeliveryModes,
        *,
        sync_followers: int,
    ) -> None:
        self._store = store
        self._fan_outs = fan_outs
        self._delivery_modes = delivery_modes
        self._sync_followers = sync_followers

    async def publish(
        self,
        events: Sequence[tuple[int, PostPublished]],
        mode: Mode,
        pace: Pace = UNPACED,
        notices: Sequence[Command] = (),
    ) -> None:
        """Write the posts, add them to their lists, and fan them out if the mode requires it.

        A post is listed in its author's timeline before the followers are read, so a viewer who follows the author
        during the fan-out finds the post by merging. The record of a post that was archived or deleted in the meantime
        is removed again: its tombstone may have been dropped already. Raises FanOutInterrupted if only the fan-out to
        some followers has failed.
        Three round trips, and one for each chunk of followers. The second one also sends the notices of the posts.
        """
        posts = await self._list(await self._write(events), notices)
        await free_posts(self._store, [post.number for post in posts if post.state != "added"])
        if mode.fans_out:
            added = [post for post in posts if post.state == "added" and post.is_in_timeline]
            await run_concurrently([partial(self.fan_out, post, mode, pace) for post in added])

    async def _write(self, events: Sequence[tuple[int, PostPublished]]) -> list[tuple[int, PostPublished]]:
        """Write the posts' records, and return the events of posts that are not deleted."""
        groups, commands = record_writes(self._store, events)
        replies = await send_in_batches(self._store, commands)
        return [
            event
            for group, written in zip(groups, replies, strict=True)
            for event, is_written in zip(group, written, strict=True)
            if is_written
        ]

    async def _list(self, events: Sequence[tuple[int, PostPublished]], notices: Sequence[Command]) -> list[ListedPost]:
        """Add posts to their lists, and return their states in the first list of each. Sends the notices as well.

        One round trip. The first list is the author's timeline, or for a reply that is not listed the author's replies.
        """
        members: defaultdict[PostList, list[Membership]] = defaultdict(list)
        for number, body in events:
            for place, (post_list, owner) in enumerate(lists_of(body)):
                members[post_list].append(Membership(number, body.author, post_list, owner, place == 0))
        commands: list[Command] = []
        groups: list[Sequence[Membership]] = []
        for post_list, some in members.items():
            for group in self._store.together(some, lambda member: member.key, POSTS_PER_SCRIPT):
                groups.append(group)
                commands.append(listing(post_list, group))
        replies = (await send_in_batches(self._store, [*commands, *notices]))[: len(commands)]
        return [
            ListedPost(member.post, member.author, *state, is_in_timeline=member.post_list is TIMELINE)
            for group, states in zip(groups, replies, strict=True)
            if group[0].post_list.is_of_users
            for member, state in zip(group, states, strict=True)
            if member.is_first
        ]

    async def fan_out(self, post: ListedPost, mode: Mode, pace: Pace) -> None:
        """Push a post into the home caches of its author and, unless the delivery mode is `pull`, of the followers.

        If a follower's shard does not answer a worker, tasks are added instead, and the event does not wait for them.
        """
        delivery_mode = post.delivery_mode
        if mode.is_complete or post.followers <= self._sync_followers:
            delivery_mode = await self._update_delivery_mode(post, mode)
        is_pulled = delivery_mode.startswith(PULL)
        needs_tasks = mode.is_complete and not is_pulled and self._fan_outs.needs_tasks(post.followers)
        limit = math.inf if mode.is_complete else self._sync_followers
        if is_pulled or needs_tasks or not post.followers:
            limit = 0
        try:
            seconds = None if mode.is_complete else FAN_OUT_SECONDS
            await self._fan_outs.push(FanOut(post.number, post.author), limit, pace, seconds)
        except FanOutInterrupted:
            if not mode.is_complete:
                raise
            needs_tasks = True
        if needs_tasks:
            await self._fan_outs.add_tasks(post.number, post.author, post.followers)

    async def _update_delivery_mode(self, post: ListedPost, mode: Mode) -> str:
        return await self._delivery_modes.update(
            post.author, post.number, post.delivery_mode, post.followers, take_over=mode.is_complete
        )

    async def delete(self, events: Sequence[tuple[int, PostDeleted]], trim_up_to: int) -> None:
        """Replace posts by tombstones, remove them from their lists, and delete their likes. Two round trips.

        Of several deletions of one post, the one with the lowest number counts. Tombstones of lists with numbers up to
        `trim_up_to` are trimmed.
        """
        newest_first = sorted(events, key=itemgetter(0), reverse=True)
        deletions = {body.post: (number, body) for number, body in newest_first}
        numbers = await self._write_tombstones({post: number for post, (number, _) in deletions.items()})
        changes: defaultdict[PostList, list[tuple[int, int, int]]] = defaultdict(list)
        for post, (_, body) in deletions.items():
            for post_list, owner in lists_of(body):
                changes[post_list].append((owner, post, numbers[post]))
        commands: list[Command] = []
        for post_list, some in changes.items():
            commands += [unlisting(post_list, owner, trim_up_to, pairs) for owner, pairs in by_owner(some)]
        commands += [("UNLINK", *like_keys(post)[:3]) for post in deletions]
        await send_in_batches(self._store, commands)

    async def _write_tombstones(self, deletions: dict[int, int]) -> dict[int, int]:
        """Replace posts by tombstones, and return for each post the number of the deletion that counts."""
        groups, commands = tombstone_writes(self._store, deletions)
        replies = await send_in_batches(self._store, commands)
        numbers: dict[int, int] = {}
        for group, counts in zip(groups, replies, strict=True):
            numbers.update(zip(group, map(int, counts), strict=True))
        return numbers


def listing(post_list: PostList, members: Sequence[Membership]) -> Command:
    """Return the command that adds posts to lists of one kind."""
    posts = [member.post for member in members]
    if post_list.is_of_users:
        names = [name for member in members for name in (*set_keys(post_list.key, member.owner), *fan_out_keys(member))]
        return script("list_post").call(names, *posts)
    names = [name for member in members for name in counted_keys(post_list, member.owner)]
    return script("list_under").call(names, post_list.count or "", *posts)


def unlisting(post_list: PostList, owner: int, trim_up_to: int, pairs: Sequence[str]) -> Command:
    """Return the command that removes posts from a list. In `pairs`, each post is followed by its deletion's number."""
    names = counted_keys(post_list, owner)
    names = names[:3] if post_list.is_of_users else names
    return script("unlist_post").call(names, trim_up_to, post_list.count or "", *pairs)


def fan_out_keys(member: Membership) -> tuple[str, str]:
    """Return the keys that determine how a post is delivered."""
    return keys.delivery(member.author), keys.followers(member.author)


def counted_keys(post_list: PostList, owner: int) -> list[str]:
    """Return the keys of a list, its tombstones, the number of its archived posts, and the record of its owner."""
    return [*set_keys(post_list.key, owner), post_list.cold(owner), keys.post(owner)]


def record_writes(
    store: Store, events: Iterable[tuple[int, PostPublished]]
) -> tuple[list[Sequence[tuple[int, PostPublished]]], list[Command]]:
    """Return events in groups, and for each group the command that writes the records of its posts."""
    groups = list(store.together(events, lambda event: keys.post(event[0]), POSTS_PER_SCRIPT))
    commands = []
    for group in groups:
        records = orjson.dumps([record_fields(number, body) for number, body in group])
        commands.append(script("write_post").call([keys.post(number) for number, _ in group], records))
    return groups, commands


def tombstone_writes(store: Store, deletions: Mapping[int, int]) -> tuple[list[Sequence[int]], list[Command]]:
    """Return the posts of `deletions` in groups, and for each group the command that replaces them with tombstones.

    `deletions` maps each post to the number of its tombstone.
    """
    groups = list(store.together(deletions, keys.post, POSTS_PER_SCRIPT))
    delete = script("delete_post")
    return groups, [
        delete.call([keys.post(post) for post in group], *(deletions[post] for post in group)) for group in groups
    ]


async def free_posts(store: Store, posts: Sequence[int], post_list: PostList = TIMELINE) -> None:
    """Remove the records of archived posts from the store, but neither tombstones nor counts. One round trip.

    For a list of replies, only records of replies that are not listed are removed; for a list under a post, none.
    """
    if post_list.is_of_users:
        groups = store.together(posts, keys.post, POSTS_PER_SCRIPT)
        which = "" if post_list is TIMELINE else "unlisted"
        free = script("free_post")
        await send_in_batches(store, [free.call([keys.post(post) for post in group], which) for group in groups])


def set_cold(post_list: PostList, owner: int, floor: int, found: str | None, number: int) -> Command:
    """Return the command that sets the number of a list's archived posts, unless it or the floor has changed."""
    names = counted_keys(post_list, owner)
    names = [names[0], names[2], *([] if post_list.is_of_users else [names[3]])]
    return script("set_cold").call(names, floor, found or "", number, post_list.count or "")
