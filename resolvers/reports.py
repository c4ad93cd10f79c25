"""The resolver of the mutation `report`."""

from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import ProblemCode
from graph.moderation import not_found
from resolvers import ids, inputs
from resolvers.context import Context
from resolvers.errors import BadInput
from resolvers.payloads import Payload, mutation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPayload(Payload):
    """The record of `ReportPayload`."""

    reported: bool = False


@mutation(ReportPayload, ProblemCode.INVALID, ProblemCode.NOT_FOUND)
async def report(
    context: Context,
    *,
    input: Annotated[inputs.ReportInput, strawberry.argument(description="What to report, and why.")],
) -> ReportPayload:
    """Report a user or a post to the operators."""
    viewer, view, moderation = context.require_viewer(), context.loaders.view, context.graph.moderation
    match decode_subject_id(input.subject_id):
        case ids.GlobalId(ids.Kind.USER, (user,)):
            await moderation.report_user(view, viewer.user, user, input.reason, input.comment)
        case ids.GlobalId(ids.Kind.POST, (post,)):
            await moderation.report_post(view, viewer.user, post, input.reason, input.comment)
        case _:
            raise not_found()
    return ReportPayload(reported=True)


def decode_subject_id(subject_id: str) -> ids.GlobalId:
    """Return the decoded id of a subject. Raises Rejected (NOT_FOUND) if it is malformed."""
    try:
        return ids.decode(subject_id)
    except BadInput:
        raise not_found() from None
