"""The resolvers of the attachments of posts."""

from collections.abc import Sequence

from graph.model import Post
from graph.posts.attachments import TYPES, Attachment, decoded, shown
from resolvers.context import Context
from resolvers.inputs import AttachmentInput


def attachments(posts: Sequence[Post], context: Context) -> list[list[Attachment]]:
    """Return the attachments of posts, except files and previews on hosts that the operator no longer allows."""
    hosts = context.graph.tuning.media_hosts
    return [shown(decoded(post.attachments), hosts) if post.attachments else [] for post in posts]


def as_attachments(inputs: Sequence[AttachmentInput] | None) -> list[Attachment]:
    """Convert attachments from the API's input type. They are not validated yet."""
    return [
        TYPES[each.kind](each.url, each.preview_url, each.width, each.height, each.alt or "", bool(each.sensitive))
        for each in inputs or ()
    ]
