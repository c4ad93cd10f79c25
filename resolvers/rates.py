"""The rate limit of the viewer or the client's network."""

from dataclasses import dataclass
from datetime import datetime

from resolvers.context import Context


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The maximum and remaining points, the time when all points are available again, and this operation's cost."""

    limit: int
    remaining: int
    reset_at: datetime
    cost: int


async def rate_limit(context: Context) -> RateLimit | None:
    """Return the rate limit of the viewer or the client's network, or None if there are no rate limits."""
    if context.read_rate_limit is None:
        return None
    limit: RateLimit = await context.read_rate_limit()
    return limit
