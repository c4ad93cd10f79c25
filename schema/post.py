"""Posts and their locations."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import attachments, bookmarks, entities, posts, threads
from resolvers import likes as post_likes
from resolvers.reposts import viewer_has_reposted
from schema import timeline_item
from schema.attachment import Attachment
from schema.text_entity import TextEntity

if TYPE_CHECKING:
    from schema.connections import PostConnection
    from schema.like import LikeConnection
    from schema.repost import RepostConnection
    from schema.user import User


@strawberry.type(description="A geographic position.")
class Location:
    """Backed by `graph.model.Location`."""

    record: ClassVar[type] = model.Location

    latitude: float = strawberry.field(description="The latitude in degrees, from -90 (south) to 90 (north).")
    longitude: float = strawberry.field(description="The longitude in degrees, from -180 (west) to 180 (east).")


@strawberry.type(description="A published post. A post never changes; it can only be deleted.")
class Post(timeline_item.TimelineItem):
    """Backed by `graph.model.Post`."""

    record: ClassVar[type] = model.Post

    id: strawberry.ID = batched(posts.global_ids, independent=True, description="The global id of the post.")
    text: str = strawberry.field(
        description="The text, up to 1,000 characters. It is empty only if there are attachments."
    )
    entities: list[TextEntity] = batched(
        entities.entities,
        independent=True,
        description="The mentions, hashtags and links in the text, in the order in which they occur. They do not "
        "overlap. At most 50.",
    )
    attachments: list[Attachment] = batched(
        attachments.attachments, independent=True, description="The pictures and videos that the post shows. At most 4."
    )
    created_at: datetime = timeline_item.created_at("When the post was published.")
    platform: str | None = strawberry.field(
        description="The app or device that the post was written with, such as `Web`. Null if unknown."
    )
    location: Location | None = strawberry.field(
        description="Where the post was written. Null if the author did not share a location."
    )
    author: Annotated["User", strawberry.lazy("schema.user")] = timeline_item.author("The user who published the post.")
    likes: Annotated["LikeConnection", strawberry.lazy("schema.like")] | None = batched(
        post_likes.likes,
        description="The users who like the post, most recent like first. Requires `first` or `last`. Null if the page "
        "cannot be read; `errors` gives the reason.",
    )
    likes_count: int = batched(post_likes.likes_counts, independent=True, description="The exact number of likes.")
    viewer_has_liked: bool | None = batched(
        post_likes.viewer_has_liked, description="Whether the viewer likes the post. Null for anonymous requests."
    )
    viewer_has_bookmarked: bool | None = batched(
        bookmarks.viewer_has_bookmarked,
        description="Whether the viewer has bookmarked the post. Null for anonymous requests.",
    )
    reply_to: Annotated["Post", strawberry.lazy("schema.post")] | None = batched(
        threads.parents,
        description="The post that this post replies to. Null if this post is not a reply, or if that post is deleted "
        "or hidden.",
    )
    reply_to_id: strawberry.ID | None = batched(
        threads.parent_ids,
        independent=True,
        description="The global id of the post that this post replies to, even after it has been deleted. Null if this "
        "post is not a reply.",
    )
    thread_root: Annotated["Post", strawberry.lazy("schema.post")] | None = batched(
        threads.roots,
        description="The first post of the thread. Null if this post is not a reply, or if the first post is deleted "
        "or hidden.",
    )
    ancestors: list[Annotated["Post", strawberry.lazy("schema.post")] | None] | None = batched(
        threads.ancestors,
        description="The nearest posts in the chain that led to this reply, oldest first, ending with `replyTo`. Empty "
        "if this post is not a reply. An entry is null if its post is deleted or hidden from the viewer, so that the "
        "other entries keep their positions. The whole list is null if a post cannot be read; `errors` gives the "
        "reason.",
    )
    quoted_post: Annotated["Post", strawberry.lazy("schema.post")] | None = batched(
        threads.quoted_or_reposted,
        description="The post that this post quotes. Null if this post is not a quote, or if that post is deleted or "
        "hidden.",
    )
    quoted_post_id: strawberry.ID | None = batched(
        threads.quoted_or_reposted_ids,
        independent=True,
        description="The global id of the post that this post quotes, even after it has been deleted. Null if this "
        "post is not a quote.",
    )
    live_cursor: str | None = batched(
        threads.live_cursors,
        description="Pass this cursor as `after` to the `thread` subscription to receive every change since the page "
        "in `replies` was read. Select it with the same arguments as `replies`, in a query for the post by its id. "
        "Null if `after` or `before` is given; in that case, keep the cursor that you have, which is the `cursor` of "
        "the last event or the `liveCursor` of the first page.",
    )
    replies: Annotated["PostConnection", strawberry.lazy("schema.connections")] | None = batched(
        threads.replies,
        description="The direct replies, newest first. Requires `first` or `last`. A page may have fewer posts than "
        "requested, or none, before the end: continue while `hasNextPage` is true, or `hasPreviousPage` with `last`. "
        "Null if the page cannot be read; `errors` gives the reason.",
    )
    reposts: Annotated["RepostConnection", strawberry.lazy("schema.repost")] | None = batched(
        threads.reposts,
        description="The reposts of the post, newest first. Requires `first` or `last`. A page may have fewer reposts "
        "than requested, or none, before the end: continue while `hasNextPage` is true, or `hasPreviousPage` with "
        "`last`. Null if the page cannot be read; `errors` gives the reason.",
    )
    quotes: Annotated["PostConnection", strawberry.lazy("schema.connections")] | None = batched(
        threads.quotes,
        description="The quotes of the post, newest first. Requires `first` or `last`. A page may have fewer posts "
        "than requested, or none, before the end: continue while `hasNextPage` is true, or `hasPreviousPage` with "
        "`last`. Null if the page cannot be read; `errors` gives the reason.",
    )
    replies_count: int = batched(
        threads.replies_counts,
        independent=True,
        description="The exact number of direct replies, including hidden ones.",
    )
    reposts_count: int = batched(
        threads.reposts_counts,
        independent=True,
        description="The exact number of reposts, including hidden ones. Quotes are not counted.",
    )
    quotes_count: int = batched(
        threads.quotes_counts,
        independent=True,
        description="The exact number of quotes, including hidden ones.",
    )
    viewer_has_reposted: bool | None = batched(
        viewer_has_reposted, description="Whether the viewer has reposted the post. Null for anonymous requests."
    )
