"""The mentions, hashtags and links in texts."""

from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import OfRecord, batched
from graph.text.entities import Hashtag, Link
from resolvers import entities

if TYPE_CHECKING:
    from schema.user import User


@strawberry.interface(
    description="A part of a post's text that has a special meaning: a mention, a hashtag or a link. Treat entities of "
    "unknown types as plain text."
)
class TextEntity(OfRecord):
    """The values of the implementing types are records with the positions of the entities."""

    start: int = strawberry.field(
        description="Where the entity begins in `text`, in UTF-16 code units, as in JavaScript and Java strings and "
        "in Swift's `utf16` view."
    )
    end: int = strawberry.field(description="Where the entity ends in `text`: the first code unit after it.")


@strawberry.type(description="A mention of a user, such as `@alice`. The user existed when the post was published.")
class MentionEntity(TextEntity):
    """Backed by `resolvers.entities.UserMention`."""

    record: ClassVar[type] = entities.UserMention

    user: Annotated["User", strawberry.lazy("schema.user")] | None = batched(
        entities.mentioned_users,
        together=entities.users_mentioned_to_viewers,
        description="The user. Null if the user no longer exists or is hidden from the viewer.",
    )


@strawberry.type(description="A hashtag, such as `#rain`. It may end with a second `#`, which is part of it: `#北京#`.")
class HashtagEntity(TextEntity):
    """Backed by `graph.text.entities.Hashtag`."""

    record: ClassVar[type] = Hashtag

    tag: str = strawberry.field(
        description="The tag without `#`, normalised as for search: in lower case, and with full-width and half-width "
        "characters in their standard forms. All spellings of a hashtag have the same tag, and the keyword `#<tag>` in "
        "a filter matches exactly the posts with this hashtag. At most 60 characters."
    )


@strawberry.type(description="A link: an `http` or `https` URL in the text.")
class LinkEntity(TextEntity):
    """Backed by `graph.text.entities.Link`."""

    record: ClassVar[type] = Link

    url: str = strawberry.field(
        description="The URL exactly as it is written in the text. The host may contain non-ASCII characters (IDNA). "
        "The URL never contains a user name or password."
    )
