"""Timelines of lists: the posts and plain reposts of the members of a list, merged at read time.

There is no cache: a list has few members, and only its owner reads it. The members and the viewer's
blocks and mutes are read in one round trip. The timelines of the members who are neither hidden nor muted are then
merged as a home timeline merges the timelines of followed users (`graph.timelines.timelines`).
"""

from collections.abc import Sequence
from dataclasses import replace

from graph.archive.usage import check_budget, count_items
from graph.binding import Binding
from graph.home.merge import Which, merge_hot
from graph.model import Page, Post, TimelineKind
from graph.paging import Window
from graph.people.lists import Lists
from graph.posts.posts import Posts
from graph.recording import RECORDING
from graph.store.store import Store
from graph.timelines.timelines import FROM_AUTHORS, Found, archive_window, next_window, with_archived, without_silenced
from graph.visibility.views import View

STEPS_PER_MEMBER = 3
"""The cost of merging the timeline of a member, in the small steps of `graph.archive.usage`."""
MOST_SCANNED = 2000
"""After scanning this number of posts, a page ends, even if it is not full."""


class ListTimelines:
    """Reads the timelines of lists, page by page."""

    def __init__(self, store: Store, binding: Binding, posts: Posts, lists: Lists) -> None:
        self._store = store
        self._binding = binding
        self._posts = posts
        self._lists = lists

    async def page(self, view: View, owner: int, list_id: int, window: Window) -> Page[Post]:
        """Return a page of the timeline of a list, newest first. `view` must be the view of the list's owner.

        Leave out hidden and muted members, and plain reposts of hidden and muted users' posts. Three round trips; one
        more if there are plain reposts; and more if posts were deleted or are left out. One query of the archive if the
        page reaches archived posts. The number of members counts towards the operation's budget. Raises
        ArchiveUnavailable if the archive does not answer, and ScanLimit if the budget is used up.
        """
        view.begin()
        recording = RECORDING.get()
        page = recording.page(TimelineKind.LIST, list_id) if recording is not None else None
        members = await self._lists.member_ids(owner, list_id)
        authors = sorted({*members} - await view.silenced(members))
        found: list[Post] = []
        related: dict[int, Post] = {}
        rest, batch, scanned = replace(window, count=window.count + 1), 1, 0
        while authors:
            some = await self._ids(authors, rest)
            posts, _ = await self._posts.hydrate(view, some.ids, some.archived)
            kept = await without_silenced(view, [posts[post] for post in some.ids if post in posts], posts)
            found += kept
            if len(posts) > len(kept):
                related |= posts
            if page is not None:
                page.add(some.sources, some.merged, len(some.ids), len(some.ids) - len(kept))
            scanned += len(some.ids)
            if len(found) > window.count or len(some.ids) < rest.count:
                break
            if scanned >= MOST_SCANNED:
                return window.page(found, some.ids[-1], related)
            rest = next_window(some.ids, rest, max(window.count + 1 - len(found), batch))
            batch *= 2
        return window.page(found, None, related)

    async def _ids(self, authors: Sequence[int], window: Window) -> Found:
        """Return the next posts of the merged timelines."""
        check_budget()
        count_items(STEPS_PER_MEMBER * len(authors))
        [merged] = await merge_hot(self._store, [(authors, window)], Which.COUNTED)
        cold = archive_window(window, merged.posts, merged.floors)
        rows: list[Post] | None = None
        if cold is not None:
            archive = await self._binding.archive()
            rows = await archive.merge([author for author, floor in merged.floors.items() if floor > cold.low], cold)
        return with_archived(merged.posts, rows, window, FROM_AUTHORS, len(authors))
