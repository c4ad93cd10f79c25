"""Withholding deleted posts from subscriptions, and the counts of replayed posts."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace

from graph.errors import StoreUnavailable
from graph.feed.buffer import C
from graph.feed.updates import PostAdded, PostPublished
from graph.log.events import Event
from graph.log.events import PostPublished as PostPublishedEvent
from graph.model import Counts
from graph.posts import Posts
from graph.records import with_counts

RECHECK_SECONDS = 1.0
RETRY_SECONDS = 0.5


async def deleted_posts(posts: Posts, events: Sequence[Event]) -> set[int]:
    """Return the numbers of the events whose post is deleted. One round trip if the events publish posts."""
    return await _deleted(posts, [event.number for event in events if isinstance(event.body, PostPublishedEvent)])


async def post_counts(posts: Posts, events: Sequence[Event]) -> dict[int, Counts | None]:
    """Return the counts of the posts that events publish, by the event's number; None for each deleted post.

    One round trip if the events publish posts.
    """
    ids = [event.number for event in events if isinstance(event.body, PostPublishedEvent)]
    return dict(zip(ids, await posts.counts(ids), strict=True)) if ids else {}


def counted(update: C, counts: Mapping[int, Counts | None]) -> C:
    """Return an update whose post has these counts, if they are known and not 0."""
    if not isinstance(update, PostAdded | PostPublished):
        return update
    held = counts.get(update.post.id)
    return replace(update, post=with_counts(update.post, held)) if held is not None and any(held) else update


async def withhold_deleted(
    posts: Posts, updates: Sequence[C], checked_at: float, raise_error: Callable[[], None]
) -> AsyncGenerator[C]:
    """Yield updates one by one, omitting posts that are deleted before they are sent.

    `checked_at` is the event loop's time of the last check. The remaining updates are checked again, in one round trip,
    when more than `RECHECK_SECONDS` have passed because the client was slow. While the store does not answer, they
    wait; `raise_error` raises the error of a subscription that ends meanwhile.
    """
    clock = asyncio.get_running_loop().time
    waiting = deque(updates)
    del updates
    while waiting:
        if clock() - checked_at > RECHECK_SECONDS:
            try:
                deleted = await _deleted(posts, [post for update in waiting if (post := _post_of(update)) is not None])
            except StoreUnavailable:
                raise_error()
                await asyncio.sleep(RETRY_SECONDS)
                continue
            waiting = deque(update for update in waiting if _post_of(update) not in deleted)
            checked_at = clock()
        if waiting:
            yield waiting.popleft()


def _post_of(update: C) -> int | None:
    return update.post.id if isinstance(update, PostAdded | PostPublished) else None


async def _deleted(posts: Posts, ids: Sequence[int]) -> set[int]:
    flags = await posts.are_deleted(ids) if ids else []
    return {id_ for id_, deleted in zip(ids, flags, strict=True) if deleted}
