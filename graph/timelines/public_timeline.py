"""The public timeline: the newest listed posts of all users, without plain reposts, from the archive.

Its newest page begins at the archive watermark, which is read first. The watermark is also the live cursor: a stream
that starts there sends every post that the pages do not contain. Simultaneous requests for the same page share one read
of the archive, and posts that a viewer must not see are left out afterwards.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graph.archive.rows import EventRow, post_of
from graph.binding import Binding
from graph.model import Page, Post, Timeline, TimelineKind
from graph.pages.scanning import MOST_SCANNED, scanned_page
from graph.paging import Window
from graph.posts.posts import Posts
from graph.visibility.views import FEW, NONE, View

if TYPE_CHECKING:
    from graph.archive.public_posts import PublicPage


class PublicTimeline:
    """Reads the public timeline, scanning at most `scanned` posts for a page."""

    def __init__(self, binding: Binding, posts: Posts, *, scanned: int = MOST_SCANNED) -> None:
        self._binding = binding
        self._posts = posts
        self._scan_limit = scanned

    async def begin(self) -> Timeline:
        """Return the public timeline up to the current archive watermark. One query. Raises ArchiveUnavailable.

        Callers share the query while it runs, so it may have begun shortly before this call.
        """
        return Timeline(0, TimelineKind.PUBLIC, await self._binding.archived_up_to())

    async def page(self, view: View, watermark: int, window: Window) -> Page[Post]:
        """Return a page of the posts up to a watermark, newest first, without posts by users silenced for the view.

        At most 2,000 posts are scanned for a page. If many are left out, the page may be short, or even empty, although
        more posts follow. One shared transaction and one round trip if all posts are shown, up to 16 of each if many
        are silenced. Raises ArchiveUnavailable, and ScanLimit if the operation's budget is used up.
        """
        archive = await self._binding.archive()

        async def read(rest: Window, _: int) -> "PublicPage":
            known = view.known_suspended()
            hidden = known if len(known) <= FEW else NONE
            key = (archive, watermark, rest, hidden)
            return await self._binding.shared_reads.read(key, lambda: archive.published(rest, hidden))

        async def show(rows: Sequence[EventRow]) -> list[Post]:
            return await self._shown(view, [post_of(row) for row in rows])

        return await scanned_page(window, read, show, up_to=watermark, limit=self._scan_limit)

    async def _shown(self, view: View, candidates: Sequence[Post]) -> list[Post]:
        """Return the posts that are not deleted and whose authors are not silenced. At most one round trip."""
        if not candidates:
            return []
        archived = {post.id: post for post in candidates}
        posts, _ = await self._posts.hydrate(view, list(archived), archived)
        silenced = await view.silenced({post.author for post in posts.values()})
        return [posts[id_] for id_ in archived if id_ in posts and posts[id_].author not in silenced]
