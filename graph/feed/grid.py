"""A spatial index of boxes: a hierarchy of grids, in which the cells of each level halve those of the level above."""

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Generic, TypeAlias, TypeVar

from graph.feed.filters import BOX_TERMS, Box
from graph.feed.posting_lists import PostingLists

V = TypeVar("V", bound=Hashable)

FINEST = 16  # cells of about 600 by 300 metres at the equator

Cell: TypeAlias = tuple[int, int, int]
"""The level of a grid, and a row and a column in it. Columns wrap around the earth."""


class Grid(Generic[V]):
    """Values by box. A value is stored in the cells of the finest level in which its box covers at most `BOX_TERMS`.

    Finding the values near a location costs one look-up for each level in use.
    """

    __slots__ = ("_cells", "_levels")

    def __init__(self) -> None:
        self._cells: PostingLists[Cell, V] = PostingLists()
        self._levels: Counter[int] = Counter()

    def add(self, box: Box, value: V) -> None:
        """Add a value that is not in the grid yet."""
        level, cells = _covering(box)
        self._levels[level] += 1
        self._cells.add_all(cells, value)

    def remove(self, box: Box, value: V) -> None:
        """Remove the value that was added with this box."""
        level, cells = _covering(box)
        self._levels[level] -= 1
        if not self._levels[level]:
            del self._levels[level]
        self._cells.remove_all(cells, value)

    def near(self, latitude: float, longitude: float) -> Iterator[V]:
        """Yield the values whose boxes contain a location, each once, and some whose boxes are close to it."""
        for level in self._levels:
            columns = 1 << level
            yield from self._cells[level, _row(latitude, columns), _column(longitude, columns) % columns]


def _covering(box: Box) -> tuple[int, list[Cell]]:
    """Return the finest level in which a box covers at most `BOX_TERMS` cells, and these cells."""
    for level in range(FINEST, -1, -1):
        columns = 1 << level
        first, last = _column(box.west, columns), _column(box.east, columns)
        if box.west > box.east:
            last += columns
        last = min(last, first + columns - 1)
        lowest, highest = _row(box.south, columns), _row(box.north, columns)
        if (last - first + 1) * (highest - lowest + 1) <= BOX_TERMS:
            break
    return level, [(level, y, x % columns) for y in range(lowest, highest + 1) for x in range(first, last + 1)]


def _column(longitude: float, columns: int) -> int:
    """Return the column of a longitude. Longitude 180 returns `columns`, which stands for the first column."""
    return int((longitude + 180) / 360 * columns)


def _row(latitude: float, rows: int) -> int:
    """Return the row of a latitude. The north pole has a row of its own, after the last one."""
    return int((latitude + 90) / 180 * rows)
