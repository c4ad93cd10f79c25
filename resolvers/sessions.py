"""The resolvers of the viewer's sessions."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.accounts.sessions import no_session
from graph.model import SessionInfo
from resolvers import ids, inputs
from resolvers.context import Context
from resolvers.errors import BadInput
from resolvers.payloads import Payload, mutation


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSessionPayload(Payload):
    """The record of `EndSessionPayload`."""

    ended_session_id: str | None = None


def sessions(context: Context) -> Awaitable[list[SessionInfo]] | None:
    """Return the viewer's live sessions, newest first; None for anonymous requests. One round trip."""
    return None if context.viewer is None else context.loaders.sessions.fetch(context.viewer.user)


def global_ids(sessions: Sequence[SessionInfo], context: Context) -> list[str]:
    """Return the global ids of sessions."""
    return ids.encode_all(ids.Kind.SESSION, [session.id for session in sessions])


def are_current(sessions: Sequence[SessionInfo], context: Context) -> list[bool]:
    """Return whether each session is the session of the request."""
    viewer = context.viewer
    return [viewer is not None and session.session == viewer.session for session in sessions]


@mutation(EndSessionPayload)
async def end_session(
    context: Context,
    *,
    input: Annotated[inputs.EndSessionInput, strawberry.argument(description="The session to end.")],
) -> EndSessionPayload:
    """End one of the viewer's sessions. If it is the current one, later fields of the document have no viewer."""
    viewer = context.require_viewer()
    try:
        number = ids.number(ids.Kind.SESSION, input.session_id)
    except BadInput:
        number = None
    if number is None:
        raise no_session()
    if await context.graph.sessions.end_by_id(viewer.user, number) == viewer.session:
        context.end_session()
        context.client.note_session(None)
    return EndSessionPayload(ended_session_id=input.session_id)
