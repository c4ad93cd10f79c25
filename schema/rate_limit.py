"""The rate limit of whoever asks."""

from datetime import datetime
from typing import ClassVar

import strawberry

from resolvers import rates


@strawberry.type(
    description="What the viewer, or an anonymous address, may request. An operation costs points by what it asks for."
)
class RateLimit:
    """Values are `resolvers.rates.RateLimit`."""

    record: ClassVar[type] = rates.RateLimit

    limit: int = strawberry.field(description="The most points that can be used at once.")
    remaining: int = strawberry.field(description="The points that are left after this operation.")
    reset_at: datetime = strawberry.field(description="When all points are available again, if none is used meanwhile.")
    cost: int = strawberry.field(description="The points that this operation cost.")
