"""The failures of mutations."""

from typing import ClassVar

import strawberry

from executor.fields import batched
from graph.errors import Param, Problem
from resolvers import payloads
from resolvers.enums import ProblemCode

ERRORS = "The problems with the input. Empty if the mutation succeeded; otherwise nothing was written."


@strawberry.type(description="A value in the message of a user error.")
class UserErrorParam:
    """Backed by `graph.errors.Param`."""

    record: ClassVar[type] = Param

    name: str = strawberry.field(description="The name, such as `max`.")
    value: str = strawberry.field(description="The value, such as `1000`.")


@strawberry.type(
    description="A problem with the input of a mutation. In `userErrors`, it means that nothing was written; in the "
    "`error` of a result, it means that only this change was not made."
)
class UserError:
    """Backed by `graph.errors.Problem`."""

    record: ClassVar[type] = Problem

    code: ProblemCode = strawberry.field(description="The stable error code, for programs.")
    message: str = strawberry.field(description="The explanation to show to the user. Its wording may change.")
    field: list[str] | None = batched(
        payloads.error_fields,
        description='The path of the invalid field inside `input`, such as `["location", "latitude"]` or '
        '`["userIds", "0"]`. Null if the problem does not concern a single field.',
    )

    params: list[UserErrorParam] = strawberry.field(
        description="The values in the message, for clients that translate it: `min` and `max` are the limits of the "
        "field, `length` is the length or number that is outside the limits, and `retryAfter` is the number of "
        "seconds to wait."
    )
