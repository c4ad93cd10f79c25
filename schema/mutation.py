"""The root type of mutations, and the payload types."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import batched, single
from graph import model
from graph.errors import Param, Problem
from resolvers import mutations
from resolvers.enums import FollowOutcome, ProblemCode
from schema.connections import FollowEdge, PostEdge
from schema.post import Post
from schema.user import User

ERRORS = "The problems with the input. Empty if the mutation succeeded; otherwise nothing was written."


@strawberry.type(description="A value in the message of a user error.")
class UserErrorParam:
    """Values are `graph.errors.Param`."""

    record: ClassVar[type] = Param

    name: str = strawberry.field(description="The name, such as `max`.")
    value: str = strawberry.field(description="The value, such as `1000`.")


@strawberry.type(
    description="A problem with the input of a mutation. A mutation that returns one has not written anything."
)
class UserError:
    """Values are `graph.errors.Problem`."""

    record: ClassVar[type] = Problem

    code: ProblemCode = strawberry.field(description="The stable error code, for programs.")
    message: str = strawberry.field(description="The explanation to show to the user. Its wording may change.")
    field: list[str] | None = batched(
        mutations.error_fields,
        description='The path of the invalid field inside `input`, such as `["location", "latitude"]` or '
        '`["userIds", "0"]`. Null if the problem does not concern a single field.',
    )

    params: list[UserErrorParam] = strawberry.field(
        description="The values in the message, for messages in other languages: `min` and `max`, the limits that the "
        "field breaks; `length`, that of the value; `retryAfter`, the seconds to wait."
    )


@strawberry.type(description="A login session.")
class Session:
    """Values are `graph.model.Session`."""

    record: ClassVar[type] = model.Session

    token: str = batched(
        mutations.access_tokens,
        description="The access token. Send it as `Authorization: Bearer <token>`. Empty if the request had the header "
        "`Fanline-Session: cookie`: then the token is in a cookie.",
    )
    expires_at: datetime = strawberry.field(description="When the token expires.")
    user: User = batched(mutations.session_users, description="The user who is logged in.")


@strawberry.type(description="The result of `signUp`.")
class SignUpPayload:
    """Values are `resolvers.mutations.SessionPayload`."""

    record: ClassVar[type] = mutations.SessionPayload

    session: Session | None = strawberry.field(description="The first session of the new user. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `logIn`.")
class LogInPayload:
    """Values are `resolvers.mutations.SessionPayload`."""

    record: ClassVar[type] = mutations.SessionPayload

    session: Session | None = strawberry.field(description="The new session. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `logOut`.")
class LogOutPayload:
    """Values are `resolvers.mutations.Payload`."""

    record: ClassVar[type] = mutations.Payload

    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `updateProfile`.")
class UpdateProfilePayload:
    """Values are `resolvers.mutations.UpdateProfilePayload`."""

    record: ClassVar[type] = mutations.UpdateProfilePayload

    user: User | None = strawberry.field(description="The viewer after the change. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `publishPost`.")
class PublishPostPayload:
    """Values are `resolvers.mutations.PublishPostPayload`."""

    record: ClassVar[type] = mutations.PublishPostPayload

    post: Post | None = strawberry.field(description="The new post. Null on failure.")
    post_edge: PostEdge | None = strawberry.field(
        description="The new post as an edge, to insert at the top of timelines. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `deletePost`.")
class DeletePostPayload:
    """Values are `resolvers.mutations.DeletePostPayload`."""

    record: ClassVar[type] = mutations.DeletePostPayload

    deleted_post_id: strawberry.ID | None = strawberry.field(
        description="The global id of the deleted post, to remove it from caches. Null on failure."
    )
    viewer: User | None = batched(
        mutations.payload_viewers, description="The viewer after the deletion. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of following or unfollowing one user.")
class FollowResult:
    """Values are `resolvers.mutations.FollowResult`."""

    record: ClassVar[type] = mutations.FollowResult

    user_id: strawberry.ID = strawberry.field(description="The id from the input.")
    outcome: FollowOutcome = strawberry.field(description="The outcome for this id.")
    user: User | None = batched(
        mutations.result_users,
        description="The user after the change. Null if the id does not identify a user.",
    )
    follow_edge: FollowEdge | None = batched(
        mutations.follow_edges,
        description="The follow as an edge of the viewer's `following`: the newest one if the outcome is `FOLLOWED`, "
        "so insert it at the top. Null unless the viewer follows the user.",
    )


@strawberry.type(description="The result of `follow`.")
class FollowPayload:
    """Values are `resolvers.mutations.FollowsPayload`."""

    record: ClassVar[type] = mutations.FollowsPayload

    results: list[FollowResult] = strawberry.field(
        description="One result for each distinct id, in the order of the input. Empty if the input is invalid."
    )
    viewer: User | None = batched(
        mutations.payload_viewers, description="The viewer after the change. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `unfollow`.")
class UnfollowPayload:
    """Values are `resolvers.mutations.FollowsPayload`."""

    record: ClassVar[type] = mutations.FollowsPayload

    results: list[FollowResult] = strawberry.field(
        description="One result for each distinct id, in the order of the input. Empty if the input is invalid."
    )
    viewer: User | None = batched(
        mutations.payload_viewers, description="The viewer after the change. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(
    description="The root of all mutations. All except `signUp` and `logIn` require a viewer. Invalid input is "
    "reported in `userErrors`, and then nothing is written. A field is null if it fails with an entry in `errors`."
)
class Mutation:
    """Has no value of its own."""

    sign_up: SignUpPayload | None = single(mutations.sign_up, description="Create an account and start a session.")
    log_in: LogInPayload | None = single(mutations.log_in, description="Start a session with a login and password.")
    log_out: LogOutPayload | None = single(
        mutations.log_out,
        description="End the current session or all of the viewer's sessions. Their tokens stop working immediately.",
    )
    update_profile: UpdateProfilePayload | None = single(
        mutations.update_profile, description="Update the viewer's name, bio, picture or website."
    )
    publish_post: PublishPostPayload | None = single(
        mutations.publish_post, description="Publish a post as the viewer."
    )
    delete_post: DeletePostPayload | None = single(
        mutations.delete_post,
        description="Permanently delete one of the viewer's posts. No later request returns the post.",
    )
    follow: FollowPayload | None = single(
        mutations.follow,
        description="Follow users. Their posts appear in the viewer's home timeline immediately. If the viewer would "
        "follow too many users, none of them is followed.",
    )
    unfollow: UnfollowPayload | None = single(
        mutations.unfollow,
        description="Unfollow users. Their posts disappear from the viewer's home timeline immediately.",
    )
