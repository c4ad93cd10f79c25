"""Pictures and videos of posts."""

from typing import ClassVar

import strawberry

from graph.posts import attachments
from resolvers.enums import AttachmentKind


@strawberry.type(description="A picture or video that a post shows. The file is on another server.")
class Attachment:
    """Backed by `graph.posts.attachments.Attachment`."""

    record: ClassVar[type] = attachments.Attachment

    kind: AttachmentKind = strawberry.field(description="Whether the attachment is a picture or a video.")
    url: str = strawberry.field(description="The `https` URL of the file, on a host that the server accepts.")
    preview_url: str | None = strawberry.field(
        description="The `https` URL of a smaller picture to show first. Null if there is none."
    )
    width: int | None = strawberry.field(description="The width in pixels. Null if unknown; then `height` is null too.")
    height: int | None = strawberry.field(
        description="The height in pixels. Null if unknown; then `width` is null too."
    )
    alt: str = strawberry.field(
        description="A description for users who cannot see the attachment, up to 1,000 characters. It may be empty."
    )
    sensitive: bool = strawberry.field(
        description="Whether clients should hide the attachment until the reader asks to see it."
    )
