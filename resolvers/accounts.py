"""The resolvers of account mutations: sign-up, log-in, log-out, password, profile and deletion."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import ProblemCode
from graph.model import Credentials, User
from resolvers import ids, inputs
from resolvers.context import Context, Viewer
from resolvers.payloads import Payload, mutation, redact_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPayload(Payload):
    """The record of `SignUpPayload`, `LogInPayload` and `ChangePasswordPayload`."""

    credentials: Credentials | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateProfilePayload(Payload):
    """The record of `UpdateProfilePayload`."""

    user: User | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAccountPayload(Payload):
    """The record of `DeleteAccountPayload`."""

    deleted_user_id: str | None = None


@mutation(
    SessionPayload,
    ProblemCode.INVALID,
    ProblemCode.LOGIN_TAKEN,
    ProblemCode.LOGIN_INVALID,
    ProblemCode.PASSWORD_TOO_WEAK,
    ProblemCode.NOT_ALLOWED,
    ProblemCode.TOO_MANY_ATTEMPTS,
    ProblemCode.IDEMPOTENCY_MISMATCH,
)
@redact_errors
async def sign_up(
    context: Context,
    *,
    input: Annotated[
        inputs.SignUpInput, strawberry.argument(description="The login, password and name of the new user.")
    ],
) -> SessionPayload:
    """Create a user and start a session. A repeated request starts another session of the same user."""
    signed_up = await context.graph.sign_ups.sign_up(
        input.login,
        input.password,
        input.name,
        network=context.client.network,
        idempotency_key=input.idempotency_key,
    )
    context.users_created += signed_up.is_new
    return await start_session(context, signed_up.user, signed_up.password)


@mutation(SessionPayload, ProblemCode.WRONG_CREDENTIALS, ProblemCode.NOT_ALLOWED, ProblemCode.TOO_MANY_ATTEMPTS)
@redact_errors
async def log_in(
    context: Context,
    *,
    input: Annotated[inputs.LogInInput, strawberry.argument(description="The login and password.")],
) -> SessionPayload:
    """Check the password and start a session."""
    user, password = await context.graph.users.log_in(input.login, input.password, context.client.network)
    return await start_session(context, user, password)


async def start_session(context: Context, user: User, password: int | None = None) -> SessionPayload:
    """Start a session and return its payload, which is resolved with the user as the viewer. One round trip.

    If a password was checked, `password` is the number of the event that last changed it.
    """
    session = await context.graph.sessions.start(user.id, context.client.user_agent, password)
    context.act_as_logged_in(viewer_of(session))
    return announce_session(context, session)


def announce_session(context: Context, session: Credentials) -> SessionPayload:
    """Announce a new session to the client, and return the payload with the session's credentials."""
    context.client.note_session(session)
    return SessionPayload(credentials=session)


@mutation(Payload)
async def log_out(
    context: Context,
    *,
    input: Annotated[inputs.LogOutInput, strawberry.argument(description="Which sessions to end.")],
) -> Payload:
    """End the current session or all of the viewer's sessions.

    Later fields of the document have no viewer, even if this mutation fails.
    """
    viewer = context.end_session()
    await context.graph.sessions.end(viewer.user, None if input.everywhere else viewer.session)
    context.client.note_session(None)
    return Payload()


@mutation(
    SessionPayload,
    ProblemCode.INVALID,
    ProblemCode.PASSWORD_TOO_WEAK,
    ProblemCode.WRONG_CREDENTIALS,
    ProblemCode.NOT_FOUND,
    ProblemCode.NOT_ALLOWED,
    ProblemCode.TOO_MANY_ATTEMPTS,
)
@redact_errors
async def change_password(
    context: Context,
    *,
    input: Annotated[
        inputs.ChangePasswordInput, strawberry.argument(description="The current password and the new one.")
    ],
) -> SessionPayload:
    """Change the viewer's password, end all their sessions, and start one that later fields of the document use."""
    viewer, client = context.require_viewer(), context.client
    session = await context.graph.passwords.change(
        viewer.user,
        input.current_password,
        input.new_password,
        network=client.network,
        user_agent=client.user_agent,
    )
    context.viewer = viewer_of(session)
    return announce_session(context, session)


@mutation(DeleteAccountPayload, ProblemCode.WRONG_CREDENTIALS, ProblemCode.NOT_FOUND, ProblemCode.TOO_MANY_ATTEMPTS)
@redact_errors
async def delete_account(
    context: Context,
    *,
    input: Annotated[inputs.DeleteAccountInput, strawberry.argument(description="The viewer's password.")],
) -> DeleteAccountPayload:
    """Delete the viewer's account. Later fields of the document have no viewer."""
    viewer, client = context.require_viewer(), context.client
    await context.graph.account_deletion.delete(viewer.user, input.password, network=client.network)
    context.end_session()
    client.note_session(None)
    return DeleteAccountPayload(deleted_user_id=ids.encode(ids.Kind.USER, viewer.user))


@mutation(UpdateProfilePayload, ProblemCode.INVALID, ProblemCode.NOT_FOUND)
async def update_profile(
    context: Context,
    *,
    input: Annotated[inputs.UpdateProfileInput, strawberry.argument(description="The fields to change.")],
) -> UpdateProfilePayload:
    """Change fields of the viewer's profile."""
    viewer = context.require_viewer()
    user = await context.graph.users.update_profile(
        viewer.user,
        name=clearable_text(input.name),
        bio=clearable_text(input.bio),
        avatar_url=clearable_text(input.avatar_url),
        website_url=clearable_text(input.website_url),
    )
    return UpdateProfilePayload(user=user)


def clearable_text(value: str | None) -> str | None:
    """Convert the input for a clearable field: None (clear) to an empty string, and UNSET (keep) to None."""
    return None if value is strawberry.UNSET else value or ""


def viewer_of(session: Credentials) -> Viewer:
    """Return the viewer of a session."""
    return Viewer(session.user, session.id, session.expires_at)


def access_tokens(sessions: Sequence[Credentials], context: Context) -> list[str | None]:
    """Return the access tokens of sessions; None if a cookie carries the token."""
    return [context.issue_token(session) for session in sessions]


def session_viewers(sessions: Sequence[Credentials], context: Context) -> list[Viewer]:
    """Return the viewers of sessions."""
    return [viewer_of(session) for session in sessions]
