"""What a user publishes: the draft of a post, its checks, and the event that it becomes."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from graph.attachments import Attachment, checked, encoded
from graph.entities import entities_of
from graph.log.events import PostPublished
from graph.log.log import IdempotencyKey
from graph.model import Location
from graph.validation import Check


@dataclass(frozen=True, slots=True)
class Draft:
    """A post as its author wrote it, checked and normalised. Nothing was looked up."""

    author: int
    text: str
    platform: str | None = None
    location: Location | None = None
    attachments: tuple[Attachment, ...] = ()

    @classmethod
    def checked(
        cls,
        author: int,
        text: str,
        *,
        platform: str | None,
        location: Location | None,
        attachments: Sequence[Attachment],
        media_hosts: frozenset[str],
        idempotency_key: str | None,
    ) -> tuple["Draft", IdempotencyKey | None]:
        """Return a draft, and the idempotency key of its publication, which belongs to this draft only.

        Files of attachments may be on `media_hosts`.

        Raises Rejected: TEXT_EMPTY, TEXT_TOO_LONG, TOO_MANY and INVALID.
        """
        check = Check()
        text = check.text(text, may_be_empty=bool(attachments))
        check.entities(len(entities_of(text)))
        platform = check.platform(platform)
        check.location(location)
        files = checked(check, attachments, media_hosts)
        key = check.idempotency_key(idempotency_key)
        check.done()
        draft = cls(author, text, platform, location, files)
        return draft, None if key is None else IdempotencyKey(author, key, request=draft.digest)

    @property
    def digest(self) -> str:
        """A hash of the draft. What the draft refers to may change between two requests, the draft does not."""
        return sha256(repr(self).encode()).hexdigest()[:32]


def publication(draft: Draft, mentions: tuple[int, ...]) -> PostPublished:
    """Return the event that publishes a draft. `mentions` are the users whom its text mentions."""
    latitude, longitude = (draft.location.latitude, draft.location.longitude) if draft.location else (None, None)
    return PostPublished(
        draft.author,
        draft.text,
        draft.platform,
        latitude,
        longitude,
        mentions=mentions,
        attachments=encoded(draft.attachments),
    )
