"""The rate limit of whoever asks."""

from dataclasses import dataclass
from datetime import datetime

from resolvers.context import Context


@dataclass(frozen=True, slots=True)
class RateLimit:
    """How many points a holder may use at once, how many are left, when all are back, and what this operation cost."""

    limit: int
    remaining: int
    reset_at: datetime
    cost: int


async def rate_limit(context: Context) -> RateLimit | None:
    """Return the rate limit of the viewer, or of an anonymous address; None while rates are not limited."""
    if context.read_rate_limit is None:
        return None
    limit: RateLimit = await context.read_rate_limit()
    return limit
