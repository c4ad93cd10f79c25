"""The draft of a post, its checks, and the event that publishes it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graph.log.events import PostPublished
from graph.log.log import IdempotencyKey
from graph.log.requests import key_of
from graph.model import Location, Post
from graph.posts.attachments import Attachment, checked, encoded
from graph.text.entities import entities_of
from graph.text.validation import Check

MAX_ANCESTORS = 20
"""The maximum number of posts above a reply that its event names, including the parent."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A post as its author wrote it, checked and normalised. The posts and users it names are not looked up yet.

    Two equal requests produce the same draft even if these posts and users have changed in between.
    """

    author: int
    text: str
    platform: str | None = None
    location: Location | None = None
    attachments: tuple[Attachment, ...] = ()
    reply_to: int | None = None
    quote_of: int | None = None

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
        reply_to: int | None = None,
        quote_of: int | None = None,
        idempotency_key: str | None,
    ) -> tuple["Draft", IdempotencyKey | None]:
        """Validate a post. Return the draft, and the idempotency key, which is valid for this draft only.

        Attachments must be on one of the `media_hosts`.

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
        draft = cls(author, text, platform, location, files, reply_to, quote_of)
        return draft, key_of(PostPublished, author, key, draft)


def publication(
    draft: Draft, mentions: tuple[int, ...], parent: Post | None = None, original: Post | None = None
) -> PostPublished:
    """Return the event that publishes a draft: as a reply to `parent`, or as a quote of `original`, or both.

    `mentions` are the users whom its text mentions.
    """
    latitude, longitude = (draft.location.latitude, draft.location.longitude) if draft.location else (None, None)
    body = PostPublished(
        draft.author,
        draft.text,
        draft.platform,
        latitude,
        longitude,
        mentions=mentions,
        attachments=encoded(draft.attachments),
    )
    if original is not None:
        body = replace(body, repost_of=original.id, repost_of_author=original.author)
    return body if parent is None else as_reply(body, parent)


def as_reply(body: PostPublished, parent: Post) -> PostPublished:
    """Return the publication of a post as a reply to `parent`.

    The reply is listed in timelines only if its author continues a thread of their own: the author also wrote the
    parent and the first post.
    """
    root, root_author = parent.id, parent.author
    if parent.root is not None and parent.root_author is not None:
        root, root_author = parent.root, parent.root_author
    above = () if parent.reply_to is None else (*parent.ancestors, parent.reply_to)
    return replace(
        body,
        reply_to=parent.id,
        reply_to_author=parent.author,
        root=root,
        root_author=root_author,
        ancestors=above[1 - MAX_ANCESTORS :],
        listed=body.author == parent.author == root_author,
    )
