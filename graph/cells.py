"""A hierarchy of grids on the earth: each level halves the height and the width of the cells of the level above."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

MAX_CELLS = 16
FINEST = 16  # cells of about 600 by 300 metres at the equator
LEVELS = tuple(range(FINEST + 1))

Cell: TypeAlias = tuple[int, int, int]
"""The level of a grid, and a row and a column in it. Columns wrap around the earth."""


class Area(Protocol):
    """An area between two latitudes and two longitudes. It crosses the antimeridian if `west` is above `east`."""

    @property
    def south(self) -> float:
        """The latitude of the southern edge."""

    @property
    def west(self) -> float:
        """The longitude of the western edge."""

    @property
    def north(self) -> float:
        """The latitude of the northern edge."""

    @property
    def east(self) -> float:
        """The longitude of the eastern edge."""


def covering(area: Area, levels: Sequence[int] = LEVELS) -> list[Cell]:
    """Return the cells that cover an area, at the finest of these levels that needs at most 16 cells.

    `levels` are in ascending order. No area needs more than 16 cells of the first one.
    """
    for level in reversed(levels):
        columns = 1 << level
        first, last = _column(area.west, columns), _column(area.east, columns)
        if area.west > area.east:
            last += columns
        last = min(last, first + columns - 1)
        lowest, highest = _row(area.south, columns), _row(area.north, columns)
        if (last - first + 1) * (highest - lowest + 1) <= MAX_CELLS:
            break
    return [(level, y, x % columns) for y in range(lowest, highest + 1) for x in range(first, last + 1)]


def cell_at(latitude: float, longitude: float, level: int) -> Cell:
    """Return the cell of a location."""
    columns = 1 << level
    return level, _row(latitude, columns), _column(longitude, columns) % columns


def _column(longitude: float, columns: int) -> int:
    """Return the column of a longitude. The result for longitude 180 is `columns`, which stands for column 0."""
    return int((longitude + 180) / 360 * columns)


def _row(latitude: float, rows: int) -> int:
    """Return the row of a latitude. The north pole has a row of its own, after the last one."""
    return int((latitude + 90) / 180 * rows)
