"""Keeps deleted posts out of subscriptions, and adds the counts to replayed posts."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace

from graph.errors import StoreUnavailable
from graph.feed.buffer import C
from graph.feed.updates import ItemAdded, PostAdded
from graph.log.events import Event, publication_of
from graph.model import Counts, Post
from graph.posts.posts import Posts
from graph.records import published_post, with_counts

RECHECK_SECONDS = 1.0
RETRY_SECONDS = 0.5


async def deleted_posts(posts: Posts, events: Sequence[Event]) -> set[int]:
    """Return the numbers of the events that publish a deleted post or a plain repost of a deleted post.

    One round trip if the events publish posts.
    """
    return await _deleted(posts, _published(events))


async def post_counts(posts: Posts, events: Sequence[Event]) -> dict[int, Counts | None]:
    """Return the numbers of replies, reposts and likes of the posts that events publish, by event number.

    The value is None for deleted posts and for plain reposts of deleted posts. One round trip if the events publish
    posts.
    """
    published = _published(events)
    ids = sorted({id_ for post in published for id_ in _needed(post)})
    counts = dict(zip(ids, await posts.counts(ids), strict=True)) if ids else {}
    gone = {id_ for id_, held in counts.items() if held is None}
    return {post.id: counts[post.id] if gone.isdisjoint(_needed(post)) else None for post in published}


def counted(update: C, counts: Mapping[int, Counts | None]) -> C:
    """Return the update with the counts of its post, or unchanged if they are unknown or all 0."""
    if not isinstance(update, PostAdded):
        return update
    held = counts.get(update.post.id)
    return replace(update, post=with_counts(update.post, held)) if held is not None and any(held) else update


async def withhold_deleted(
    posts: Posts, updates: Sequence[C], checked_at: float, raise_error: Callable[[], None]
) -> AsyncGenerator[C]:
    """Yield updates one by one, omitting posts that are deleted before they are sent.

    `checked_at` is the event-loop time of the last check. The remaining updates are checked again when they are no
    longer `fresh`, because the client was slow; see `without_deleted`.
    """
    waiting = deque(updates)
    del updates
    while waiting:
        if not fresh(checked_at):
            checked_at = await without_deleted(posts, waiting, raise_error)
        if waiting:
            yield waiting.popleft()


def fresh(checked_at: float, now: float | None = None) -> bool:
    """Return True if posts that were checked at `checked_at` can be sent without another check."""
    return (asyncio.get_running_loop().time() if now is None else now) - checked_at <= RECHECK_SECONDS


async def without_deleted(posts: Posts, waiting: deque[C], raise_error: Callable[[], None]) -> float:
    """Remove additions of deleted posts from `waiting`. Return the event-loop time of the check. One round trip.

    Retry while the store does not answer. If the subscription ends in the meantime, `raise_error` raises its error.
    """
    while True:
        try:
            deleted = await _deleted(posts, [post for update in waiting if (post := _post_of(update)) is not None])
            break
        except StoreUnavailable:
            raise_error()
            await asyncio.sleep(RETRY_SECONDS)
    if deleted:
        kept = [update for update in waiting if (post := _post_of(update)) is None or post.id not in deleted]
        waiting.clear()
        waiting.extend(kept)
    return asyncio.get_running_loop().time()


def _post_of(update: C) -> Post | None:
    return update.post if isinstance(update, ItemAdded) else None


def _published(events: Sequence[Event]) -> list[Post]:
    published = {event.number: body for event in events if (body := publication_of(event.body)) is not None}
    return [published_post(number, body) for number, body in published.items()]


def _needed(post: Post) -> list[int]:
    """Return the ids of the posts that must exist for a post to be shown: itself and a plain repost's original."""
    return [post.id, post.repost_of] if post.is_plain_repost and post.repost_of is not None else [post.id]


async def _deleted(posts: Posts, published: Sequence[Post]) -> set[int]:
    """Return the ids of the published posts that are deleted or are plain reposts of deleted posts."""
    ids = sorted({id_ for post in published for id_ in _needed(post)})
    flags = await posts.are_deleted(ids) if ids else []
    gone = {id_ for id_, deleted in zip(ids, flags, strict=True) if deleted}
    return {post.id for post in published if not gone.isdisjoint(_needed(post))} if gone else set()
