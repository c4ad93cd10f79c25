"""Paging arguments, and the records of connections and `PageInfo`: the objects that the resolvers of fields receive.

Edges have no record of their own: the record of a `PostEdge` is the post, and the record of a `FollowEdge` is the
follow.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

import strawberry

from graph.errors import BadPaging
from graph.model import Follow, Page, Post
from graph.paging import CursorKind, encode_cursor, encode_cursors
from resolvers.context import Context

First: TypeAlias = Annotated[
    int | None,
    strawberry.argument(description="How many of the newest entries to return, 1 to 100. Specify `first` or `last`."),
]
After: TypeAlias = Annotated[
    str | None,
    strawberry.argument(description="Return only the entries after this cursor, that is, older ones."),
]
Last: TypeAlias = Annotated[
    int | None,
    strawberry.argument(description="How many of the oldest entries to return, 1 to 100. Specify `first` or `last`."),
]
Before: TypeAlias = Annotated[
    str | None,
    strawberry.argument(description="Return only the entries before this cursor, that is, newer ones."),
]


def same_argument(field: str) -> Any:
    """Return the annotation of an argument of `liveCursor` that repeats an argument of `field`."""
    return strawberry.argument(description=f"The same value as in `{field}`.")


SameNumber: TypeAlias = Annotated[int | None, same_argument("entries")]
SameCursor: TypeAlias = Annotated[str | None, same_argument("entries")]


POST_CURSOR = (
    "The cursor, for `after` and `before`. It is valid in every `TimelineConnection`, `PostConnection` and "
    "`RepostConnection`. Of two cursors, the one that is greater as a string belongs to the newer entry."
)


def checked_limit(limit: int, maximum: int) -> int:
    """Return `limit`, the list length that a client requests. Raises BadPaging if it is not from 1 to `maximum`."""
    if not 1 <= limit <= maximum:
        raise BadPaging(f"'limit' must be from 1 to {maximum}, not {limit}.")
    return limit


def first_page_cursors(numbers: Sequence[int], after: str | None, before: str | None) -> list[str | None]:
    """Return the log cursors with these numbers; None unless the arguments are those of a first page.

    Other pages have no log cursor: the client keeps the one from the first page.
    """
    is_first = after is None and before is None
    return [encode_cursor(CursorKind.LOG, number) if is_first else None for number in numbers]


class PageEnds(NamedTuple):
    """The record of `PageInfo`. The ends of the page are numbers; cursors are encoded only if they are selected."""

    has_next_page: bool
    has_previous_page: bool
    kind: CursorKind
    start: int | None
    end: int | None

    @property
    def start_cursor(self) -> str | None:
        """The cursor of the newest entry or, if known, of the position where the previous page continues."""
        return None if self.start is None else encode_cursor(self.kind, self.start)

    @property
    def end_cursor(self) -> str | None:
        """The cursor of the oldest entry or, if known, of the position where the next page continues."""
        return None if self.end is None else encode_cursor(self.kind, self.end)


class PostPage(NamedTuple):
    """A page of posts or reposts."""

    page: Page[Post]

    @property
    def edges(self) -> tuple[Post, ...]:
        """The posts, as records of their edges."""
        return self.page.items

    @property
    def nodes(self) -> tuple[Post, ...]:
        """The posts."""
        return self.page.items

    @property
    def page_info(self) -> PageEnds:
        """The page info, with cursors of posts."""
        items = self.page.items
        return page_ends(self.page, CursorKind.POST, [post.id for post in (*items[:1], *items[-1:])])


def as_post_pages(pages: Sequence[Page[Post] | Exception]) -> list[PostPage | Exception]:
    """Return the record of each page, or the exception of a page that could not be read."""
    return [page if isinstance(page, Exception) else PostPage(page) for page in pages]


class FollowPage(NamedTuple):
    """A page of the owner's followers if `incoming`, otherwise of the users whom the owner follows.

    `total` is the length of the whole list if reading the page also yields it, as for `followersYouKnow`.
    """

    owner: int
    incoming: bool
    page: Page[Follow]
    total: int | None = None

    @property
    def edges(self) -> tuple[Follow, ...]:
        """The follows, as records of their edges."""
        return self.page.items

    @property
    def page_info(self) -> PageEnds:
        """The page info, with cursors of follows."""
        items = self.page.items
        return page_ends(self.page, CursorKind.FOLLOW, [follow.number for follow in (*items[:1], *items[-1:])])


def page_ends(page: Page[Any], kind: CursorKind, numbers: Sequence[int]) -> PageEnds:
    """Return the page info. `numbers` has the numbers of the page's first and last entries, or is empty."""
    start, end = numbers if numbers else (None, None)
    if page.reached is not None:
        start, end = (start, page.reached) if page.has_next else (page.reached, end)
    return PageEnds(page.has_next, page.has_previous, kind, start, end)


def post_cursors(posts: Sequence[Post], context: Context) -> list[str]:
    """Return the cursors of posts."""
    return encode_cursors(CursorKind.POST, [post.id for post in posts])


def follow_cursors(follows: Sequence[Follow], context: Context) -> list[str]:
    """Return the cursors of follows."""
    return encode_cursors(CursorKind.FOLLOW, [follow.number for follow in follows])
