"""Posts: publishing, deletion and look-ups."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import cast

from graph import keys
from graph.archive.rows import POST, REDACTED, FoundPosts
from graph.binding import Binding
from graph.commit import Commit
from graph.errors import ArchiveUnavailable, Problem, ProblemCode, Rejected, StoreUnavailable
from graph.log.events import Event, PostDeleted, PostPublished, Unreposted, publication_of
from graph.log.log import IdempotencyKey, Log, deleted_since
from graph.log.recipients import recipients_of_post
from graph.log.requests import of_request, repetition
from graph.model import Counts, Location, Post, Repost
from graph.posts.attachments import Attachment
from graph.posts.mentions import Mentions
from graph.posts.publication import Draft, publication
from graph.records import (
    AUTHOR_COLUMNS,
    POST_COLUMNS,
    STORED_POSTS,
    as_post,
    authors_in,
    published_post,
    read_post,
    split_stored,
    with_counts,
)
from graph.store.recall import recall
from graph.store.store import Store
from graph.text.terms import digest_of
from graph.visibility.views import SYSTEM, View, Visibility, blocked, no_post


class Posts:
    """Posts, in the store and in the archive."""

    def __init__(
        self,
        store: Store,
        log: Log,
        commit: Commit,
        binding: Binding,
        visibility: Visibility,
        mentions: Mentions,
        *,
        media_hosts: frozenset[str],
    ) -> None:
        self._store = store
        self._log = log
        self._commit = commit
        self._binding = binding
        self._visibility = visibility
        self._mentions = mentions
        self._media_hosts = media_hosts

    async def get_many(self, view: View, ids: Sequence[int]) -> list[Post | None]:
        """Return posts by id, or None for posts that are deleted, unknown or hidden from the view.

        One round trip, and one query of the archive for ids that the store does not know. Raises ArchiveUnavailable.
        """
        posts, _ = await self.hydrate(view, ids, {})
        return [posts.get(id_) for id_ in ids]

    async def hydrate(
        self, view: View, ids: Sequence[int], archived: Mapping[int, Post]
    ) -> tuple[dict[int, Post], list[int]]:
        """Return live posts by id, and the ids of deleted posts. Costs the same as `get_many`.

        Posts hidden from the view are left out of both, and so are plain reposts of such posts. A plain repost of a
        deleted post counts as deleted. If there are plain reposts, the result also includes the originals of all
        reposts and quotes, which takes one more round trip. The view begins in the same round trip as the first read.

        `archived` has posts that were already read from the archive. It is used for posts for which the store has
        neither a record nor a tombstone; the counts of all posts come from the store. A post that is in neither the
        store nor the archive counts as deleted if the archive watermark has passed its number.
        """
        view.begin()
        stored = await recall(self._store, STORED_POSTS, ids, view.moment)
        posts, deleted, absent, counts = split_stored(ids, stored)
        if absent:
            posts.update((id_, archived[id_]) for id_ in absent if id_ in archived)
            missing = [id_ for id_ in absent if id_ not in archived]
            found, watermark = await self._binding.look_up(missing) if missing else FoundPosts({}, 0)
            posts.update(found)
            posts.update((id_, with_counts(posts[id_], held)) for id_, held in counts.items() if id_ in posts)
            deleted += [id_ for id_ in missing if id_ <= watermark and id_ not in found]
        if hidden := await view.hidden({post.author for post in posts.values()}):
            posts = {id_: post for id_, post in posts.items() if post.author not in hidden}
        if Repost in map(type, posts.values()):
            await self._add_originals(view, posts, deleted)
        return posts, deleted

    async def _add_originals(self, view: View, posts: dict[int, Post], deleted: list[int]) -> None:
        """Add the originals of reposts and quotes, and leave out plain reposts whose original is not shown."""
        wanted = {post.repost_of for post in posts.values() if post.repost_of is not None} - posts.keys()
        originals, gone = await self.hydrate(view, sorted(wanted), {}) if wanted else ({}, [])
        posts.update(originals)
        for post in [post for post in posts.values() if post.is_plain_repost and post.repost_of not in posts]:
            del posts[post.id]
            if post.repost_of in gone:
                deleted.append(post.id)

    async def authors(self, view: View, ids: Sequence[int]) -> dict[int, int]:
        """Return the authors of these posts, including those of hidden posts but not of deleted ones.

        Cheaper than `get_many`: texts and counts are not read, unless there is a near cache, which keeps whole records.
        One round trip, and one query of the archive for archived posts. Raises ArchiveUnavailable.
        """
        if self._store.near is None:
            names = [keys.post(post) for post in ids]
            authors, absent = await self._store.ask_each("HMGET", names, AUTHOR_COLUMNS, partial(authors_in, ids))
        else:
            split = split_stored(ids, await recall(self._store, STORED_POSTS, ids, view.moment))
            authors, absent = {id_: post.author for id_, post in split.posts.items()}, split.absent
        if absent:
            archived = (await self._binding.look_up(absent)).posts
            authors.update((id_, post.author) for id_, post in archived.items())
        return authors

    async def are_deleted(self, ids: Sequence[int]) -> list[bool]:
        """Return for each post whether it was deleted. One round trip."""
        return [bool(reply) for reply in await self._store.read([("HEXISTS", keys.post(p), "deleted") for p in ids])]

    async def counts(self, ids: Sequence[int]) -> list[Counts | None]:
        """Return the counts of each post, or None if it was deleted. One round trip."""
        rows = await self._store.read([("HMGET", keys.post(p), "deleted", *keys.COUNT_FIELDS) for p in ids])
        return [None if gone is not None else Counts(*(int(n or 0) for n in counts)) for gone, *counts in rows]

    async def publish(
        self,
        author: int,
        text: str = "",
        *,
        platform: str | None = None,
        location: Location | None = None,
        attachments: Sequence[Attachment] = (),
        reply_to: int | None = None,
        quote_of: int | None = None,
        idempotency_key: str | None = None,
    ) -> Post:
        """Publish and return a post, which is pushed to the newest followers at once; workers push it to the others.

        The text may be empty if there are attachments. The new post is a reply to the post `reply_to` and a quote of
        the post `quote_of`, if they are given.

        Raises Rejected: TEXT_EMPTY, TEXT_TOO_LONG, TOO_MANY, INVALID, IDEMPOTENCY_MISMATCH; NOT_FOUND or BLOCKED for a
        post that is replied to or quoted; NOT_FOUND if the post of a repeated key was deleted; and ArchiveUnavailable.
        Four round trips, one more for a reply, a quote or mentions, and one more per 1,000 of the newest followers.
        """
        draft, key = Draft.checked(
            author,
            text,
            platform=platform,
            location=location,
            attachments=attachments,
            media_hosts=self._media_hosts,
            reply_to=reply_to,
            quote_of=quote_of,
            idempotency_key=idempotency_key,
        )
        view = self._visibility.of(author)
        try:
            targets, mentions = await asyncio.gather(
                self._targets(view, draft), self._mentions.resolve(view, draft.text)
            )
        except Rejected:
            if (repeated := await repetition(self._log, key)) is None:
                raise
            return await self._committed(repeated, is_repeatable=True)
        body = publication(draft, mentions, *targets)
        [event] = await self._commit([of_request(body, key)], key)
        return await self._committed(event, is_repeatable=key is not None)

    async def _targets(self, view: View, draft: Draft) -> list[Post | None]:
        """Return the post that a draft replies to, and the post that it quotes. Raises Rejected (NOT_FOUND, BLOCKED).

        One round trip if there are any. A post that is committed but not projected yet is read from the log.
        """
        wanted = {"replyToId": draft.reply_to, "quotedPostId": draft.quote_of}
        ids = [post for post in wanted.values() if post is not None]
        if not ids:
            return [None, None]
        view.begin()
        found, deleted = await self.hydrate(SYSTEM, ids, {})
        for post in ids:
            if post not in found and post not in deleted and (late := await self._unprojected(post)) is not None:
                found[post] = late
        targets = {name: None if post is None else found.get(post) for name, post in wanted.items()}
        authors = {target.author for target in targets.values() if target is not None}
        hidden, suspended = await view.hidden(authors), await view.suspended(authors)
        problems: list[Problem] = []
        for name, target in targets.items():
            if wanted[name] is None:
                continue
            if target is None or target.is_plain_repost or target.author in suspended:
                problems += no_post(name).problems
            elif target.author in hidden:
                problems += blocked(name).problems
        if problems:
            raise Rejected(*problems)
        return [*targets.values()]

    async def _committed(self, event: Event, *, is_repeatable: bool) -> Post:
        """Return the post of a committed event. Raises Rejected (NOT_FOUND) if a repeated request finds it deleted.

        One round trip if the event may be a repetition. If the store or the archive does not answer, the post has no
        counts.
        """
        if is_repeatable:
            with suppress(StoreUnavailable, ArchiveUnavailable):
                posts, deleted = await self.hydrate(SYSTEM, [event.number], {})
                if deleted:
                    raise deleted_since("post")
                if event.number in posts:
                    return posts[event.number]
        return published_post(event.number, cast("PostPublished", event.body))

    async def delete(self, viewer: int, post: int) -> Post | None:
        """Permanently delete one of the viewer's posts, and return it. Deleting it again succeeds and appends nothing.

        Repeated and concurrent deletions of a post append only one event: a second digest would let subscribers test
        guesses about the deleted text. Raises Rejected (NOT_FOUND, NOT_ALLOWED) and ArchiveUnavailable. Four round
        trips; for an archived post one more and a query, for one that is not projected yet two more and a query. For a
        deleted post two round trips, and a query if the log no longer holds the deletion.
        """
        found, deletion = await self._live(post)
        if found is None:
            if await self._author_of_deleted(post, deletion) != viewer:
                raise no_post("postId")
            return None
        if found.author != viewer:
            if await self._visibility.of(viewer).hidden([found.author]):
                raise no_post("postId")
            raise Rejected.because(ProblemCode.NOT_ALLOWED, "Only the author can delete a post.", "postId")
        await self._end(found)
        return found

    async def remove(self, post: int) -> Post | None:
        """Delete a post as an operator. Return it, or None if it was already deleted. Costs the same as `delete`.

        Raises Rejected (NOT_FOUND) if there never was such a post, and ArchiveUnavailable.
        """
        found, deletion = await self._live(post)
        if found is not None:
            await self._end(found, by_operator=True)
        elif await self._author_of_deleted(post, deletion) is None:
            raise no_post("postId")
        return found

    async def _live(self, post: int) -> tuple[Post | None, str | None]:
        """Return a post that is to be deleted, and the number in its tombstone, if it has one.

        Raises Rejected (NOT_FOUND) for a repost.
        """
        [row] = await self._store.read([read_post(post)])
        deletion = row[POST_COLUMNS.index("deleted")]
        if deletion is not None:
            return None, deletion
        found = as_post(post, row) or (await self.get_many(SYSTEM, [post]))[0] or await self._unprojected(post)
        if found is not None and found.is_plain_repost:
            raise no_post("postId")
        return found, None

    async def _end(self, post: Post, *, by_operator: bool = False) -> None:
        """Commit the deletion of a post. If the author and an operator delete it concurrently, the first event wins."""
        key = IdempotencyKey("-", f"deletion:{post.id}")
        body = replace(deletion_of(post, digest_of(post.text)), by_operator=by_operator)
        try:
            await self._commit([body], key, erasing=by_operator)
        except Rejected as rejected:
            if any(problem.code is not ProblemCode.IDEMPOTENCY_MISMATCH for problem in rejected.problems):
                raise

    async def _unprojected(self, post: int) -> Post | None:
        """Return a post that was committed but is not projected yet, if the log still has it. One round trip."""
        event = await self._log.get(post)
        body = publication_of(event.body) if event else None
        return None if body is None else published_post(post, body)

    async def _author_of_deleted(self, post: int, deletion: str | None) -> int | None:
        """Return the author of a deleted post, or None if no such post is known.

        `deletion` is the number in the post's tombstone, or None if the tombstone was dropped. If a failover has lost
        the deletion, the archive may hold the live row of a post that has a tombstone, until the scan appends the
        deletion again.
        """
        event = await self._log.get(int(deletion)) if deletion is not None else None
        if event is not None:
            return event.body.author if isinstance(event.body, PostDeleted) else None
        kinds = (REDACTED,) if deletion is None else (REDACTED, POST)
        rows = await (await self._binding.archive()).range(post - 1, post, 1)
        return next((row.actor for row in rows if row.kind in kinds and row.subject is None), None)  # no repost


def deletion_of(post: Post, terms: str | None = None) -> PostDeleted | Unreposted:
    """Return the event that deletes a post, or undoes a plain repost."""
    if post.is_plain_repost and post.repost_of is not None:
        return Unreposted(post.author, post.repost_of, post.id, post.repost_of_author)
    notified = tuple(recipients_of_post(post))
    return PostDeleted(post.author, post.id, terms, post.reply_to, post.root, post.repost_of, post.listed, notified)
