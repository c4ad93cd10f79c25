"""Bookmarks of the viewer."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import bookmarks
from schema.connections import PageInfo
from schema.post import Post
from schema.user_error import ERRORS, UserError


@strawberry.type(description="A post that the viewer has bookmarked.")
class BookmarkEdge:
    """Backed by `graph.model.BookmarkedPost`."""

    record: ClassVar[type] = model.BookmarkedPost

    cursor: str = batched(
        bookmarks.bookmark_cursors,
        description="The bookmark's cursor, for `after` and `before`. It is valid in `Viewer.bookmarks`.",
    )
    node: Post = batched(bookmarks.bookmark_nodes, description="The post.")
    bookmarked_at: datetime = batched(bookmarks.bookmark_times, description="When the viewer bookmarked the post.")


@strawberry.type(description="A page of the viewer's bookmarks, newest first.")
class BookmarkConnection:
    """Backed by `resolvers.bookmarks.BookmarkPage`."""

    record: ClassVar[type] = bookmarks.BookmarkPage

    edges: list[BookmarkEdge] = strawberry.field(
        description="The page's posts, with cursors and the times of the bookmarks."
    )
    nodes: list[Post] = strawberry.field(description="The page's posts, without cursors.")
    page_info: PageInfo = strawberry.field(
        description="Whether there are more pages, and the cursors for requesting them."
    )


@strawberry.type(description="The result of `bookmarkPost`.")
class BookmarkPostPayload:
    """Backed by `resolvers.bookmarks.BookmarkPayload`."""

    record: ClassVar[type] = bookmarks.BookmarkPayload

    post: Post | None = batched(bookmarks.payload_posts, description="The post after the change. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `removeBookmark`.")
class RemoveBookmarkPayload:
    """Backed by `resolvers.bookmarks.BookmarkPayload`."""

    record: ClassVar[type] = bookmarks.BookmarkPayload

    post: Post | None = batched(
        bookmarks.payload_posts,
        description="The post after the change. Null on failure, or if the post has since been deleted or hidden.",
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
