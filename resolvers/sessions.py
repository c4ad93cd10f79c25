"""The resolvers of the viewer's sessions."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.accounts.sessions import no_session
from graph.errors import ProblemCode
from graph.model import Session
from resolvers import ids, inputs
from resolvers.context import Context, Viewer
from resolvers.payloads import Payload, mutation


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSessionPayload(Payload):
    """The record of `EndSessionPayload`."""

    ended_session_id: str | None = None


def sessions(viewers: Sequence[Viewer], context: Context) -> Awaitable[list[list[Session]]]:
    """Return the live sessions of viewers, newest first. One round trip."""
    return context.loaders.sessions.fetch_many([each.user for each in viewers])


def global_ids(sessions: Sequence[Session], context: Context) -> list[str]:
    """Return the global ids of sessions."""
    return ids.encode_all(ids.Kind.SESSION, [session.id for session in sessions])


def are_current(sessions: Sequence[Session], context: Context) -> list[bool]:
    """Return whether each session is the session of the request."""
    viewer = context.viewer
    return [viewer is not None and session.token_id == viewer.session for session in sessions]


@mutation(EndSessionPayload, ProblemCode.NOT_FOUND)
async def end_session(
    context: Context,
    *,
    input: Annotated[inputs.EndSessionInput, strawberry.argument(description="The session to end.")],
) -> EndSessionPayload:
    """End one of the viewer's sessions. If it is the current one, later fields of the document have no viewer."""
    viewer = context.require_viewer()
    number = ids.number_or_none(ids.Kind.SESSION, input.session_id)
    if number is None:
        raise no_session()
    if await context.graph.sessions.end_by_id(viewer.user, number) == viewer.session:
        context.end_session()
        context.client.note_session(None)
    return EndSessionPayload(ended_session_id=input.session_id)
