"""The input types of the API. The limits that their descriptions name are kept by the graph."""

import strawberry


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
    password: str = strawberry.field(description="8 to 128 characters.")
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
