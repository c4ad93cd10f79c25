"""The input types of the API. The limits that their descriptions name are kept by the graph."""

import strawberry

from resolvers.enums import EventKind


@strawberry.input(description="Names one person: by `id` or by `login`, exactly one of them.", one_of=True)
class UserBy:
    """Exactly one field is set; the other is None."""

    id: strawberry.ID | None = strawberry.field(description="The person's global id.")
    login: str | None = strawberry.field(description="The person's login, in any case of letters.")


@strawberry.input(description="A point on the globe.")
class LocationInput:
    """Degrees, unchecked."""

    latitude: float = strawberry.field(description="Degrees north of the equator, from -90 to 90.")
    longitude: float = strawberry.field(description="Degrees east of Greenwich, from -180 to 180.")


@strawberry.input(description="What a new person signs up with.")
class SignUpInput:
    """Unchecked."""

    login: str = strawberry.field(
        description="The handle: 2 to 30 of `a-z`, `0-9` and `_`. Letters are folded to lower case."
    )
    password: str = strawberry.field(description="8 to 128 characters; not the login, the name, or a common password.")
    name: str | None = strawberry.field(description="The name to show, 1 to 50 characters; the login if left out.")


@strawberry.input(description="Who logs in.")
class LogInInput:
    """Unchecked."""

    login: str = strawberry.field(description="The login, in any case of letters.")
    password: str = strawberry.field(description="The password.")


@strawberry.input(description="What to log out of.")
class LogOutInput:
    """`everywhere` may be None, which means false."""

    everywhere: bool | None = strawberry.field(
        description="End all of the viewer's sessions, not only the one that this request was made in.",
        default=False,
    )


@strawberry.input(description="What to change in the viewer's profile. What is left out or null stays as it is.")
class UpdateProfileInput:
    """Unchecked; None means unchanged."""

    name: str | None = strawberry.field(description="The name to show, 1 to 50 characters.")
    bio: str | None = strawberry.field(description="A few words about oneself, at most 300 characters.")


@strawberry.input(description="A new post. Its author is the viewer.")
class PublishPostInput:
    """Unchecked."""

    text: str = strawberry.field(
        description="1 to 1000 characters, after normalisation (NFC) and without white space at the ends."
    )
    platform: str | None = strawberry.field(
        description="What the post was written with, at most 30 characters, as `Web` or `iPhone`."
    )
    location: LocationInput | None = strawberry.field(description="Where the post was written.")
    idempotency_key: str | None = strawberry.field(
        description="Makes a retry safe: 1 to 128 ASCII characters of the client's choice. The same key with "
        "the same input gives the same post within 24 hours; with another input, `IDEMPOTENCY_MISMATCH`."
    )


@strawberry.input(description="Which post to delete.")
class DeletePostInput:
    """An undecoded id."""

    id: strawberry.ID = strawberry.field(description="The post's global id. The post must be the viewer's own.")


@strawberry.input(description="Whom to follow.")
class FollowInput:
    """Undecoded ids."""

    user_ids: list[strawberry.ID] = strawberry.field(
        description="1 to 100 global ids of people. One that comes twice is answered once."
    )


@strawberry.input(description="Whom to follow no longer.")
class UnfollowInput:
    """Undecoded ids."""

    user_ids: list[strawberry.ID] = strawberry.field(
        description="1 to 100 global ids of people. One that comes twice is answered once."
    )


@strawberry.input(
    description="A part of the earth, its edges included. With `west` greater than `east` it crosses the antimeridian."
)
class BoundingBox:
    """Degrees, unchecked."""

    south: float = strawberry.field(description="The southern edge: degrees of latitude, from -90 to 90.")
    west: float = strawberry.field(description="The western edge: degrees of longitude, from -180 to 180.")
    north: float = strawberry.field(description="The northern edge, not below the southern one.")
    east: float = strawberry.field(description="The eastern edge.")


@strawberry.input(
    description="Which events to stream. All the fields that are given must match. One of `users`, `keywords` and "
    "`within` is needed; without any of them, `firehose: true`, and the permission for it."
)
class EventFilter:
    """Unchecked, with undecoded ids; None means any."""

    users: list[strawberry.ID] | None = strawberry.field(
        description="Posts of any of these people, and follows with any of them on either side: 1 to 3,000 global ids."
    )
    keywords: list[str] | None = strawberry.field(
        description="Posts with any of these, 1 to 400 entries: words that must all occur, in any case "
        "and order; `#hashtags`; phrases of scripts without spaces, as 北京. At most 25 words of 60 characters each, "
        "and 2,000 terms in all: a word is one, a phrase has one for each pair of neighbouring characters. Follows "
        "never match. Deletions that are replayed match all keywords."
    )
    within: BoundingBox | None = strawberry.field(
        description="Posts whose location lies in this box. Follows never match. Deletions always do: they tell no "
        "location."
    )
    sample: float | None = strawberry.field(
        description="A share of the events, above 0 and at most 1: the same for everybody who asks for the same share, "
        "and part of every larger one. A post's deletion is in the samples that the post was in."
    )
    firehose: bool | None = strawberry.field(description="Everything; this needs a permission.")
    kinds: list[EventKind] | None = strawberry.field(description="Only events of these kinds; all if left out.")
