"""The rate limit of the viewer or the client's network."""

from datetime import datetime
from typing import ClassVar

import strawberry

from resolvers import rates


@strawberry.type(
    description="The rate limit of the viewer or, for anonymous requests, of the client's network. An operation costs "
    "points for the fields and pages that it requests; the sizes of nested pages are multiplied."
)
class RateLimit:
    """Backed by `resolvers.rates.RateLimit`."""

    record: ClassVar[type] = rates.RateLimit

    limit: int = strawberry.field(description="The maximum number of available points.")
    remaining: int = strawberry.field(description="The number of points left after this operation.")
    reset_at: datetime = strawberry.field(
        description="When `remaining` will be back at `limit` if no more points are spent."
    )
    cost: int = strawberry.field(description="The number of points that this operation cost.")
