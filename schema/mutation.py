"""The root of mutations, and their payloads."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import batched, single
from graph import model
from graph.errors import Problem
from resolvers import mutations
from resolvers.enums import FollowOutcome, ProblemCode
from schema.connections import PostEdge
from schema.post import Post
from schema.user import User

ERRORS = "Why nothing was done; empty if the mutation succeeded."


@strawberry.type(description="An expected failure: a rule that the input breaks. Nothing was written.")
class UserError:
    """Values are `graph.errors.Problem`."""

    record: ClassVar[type] = Problem

    code: ProblemCode = strawberry.field(description="The stable code, for programs.")
    message: str = strawberry.field(description="What is wrong, in a sentence for people.")
    field: list[str] | None = batched(
        mutations.fields,
        description='The path inside the input, as `["location", "latitude"]` or `["userIds", "0"]`; '
        "null if it is not about one field.",
    )


@strawberry.type(description="A log-in: the token to send along, until it ends.")
class Session:
    """Values are `graph.model.Session`."""

    record: ClassVar[type] = model.Session

    token: str = batched(mutations.tokens, description="The access token: send it as `Authorization: Bearer <token>`.")
    expires_at: datetime = strawberry.field(description="When the token ends.")
    user: User = batched(mutations.session_users, description="Who is logged in.")


@strawberry.type(description="The answer to `signUp`.")
class SignUpPayload:
    """Values are `resolvers.mutations.SessionStarted`."""

    record: ClassVar[type] = mutations.SessionStarted

    session: Session | None = strawberry.field(description="The new person's first session; null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The answer to `logIn`.")
class LogInPayload:
    """Values are `resolvers.mutations.SessionStarted`."""

    record: ClassVar[type] = mutations.SessionStarted

    session: Session | None = strawberry.field(description="The new session; null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The answer to `logOut`.")
class LogOutPayload:
    """Values are `resolvers.mutations.Payload`."""

    record: ClassVar[type] = mutations.Payload

    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The answer to `updateProfile`.")
class UpdateProfilePayload:
    """Values are `resolvers.mutations.ProfileUpdated`."""

    record: ClassVar[type] = mutations.ProfileUpdated

    user: User | None = strawberry.field(description="The viewer with the new profile; null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The answer to `publishPost`.")
class PublishPostPayload:
    """Values are `resolvers.mutations.PostPublished`."""

    record: ClassVar[type] = mutations.PostPublished

    post: Post | None = strawberry.field(description="The new post; null on failure.")
    post_edge: PostEdge | None = strawberry.field(
        description="The new post as an edge, to put on top of timelines; null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The answer to `deletePost`.")
class DeletePostPayload:
    """Values are `resolvers.mutations.PostDeleted`."""

    record: ClassVar[type] = mutations.PostDeleted

    deleted_post_id: strawberry.ID | None = strawberry.field(
        description="The deleted post's global id, to remove it from caches; null on failure."
    )
    viewer: User | None = batched(mutations.viewers, description="The viewer, as after the deletion; null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="What following or unfollowing did for one id.")
class FollowResult:
    """Values are `resolvers.mutations.FollowResult`."""

    record: ClassVar[type] = mutations.FollowResult

    user_id: strawberry.ID = strawberry.field(description="The id that the request gave.")
    outcome: FollowOutcome = strawberry.field(description="What happened.")
    user: User | None = batched(
        mutations.result_users,
        description="The person, as after the change; null if the id stands for nobody.",
    )


@strawberry.type(description="The answer to `follow`.")
class FollowPayload:
    """Values are `resolvers.mutations.FollowsChanged`."""

    record: ClassVar[type] = mutations.FollowsChanged

    results: list[FollowResult] = strawberry.field(
        description="One result for each distinct id, in the order of the request; empty if the input was refused."
    )
    viewer: User | None = batched(mutations.viewers, description="The viewer, as after the change; null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The answer to `unfollow`.")
class UnfollowPayload:
    """Values are `resolvers.mutations.FollowsChanged`."""

    record: ClassVar[type] = mutations.FollowsChanged

    results: list[FollowResult] = strawberry.field(
        description="One result for each distinct id, in the order of the request; empty if the input was refused."
    )
    viewer: User | None = batched(mutations.viewers, description="The viewer, as after the change; null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(
    description="What can be changed. All but `signUp` and `logIn` need a viewer. A broken rule "
    "gives `userErrors`, "
    "and then nothing was written."
)
class Mutation:
    """Has no value of its own."""

    sign_up: SignUpPayload | None = single(mutations.sign_up, description="Create an account, and log in with it.")
    log_in: LogInPayload | None = single(mutations.log_in, description="Log in with login and password.")
    log_out: LogOutPayload | None = single(
        mutations.log_out, description="End this session or all sessions; their tokens stop working at once."
    )
    update_profile: UpdateProfilePayload | None = single(
        mutations.update_profile, description="Change the viewer's name or bio."
    )
    publish_post: PublishPostPayload | None = single(
        mutations.publish_post, description="Publish a post in the viewer's name."
    )
    delete_post: DeletePostPayload | None = single(
        mutations.delete_post,
        description="Delete a post of the viewer's, for ever. Nothing shows it once this has returned.",
    )
    follow: FollowPayload | None = single(
        mutations.follow,
        description="Follow people, all of them or, over the limit, none. Their posts are in the "
        "home timeline at once.",
    )
    unfollow: UnfollowPayload | None = single(
        mutations.unfollow,
        description="Follow people no longer. Their posts are gone from the home timeline at once.",
    )
