"""Connections: the arguments that ask for a page, and the records behind connections, edges and page ends.

An edge has no record of its own: a post stands for its `PostEdge`, and a follow for its `FollowEdge`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import strawberry

from graph.model import Follow, Page, Post
from graph.paging import CursorKind, encode_cursor, encode_cursors
from resolvers.context import Context

First: TypeAlias = Annotated[
    int | None,
    strawberry.argument(description="Return this many of the newest entries, 1 to 100. Give either `first` or `last`."),
]
After: TypeAlias = Annotated[
    str | None,
    strawberry.argument(description="Return only entries after this cursor, which are older."),
]
Last: TypeAlias = Annotated[
    int | None,
    strawberry.argument(description="Return this many of the oldest entries, 1 to 100. Give either `first` or `last`."),
]
Before: TypeAlias = Annotated[
    str | None,
    strawberry.argument(description="Return only entries before this cursor, which are newer."),
]


@dataclass(frozen=True, slots=True)
class PageEnds:
    """Where a page begins and ends, and whether the list goes on there."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@dataclass(frozen=True, slots=True)
class PostPage:
    """A page of a timeline. `drained` is the watermark from before the page was read."""

    page: Page[Post]
    watermark: int

    @property
    def edges(self) -> tuple[Post, ...]:
        """The posts, each standing for its edge."""
        return self.page.items

    @property
    def nodes(self) -> tuple[Post, ...]:
        """The posts."""
        return self.page.items

    @property
    def page_info(self) -> PageEnds:
        """The ends of the page, with post cursors."""
        items = self.page.items
        return ends(self.page, CursorKind.POST, [post.id for post in (*items[:1], *items[-1:])])

    @property
    def live_cursor(self) -> str:
        """The cursor from which a subscription misses nothing that the page does not hold."""
        return encode_cursor(CursorKind.LOG, self.watermark)


@dataclass(frozen=True, slots=True)
class FollowPage:
    """A page of a person's followers, or of those whom the person follows."""

    owner: int
    incoming: bool
    page: Page[Follow]

    @property
    def edges(self) -> tuple[Follow, ...]:
        """The follows, each standing for its edge."""
        return self.page.items

    @property
    def page_info(self) -> PageEnds:
        """The ends of the page, with follow cursors."""
        items = self.page.items
        return ends(self.page, CursorKind.FOLLOW, [follow.number for follow in (*items[:1], *items[-1:])])


def ends(page: Page[Post] | Page[Follow], kind: CursorKind, numbers: Sequence[int]) -> PageEnds:
    """Describe the ends of a page whose first and last entries have these numbers."""
    cursors = encode_cursors(kind, numbers)
    start, end = cursors if cursors else (None, None)
    return PageEnds(page.has_next, page.has_previous, start, end)


def post_cursors(posts: Sequence[Post], context: Context) -> list[str]:
    """Give the cursors of posts."""
    return encode_cursors(CursorKind.POST, [post.id for post in posts])


def follow_cursors(follows: Sequence[Follow], context: Context) -> list[str]:
    """Give the cursors of follows."""
    return encode_cursors(CursorKind.FOLLOW, [follow.number for follow in follows])
