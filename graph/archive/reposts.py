"""Removes plain reposts from the column of quotes, in transactions that the caller has begun.

Earlier versions recorded the original of a plain repost in the column `repost_of`, which is now for quotes only
(`graph.post_lists`). Reads skip such rows, so the rows make pages of quotes slower, but never wrong.
"""

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import statements
from graph.archive.pages import first_rows
from graph.archive.rows import REPOST
from graph.archive.tables import EVENTS, STATE
from graph.model import MAX_NUMBER
from graph.post_lists import QUOTES


async def progress(connection: AsyncConnection) -> int | None:
    """Return the number after which plain reposts remain to be removed from the column, or None if none remain."""
    return await connection.scalar(select(STATE.c.reposts_after))


async def step(connection: AsyncConnection, limit: int) -> bool:
    """Remove the next `limit` plain reposts from the column, and note the progress. Return False if none were left.

    Up to four statements.
    """
    after = await progress(connection)
    if after is None:
        return False
    query = statements.numbers_of_kind(REPOST)
    numbers = [number for (number,) in await first_rows(connection, query, after, MAX_NUMBER, limit)]
    if numbers:
        of_reposts = update(EVENTS).where(EVENTS.c.number.in_(numbers))
        await connection.execute(of_reposts.values({QUOTES.column: None}))
    reached = numbers[-1] if len(numbers) == limit else None
    await connection.execute(update(STATE).values(reposts_after=reached))
    return True
