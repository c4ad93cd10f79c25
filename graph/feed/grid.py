"""Boxes by place: a hierarchy of grids over the earth, each with cells half as wide and high as the one above."""

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Generic, TypeAlias, TypeVar

from graph.feed.filters import Box
from graph.feed.posting_lists import PostingLists

V = TypeVar("V", bound=Hashable)

FINEST = 16  # cells of about 600 by 300 metres at the equator
FEW_CELLS = 16

Cell: TypeAlias = tuple[int, int, int]
"""A level, and a row and a column of its grid; columns go round the earth."""


class Grid(Generic[V]):
    """Values by the box they stand for, each in the finest grid in which the box covers few cells.

    Finding the values near a place costs one look-up for each level in use, and what it finds.
    """

    __slots__ = ("_cells", "_levels")

    def __init__(self) -> None:
        self._cells: PostingLists[Cell, V] = PostingLists()
        self._levels: Counter[int] = Counter()

    def add(self, box: Box, value: V) -> None:
        """Put a value, which is not there yet, where the box is."""
        level, cells = covering(box)
        self._levels[level] += 1
        self._cells.add_all(cells, value)

    def remove(self, box: Box, value: V) -> None:
        """Take a value away from where the box is."""
        level, cells = covering(box)
        self._levels[level] -= 1
        if not self._levels[level]:
            del self._levels[level]
        self._cells.remove_all(cells, value)

    def near(self, latitude: float, longitude: float) -> Iterator[V]:
        """Find the values whose boxes have the place, and some whose boxes are close by, each once."""
        for level in self._levels:
            columns = 1 << level
            yield from self._cells[level, row(latitude, columns), column(longitude, columns) % columns]


def covering(box: Box) -> tuple[int, list[Cell]]:
    """Find the finest level in which a box covers few cells, and these cells."""
    for level in range(FINEST, -1, -1):
        columns = 1 << level
        first, last = column(box.west, columns), column(box.east, columns)
        if box.west > box.east:
            last += columns
        last = min(last, first + columns - 1)
        lowest, highest = row(box.south, columns), row(box.north, columns)
        if (last - first + 1) * (highest - lowest + 1) <= FEW_CELLS:
            break
    return level, [(level, y, x % columns) for y in range(lowest, highest + 1) for x in range(first, last + 1)]


def column(longitude: float, columns: int) -> int:
    """Tell which of so many columns a longitude falls into; 180 is the first one's again, once round."""
    return int((longitude + 180) / 360 * columns)


def row(latitude: float, rows: int) -> int:
    """Tell which of so many rows a latitude falls into; the north pole is in one more."""
    return int((latitude + 90) / 180 * rows)
