"""Likes: the users who like a post, and the posts that the viewer likes."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import likes
from schema.connections import PageInfo
from schema.post import Post
from schema.user_error import ERRORS, UserError

if TYPE_CHECKING:
    from schema.user import User

CURSOR = "The like's cursor, for `after` and `before`. It is valid in every `LikeConnection` and `LikedPostConnection`."


@strawberry.type(description="A like in the list of a post's likes.")
class LikeEdge:
    """Backed by `graph.model.Like`."""

    record: ClassVar[type] = model.Like

    cursor: str = batched(likes.like_cursors, description=CURSOR)
    node: Annotated["User", strawberry.lazy("schema.user")] = batched(
        likes.like_users, references=likes.like_references, description="The user who likes the post."
    )
    liked_at: datetime = batched(likes.liking_times, description="When the user liked the post.")


@strawberry.type(description="A page of the likes of a post, newest first.")
class LikeConnection:
    """Backed by `resolvers.likes.LikePage`."""

    record: ClassVar[type] = likes.LikePage

    edges: list[LikeEdge] = strawberry.field(description="The page's likes, with cursors and times.")
    nodes: list[Annotated["User", strawberry.lazy("schema.user")]] = batched(
        likes.page_users, description="The page's users, without cursors."
    )
    page_info: PageInfo = strawberry.field(
        description="Whether there are more pages, and the cursors for requesting them."
    )
    total_count: int = strawberry.field(description="The exact number of likes of the post, on all pages.")


@strawberry.type(description="A post that the viewer likes.")
class LikedPostEdge:
    """Backed by `graph.model.LikedPost`."""

    record: ClassVar[type] = model.LikedPost

    cursor: str = batched(likes.like_cursors, description=CURSOR)
    node: Post = batched(likes.liked_nodes, description="The post.")
    liked_at: datetime = batched(likes.liking_times, description="When the viewer liked the post.")


@strawberry.type(description="A page of the posts that the viewer likes, most recent like first.")
class LikedPostConnection:
    """Backed by `resolvers.likes.LikedPostPage`."""

    record: ClassVar[type] = likes.LikedPostPage

    edges: list[LikedPostEdge] = strawberry.field(
        description="The page's posts, with cursors and the times of the likes."
    )
    nodes: list[Post] = strawberry.field(description="The page's posts, without cursors.")
    page_info: PageInfo = strawberry.field(
        description="Whether there are more pages, and the cursors for requesting them."
    )


@strawberry.type(description="The result of `likePost`.")
class LikePostPayload:
    """Backed by `resolvers.likes.LikePayload`."""

    record: ClassVar[type] = likes.LikePayload

    post: Post | None = batched(likes.payload_posts, description="The post after the change. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `unlikePost`.")
class UnlikePostPayload:
    """Backed by `resolvers.likes.LikePayload`."""

    record: ClassVar[type] = likes.LikePayload

    post: Post | None = batched(
        likes.payload_posts,
        description="The post after the change. Null on failure, or if the post has since been deleted or hidden.",
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
