"""Bookmarks: adding, removing and reading them. Only their owner sees them."""

import asyncio
from collections.abc import Sequence
from functools import partial

from graph.archive.rows import REDACTED
from graph.binding import Binding
from graph.commit import Commit
from graph.errors import ArchiveUnavailable, ProblemCode, Rejected
from graph.log.log import Log
from graph.log.pair_events import BookmarkRemoved
from graph.model import BookmarkedPost, Follow, Page, Post
from graph.pages.full_pages import full_pages
from graph.pages.user_pages import read_members
from graph.paging import Window
from graph.people.pair_changes import PairChanges
from graph.posts.posts import Posts
from graph.relations.bookmarks import BOOKMARKS
from graph.store.store import Store
from graph.visibility.views import SYSTEM, View, no_post

MAX_BOOKMARKS = 10_000
REMOVED_AT_ONCE = 100


class Bookmarks:
    """The bookmarks of users. A user has at most `MAX_BOOKMARKS`, not counting bookmarks of deleted posts."""

    def __init__(self, store: Store, log: Log, commit: Commit, binding: Binding, posts: Posts) -> None:
        self._store = store
        self._commit = commit
        self._binding = binding
        self._posts = posts
        self._changes = PairChanges(store, log, commit, BOOKMARKS, MAX_BOOKMARKS, self._make_room)

    async def add(self, view: View, viewer: int, post: int) -> int:
        """Bookmark a post and return its id. A repetition appends nothing.

        Raises Rejected: NOT_FOUND, and TOO_MANY for a user at the limit, unless bookmarks of deleted posts can be
        removed, which needs the archive. Three round trips; for an archived post also a query; more for a repetition
        and for a user at the limit.
        """
        view.begin()
        member = str(post)
        found: Post | None
        [found], rows = await asyncio.gather(
            self._posts.get_many(view, [post]), self._store.read(self._changes.reads(viewer, member))
        )
        if found is None or found.is_plain_repost:
            raise no_post("postId")
        await self._changes.change(viewer, member, rows, begin=True)
        return found.id

    async def remove(self, view: View, viewer: int, post: int) -> int:
        """Remove a bookmark, even one of a deleted or hidden post, and return the id of the post.

        Costs the same as `add`. Raises Rejected (NOT_FOUND) if the viewer neither sees the post nor has a bookmark of
        it.
        """
        view.begin()
        member = str(post)
        found: Post | None
        [found], rows = await asyncio.gather(
            self._posts.get_many(SYSTEM, [post]), self._store.read(self._changes.reads(viewer, member))
        )
        is_hidden = found is None or found.is_plain_repost or await view.hidden([found.author])
        if is_hidden and rows[-1] is None:
            raise no_post("postId")
        await self._changes.change(viewer, member, rows, begin=False)
        return post

    async def bookmarked_among(self, viewer: int, posts: Sequence[int]) -> list[bool]:
        """Return for each post whether the viewer has bookmarked it. One round trip."""
        if not posts:
            return []
        [scores] = await self._store.read([("ZMSCORE", BOOKMARKS.key(viewer), *posts)])
        return [score is not None for score in scores]

    async def page(self, view: View, viewer: int, window: Window) -> Page[BookmarkedPost]:
        """Return a page of the posts that a viewer has bookmarked, newest bookmarks first.

        Deleted posts and those hidden from the view are left out. Two round trips, and more if there are such posts; a
        query for archived posts. Raises ArchiveUnavailable.
        """

        async def show(_: Sequence[int], lists: Sequence[Sequence[Follow]]) -> list[list[BookmarkedPost]]:
            posts, _cost = await self._posts.hydrate(view, [each.user for some in lists for each in some], {})
            return [
                [BookmarkedPost(posts[each.user], each.number) for each in some if each.user in posts] for some in lists
            ]

        read = partial(read_members, self._store, BOOKMARKS.key)
        return (await full_pages([viewer], window, read, show))[0]

    async def _make_room(self, viewer: int) -> None:
        """Remove up to 100 bookmarks of deleted posts, oldest first. Raises Rejected (TOO_MANY) if there are none.

        One round trip, one query for every 2,000 bookmarks, and the commit.
        """
        [members] = await self._store.read([("ZRANGE", BOOKMARKS.key(viewer), 0, -1)])
        posts = [int(member) for member in members if member.isdecimal()]
        try:
            kinds = await (await self._binding.archive()).kinds_of(posts)
        except ArchiveUnavailable:
            kinds = {}
        deleted = [post for post in posts if kinds.get(post) == REDACTED]
        if not deleted:
            message = f"You have {MAX_BOOKMARKS:,} bookmarks, which is the limit. Remove some first."
            raise Rejected.because(ProblemCode.TOO_MANY, message, "postId", max=MAX_BOOKMARKS, length=MAX_BOOKMARKS + 1)
        await self._commit([BookmarkRemoved(viewer, post) for post in deleted[:REMOVED_AT_ONCE]])
