"""The payload of the mutation `report`."""

from typing import ClassVar

import strawberry

from resolvers import reports
from schema.user_error import ERRORS, UserError


@strawberry.type(description="The result of `report`.")
class ReportPayload:
    """Backed by `resolvers.reports.ReportPayload`."""

    record: ClassVar[type] = reports.ReportPayload

    reported: bool = strawberry.field(
        description="Whether the report is stored, because of this request or an earlier one. False on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
