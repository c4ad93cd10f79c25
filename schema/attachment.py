"""Pictures and videos of posts."""

from typing import ClassVar

import strawberry

from executor.fields import OfRecord
from graph.posts import attachments


@strawberry.interface(
    description="A picture or video attached to a post. The file is hosted on another server. Ignore attachments of "
    "unknown types."
)
class Attachment(OfRecord):
    """The values of the implementing types are records with the URLs of files."""

    url: str = strawberry.field(description="The `https` URL of the file, on a host that the server accepts.")
    preview_url: str | None = strawberry.field(
        description="The `https` URL of a smaller picture to show first. Null if there is none."
    )
    width: int | None = strawberry.field(
        description="The width in pixels. Null if unknown, in which case `height` is null too."
    )
    height: int | None = strawberry.field(
        description="The height in pixels. Null if unknown, in which case `width` is null too."
    )
    alt: str = strawberry.field(
        description="A description for users who cannot see the attachment, up to 1,000 characters. It may be empty."
    )
    sensitive: bool = strawberry.field(
        description="Whether clients should hide the attachment until the reader asks to see it."
    )


@strawberry.type(description="A picture.")
class ImageAttachment(Attachment):
    """Backed by `graph.posts.attachments.ImageAttachment`."""

    record: ClassVar[type] = attachments.ImageAttachment


@strawberry.type(description="A video.")
class VideoAttachment(Attachment):
    """Backed by `graph.posts.attachments.VideoAttachment`."""

    record: ClassVar[type] = attachments.VideoAttachment
