"""Attachments: pictures and videos on other servers that a post shows. Fanline stores their URLs, not the files.

The browsers of all readers load these URLs, so the hosts must be in the setting `media_hosts`: see
`graph.text.media_hosts`. URLs follow the grammar of `graph.text.web_urls`, so that all programs find the same host in a
URL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, ClassVar

from graph.errors import ProblemCode
from graph.text.media_hosts import may_show, media_url
from graph.text.validation import Check

MAX_ATTACHMENTS = 4
MAX_ALT = 1000
MAX_SIDE = 65_535
FIELD = "attachments"


class AttachmentKind(Enum):
    """The kinds of attachments. The names are part of the log and of the GraphQL schema."""

    IMAGE = "IMAGE"
    VIDEO = "VIDEO"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A picture or video. `preview_url` is a picture to show first; `width` and `height` are in pixels."""

    kind: ClassVar[AttachmentKind]

    url: str
    preview_url: str | None = None
    width: int | None = None
    height: int | None = None
    alt: str = ""
    sensitive: bool = False


class ImageAttachment(Attachment):
    """A picture."""

    __slots__ = ()
    kind = AttachmentKind.IMAGE


class VideoAttachment(Attachment):
    """A video."""

    __slots__ = ()
    kind = AttachmentKind.VIDEO


TYPES: dict[AttachmentKind, type[Attachment]] = {each.kind: each for each in (ImageAttachment, VideoAttachment)}


def encoded(attachments: Sequence[Attachment]) -> tuple[dict[str, Any], ...]:
    """Return attachments as JSON objects, without the fields that are empty."""
    objects = ({"kind": each.kind.value} | asdict(each) for each in attachments)
    return tuple({name: value for name, value in each.items() if value} for each in objects)


def decoded(objects: Sequence[Mapping[str, Any]]) -> list[Attachment]:
    """Return the attachments of a post from JSON objects, leaving out kinds unknown to this version."""
    return [
        TYPES[AttachmentKind(each["kind"])](
            each["url"],
            each.get("preview_url"),
            each.get("width"),
            each.get("height"),
            each.get("alt", ""),
            each.get("sensitive", False),
        )
        for each in objects
        if each.get("kind") in AttachmentKind.__members__ and "url" in each
    ]


def checked(check: Check, attachments: Sequence[Attachment], hosts: frozenset[str]) -> tuple[Attachment, ...]:
    """Check and return the normalised attachments of a post, whose files must be on these hosts.

    A post has at most 4. URLs have up to 500 characters, alternative texts up to 1,000. Width and height are given
    together, from 1 to 65,535. The path of a problem contains the index of the attachment.
    """
    if len(attachments) > MAX_ATTACHMENTS:
        message = f"The post has {len(attachments)} attachments; the limit is {MAX_ATTACHMENTS}. Remove some."
        check.fail(ProblemCode.TOO_MANY, message, FIELD, max=MAX_ATTACHMENTS, length=len(attachments))
        return ()
    return tuple(one_checked(check, each, hosts, FIELD, str(place)) for place, each in enumerate(attachments))


def one_checked(check: Check, given: Attachment, hosts: frozenset[str], *path: str) -> Attachment:
    """Check and return one normalised attachment."""
    for name, side in (("width", given.width), ("height", given.height)):
        if side is not None and not 1 <= side <= MAX_SIDE:
            message = f"The {name} must be from 1 to {MAX_SIDE:,} pixels."
            check.fail(ProblemCode.INVALID, message, *path, name, min=1, max=MAX_SIDE)
    if (given.width is None) is not (given.height is None):
        missing = "width" if given.width is None else "height"
        message = "The width and the height belong together. Send both or neither."
        check.fail(ProblemCode.INVALID, message, *path, missing)
    preview = given.preview_url
    return replace(
        given,
        url=file_url(check, given.url, hosts, *path, "url"),
        preview_url=None if preview is None else file_url(check, preview, hosts, *path, "previewUrl"),
        alt=check.words(given.alt, "alternative text", MAX_ALT, *path, "alt"),
    )


def file_url(check: Check, given: str, hosts: frozenset[str], *path: str) -> str:
    """Check the URL of an attachment's file, which must not be empty, and return it normalised."""
    if not given.strip():
        check.fail(ProblemCode.INVALID, "The URL is empty. It must begin with https:// and a domain name.", *path)
        return ""
    return media_url(check, given, hosts, FIELD, *path)


def shown(attachments: Sequence[Attachment], hosts: frozenset[str]) -> list[Attachment]:
    """Return the attachments that are on these hosts, without previews from other hosts."""
    return [
        each if each.preview_url is None or may_show(each.preview_url, hosts) else replace(each, preview_url=None)
        for each in attachments
        if may_show(each.url, hosts)
    ]
