"""Compares the public timeline with the events, and corrects it, in transactions that the caller has begun.

Posts that a move or the fill has not reached yet are not compared.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import public_posts, statements
from graph.archive.inserts import add_rows
from graph.archive.pages import IDS_PER_QUERY, by_owners, first_rows, post_numbers
from graph.archive.public_posts import ALL, MOVE_COLUMNS, NO_DECISION, Move, SuspensionDecision
from graph.archive.rows import POST, SUSPENSION, UNSUSPENSION, EventRow
from graph.archive.tables import EVENTS, PUBLIC_MOVES, PUBLIC_POSTS
from graph.chunks import chunks
from graph.model import MAX_NUMBER
from graph.paging import Window

ROWS = 10_000


class Listing(NamedTuple):
    """The author of a post in the table, and the author that it should have there according to the events.

    None means that the post is not in the table, or should not be in it.
    """

    held: int | None
    wanted: int | None


async def numbers(connection: AsyncConnection, after: int, limit: int) -> list[int]:
    """Return the next post numbers above `after`, up to `limit` each from events and table. Two or three statements."""
    of_events = await post_numbers(connection, Window(limit, False, after))
    rows = await first_rows(connection, select(PUBLIC_POSTS.c.number), after, MAX_NUMBER, limit)
    of_table = [number for (number,) in rows]
    up_to = min(found[-1] if len(found) == limit else MAX_NUMBER for found in (of_events, of_table))
    return sorted(number for number in {*of_events, *of_table} if number <= up_to)


async def wrong_posts(connection: AsyncConnection, posts: Collection[int]) -> dict[int, Listing]:
    """Return the posts that are missing from the table or wrong in it. Up to four statements per 2,000 posts."""
    held, wanted = await public_posts.held_among(connection, posts), await _listed(connection, posts)
    decisions = await public_posts.decisions(connection, {ALL, *held.values(), *wanted.values()})
    fill = decisions.get(ALL, NO_DECISION).unmoved_below
    found = {}
    for post in posts:
        decision = decisions.get(wanted.get(post, held.get(post, ALL)), NO_DECISION)
        each = Listing(held.get(post), None if decision.suspended else wanted.get(post))
        is_moving = post in wanted and post < decision.unmoved_below
        is_filling = each.held is None and post < fill
        if each.held != each.wanted and not is_moving and not is_filling:
            found[post] = each
    return found


async def _listed(connection: AsyncConnection, posts: Collection[int]) -> dict[int, int]:
    """Return the listed posts among these, with their authors, according to the events."""
    found: dict[int, int] = {}
    for chunk in chunks(sorted(posts), IDS_PER_QUERY):
        query = select(EVENTS.c.number, EVENTS.c.kind, EVENTS.c.listed_by).where(EVENTS.c.number.in_(chunk))
        rows = await connection.execute(query)
        found.update((row.number, row.listed_by) for row in rows if row.kind == POST and row.listed_by is not None)
    return found


async def correct_posts(connection: AsyncConnection, posts: Collection[int]) -> None:
    """Add these posts to the table or remove them, according to the events."""
    wrong = await wrong_posts(connection, posts)
    await public_posts.remove(connection, [post for post, each in wrong.items() if each.held is not None])
    added = [(post, each.wanted) for post, each in sorted(wrong.items()) if each.wanted is not None]
    await add_rows(connection, PUBLIC_POSTS, ("number", "author"), added)


async def wrong_decisions(connection: AsyncConnection, users: Collection[int]) -> dict[int, EventRow | None]:
    """Return the users whose recorded suspension decision is wrong, each with the newest decision or None."""
    newest = await _newest(connection, users)
    held = await public_posts.decisions(connection, users)
    return {user: newest.get(user) for user in users if held.get(user, NO_DECISION)[:2] != _of(newest.get(user))}


async def _newest(connection: AsyncConnection, users: Collection[int]) -> Mapping[int, EventRow]:
    newest: dict[int, EventRow] = {}
    for chunk in chunks(sorted(users), statements.MAX_LIST_LENGTH):
        after, rows = 0, None
        while rows is None or len(rows) == ROWS:
            rows = await by_owners(connection, "actor", chunk, [SUSPENSION, UNSUSPENSION], after, ROWS)
            newest |= {row.actor: row for row in rows if row.body is not None}
            after = rows[-1].number if rows else after
    return newest


def _of(event: EventRow | None) -> tuple[bool, int]:
    return (event.kind == SUSPENSION, event.number) if event else NO_DECISION[:2]


async def correct_decisions(connection: AsyncConnection, users: Collection[int]) -> None:
    """Replace wrong recorded decisions about users with the newest ones, and begin to move the posts of these users."""
    wrong: Sequence[tuple[int, EventRow | None]] = [*(await wrong_decisions(connection, users)).items()]
    for chunk in chunks(wrong, statements.MAX_LIST_LENGTH):
        await connection.execute(delete(PUBLIC_MOVES).where(PUBLIC_MOVES.c.author.in_([user for user, _ in chunk])))
        decisions = [(user, SuspensionDecision(*_of(event), MAX_NUMBER + 1)) for user, event in chunk]
        rows = [Move(user, each.number, int(each.suspended), each.unmoved_below) for user, each in decisions]
        await add_rows(connection, PUBLIC_MOVES, MOVE_COLUMNS, rows)
