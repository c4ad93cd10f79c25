"""Differences that may be caused by events that are not projected and archived yet.

A process projects its events before the worker and the archiver have processed them. So the store may already reflect
an event that the archive does not, for example a deletion that removes likes. Such a difference is not a defect.
"""

import re
from collections.abc import Iterator, Sequence

from graph.log.event_ids import ids_in
from graph.log.log import Log
from graph.model import MAX_NUMBER
from graph.repair.report import Difference

NUMBER = re.compile(r"\d+")


async def certain(log: Log, reached: int, differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences that involve no user, post or list named in any event after the number `reached`.

    One round trip per 500 such events; nothing is read if there are no differences.
    """
    left = [(difference, set(ids_of(difference))) for difference in differences]
    if not left:
        return []
    async for event in log.replay(reached, MAX_NUMBER):
        touched = set(ids_in(event))
        left = [each for each in left if touched.isdisjoint(each[1])]
    return [difference for difference, _ in left]


def ids_of(difference: Difference) -> Iterator[int]:
    """Yield the subject of a difference, and the ids in the name of its element."""
    yield difference.subject
    yield from map(int, NUMBER.findall(str(difference.element)))
