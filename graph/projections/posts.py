"""The projection of posts: records, the authors' timelines, and fan-out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import orjson

from graph import keys
from graph.home.delivery import PULL, PUSH, DeliveryModes
from graph.home.fan_out import FanOut, FanOutInterrupted, FanOuts
from graph.home.pacing import UNPACED, Pace
from graph.log.events import PostDeleted, PostPublished
from graph.projections.batches import run_concurrently, send_in_batches
from graph.projections.likes import like_keys
from graph.projections.mode import Mode
from graph.projections.versioned_sets import by_owner, set_keys
from graph.records import record_fields
from graph.store.commands import script
from graph.store.store import Store

POSTS_PER_SCRIPT = 1000


@dataclass(frozen=True, slots=True)
class ListedPost:
    """The reply of `list_post.lua` for one post: its state, and what fan-out needs to know.

    `state` is 'listed', 'deleted' or 'archived'.
    """

    number: int
    author: int
    state: str
    delivery_mode: str = PUSH
    followers: int = 0


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

    async def publish(self, events: Sequence[tuple[int, PostPublished]], mode: Mode, pace: Pace = UNPACED) -> None:
        """Write and list posts, then fan them out as the mode says.

        A post is listed in its author's timeline before the followers are read, so a viewer who follows the author
        during the fan-out finds the post by merging. The record of a post that was archived or deleted in the meantime
        is removed again: its tombstone may have been dropped already.
        Three round trips, and one for every 1,000 followers.
        """
        posts = await self._list(await self._write(events))
        await free_posts(self._store, [post.number for post in posts if post.state != "listed"])
        if mode.fans_out:
            listed = [post for post in posts if post.state == "listed"]
            await run_concurrently([partial(self._fan_out, post, mode, pace) for post in listed])

    async def _write(self, events: Sequence[tuple[int, PostPublished]]) -> list[tuple[int, PostPublished]]:
        """Write the posts' records, and return the events of posts that are not deleted."""
        groups = list(self._store.together(events, lambda event: keys.post(event[0]), POSTS_PER_SCRIPT))
        commands = []
        for group in groups:
            records = orjson.dumps([record_fields(number, body) for number, body in group])
            commands.append(script("write_post").call([keys.post(number) for number, _ in group], records))
        replies = await send_in_batches(self._store, commands)
        return [
            event
            for group, written in zip(groups, replies, strict=True)
            for event, is_written in zip(group, written, strict=True)
            if is_written
        ]

    async def _list(self, events: Sequence[tuple[int, PostPublished]]) -> list[ListedPost]:
        """Add posts to their authors' timelines."""
        groups = list(self._store.together(events, lambda event: keys.posts(event[1].author), POSTS_PER_SCRIPT))
        commands = []
        for group in groups:
            names = [name for _, body in group for name in listing_keys(body.author)]
            commands.append(script("list_post").call(names, *(number for number, _ in group)))
        replies = await send_in_batches(self._store, commands)
        return [
            ListedPost(number, body.author, *reply)
            for group, group_replies in zip(groups, replies, strict=True)
            for (number, body), reply in zip(group, group_replies, strict=True)
        ]

    async def _fan_out(self, post: ListedPost, mode: Mode, pace: Pace) -> None:
        """Push a post into the home caches of its author and, unless reads pull the author, of the followers.

        If a follower's shard does not answer a worker, the followers become a task, which the event does not wait for.
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
            await self._fan_outs.push(FanOut(post.number, post.author), limit, pace)
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
        """Replace posts by tombstones, remove them from their authors' timelines, and delete their likes.

        Two round trips.

        Of several deletions of one post, the one with the lowest number counts. Tombstones of timelines with numbers up
        to `trim_up_to` are trimmed.
        """
        newest_first = sorted(events, key=itemgetter(0), reverse=True)
        deletions = {body.post: (number, body.author) for number, body in newest_first}
        numbers = await self._write_tombstones({post: number for post, (number, _) in deletions.items()})
        removals = by_owner((author, post, numbers[post]) for post, (_, author) in deletions.items())
        await send_in_batches(
            self._store,
            [
                script("unlist_post").call([*set_keys(keys.posts, author), keys.cold(author)], trim_up_to, *pairs)
                for author, pairs in removals
            ]
            + [("UNLINK", *like_keys(post)[:3]) for post in deletions],
        )

    async def _write_tombstones(self, deletions: dict[int, int]) -> dict[int, int]:
        """Replace posts by tombstones, and return for each post the number of the deletion that counts."""
        groups = list(self._store.together(deletions, keys.post, POSTS_PER_SCRIPT))
        delete = script("delete_post")
        replies = await send_in_batches(
            self._store,
            [
                delete.call([keys.post(post) for post in group], *(deletions[post] for post in group))
                for group in groups
            ],
        )
        numbers: dict[int, int] = {}
        for group, counts in zip(groups, replies, strict=True):
            numbers.update(zip(group, map(int, counts), strict=True))
        return numbers


async def free_posts(store: Store, posts: Sequence[int]) -> None:
    """Remove the records of archived posts from the store, but not tombstones. One round trip."""
    groups = store.together(posts, keys.post, POSTS_PER_SCRIPT)
    await send_in_batches(store, [script("free_post").call([keys.post(post) for post in group]) for group in groups])


def listing_keys(author: int) -> tuple[str, str, str, str]:
    """Return the keys that `list_post.lua` takes for a post of this author."""
    name = keys.posts(author)
    return name, keys.gone(name), keys.delivery(author), keys.followers(author)
