"""Sessions, and the payload types of account mutations."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import accounts, payloads, sessions
from schema.node import Node
from schema.user import User
from schema.user_error import ERRORS, UserError
from schema.viewer import Viewer


@strawberry.type(description="A new session: its access token, its expiry time and its viewer.")
class Credentials:
    """Backed by `graph.model.Credentials`."""

    record: ClassVar[type] = model.Credentials

    token: str | None = batched(
        accounts.access_tokens,
        description="The access token. Send it as `Authorization: Bearer <token>`. Null if the request had the header "
        "`Fanline-Session: cookie`, in which case the token is in a cookie.",
    )
    expires_at: datetime = strawberry.field(description="When the token and the session expire.")
    viewer: Viewer | None = batched(
        accounts.session_viewers,
        description="The viewer, who is logged in now. Null if a required field of the viewer cannot be read; "
        "`errors` gives the reason.",
    )


@strawberry.type(description="One of the viewer's active sessions. Only the viewer can see it.")
class Session(Node):
    """Backed by `graph.model.Session`."""

    record: ClassVar[type] = model.Session

    id: strawberry.ID = batched(sessions.global_ids, description="The global id of the session.")
    created_at: datetime = strawberry.field(description="When the user logged in.")
    last_used_at: datetime = strawberry.field(description="When the session was last used, accurate to within an hour.")
    user_agent: str | None = strawberry.field(
        description="The `User-Agent` header of the request that started the session, up to 200 characters. It is not "
        "verified. Null if there was no such header."
    )
    current: bool = batched(sessions.are_current, description="Whether this is the session of the current request.")


@strawberry.type(description="The result of `endSession`.")
class EndSessionPayload:
    """Backed by `resolvers.sessions.EndSessionPayload`."""

    record: ClassVar[type] = sessions.EndSessionPayload

    ended_session_id: strawberry.ID | None = strawberry.field(
        description="The global id of the ended session, to remove it from caches. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `signUp`.")
class SignUpPayload:
    """Backed by `resolvers.accounts.SessionPayload`."""

    record: ClassVar[type] = accounts.SessionPayload

    credentials: Credentials | None = strawberry.field(
        description="The credentials of the new user's first session. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `logIn`.")
class LogInPayload:
    """Backed by `resolvers.accounts.SessionPayload`."""

    record: ClassVar[type] = accounts.SessionPayload

    credentials: Credentials | None = strawberry.field(
        description="The credentials of the new session. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `logOut`.")
class LogOutPayload:
    """Backed by `resolvers.payloads.Payload`."""

    record: ClassVar[type] = payloads.Payload

    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `changePassword`.")
class ChangePasswordPayload:
    """Backed by `resolvers.accounts.SessionPayload`."""

    record: ClassVar[type] = accounts.SessionPayload

    credentials: Credentials | None = strawberry.field(
        description="The credentials of the new session, which replaces the session of the request. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `deleteAccount`.")
class DeleteAccountPayload:
    """Backed by `resolvers.accounts.DeleteAccountPayload`."""

    record: ClassVar[type] = accounts.DeleteAccountPayload

    deleted_user_id: strawberry.ID | None = strawberry.field(
        description="The global id of the deleted user, to remove it from caches. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `updateProfile`.")
class UpdateProfilePayload:
    """Backed by `resolvers.accounts.UpdateProfilePayload`."""

    record: ClassVar[type] = accounts.UpdateProfilePayload

    user: User | None = strawberry.field(description="The user after the change. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
