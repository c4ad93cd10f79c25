"""A spatial index of boxes: a hierarchy of grids, in which each level halves the height and width of the cells."""

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from graph.cells import Cell, cell_at, covering
from graph.feed.filters import Box
from graph.feed.posting_lists import PostingLists

V = TypeVar("V", bound=Hashable)


class Grid(Generic[V]):
    """Values by box. A value is stored in the cells of the finest level on which its box covers at most 16 cells.

    Finding the values near a location costs one look-up for each level in use.
    """

    __slots__ = ("_cells", "_levels")

    def __init__(self) -> None:
        self._cells: PostingLists[Cell, V] = PostingLists()
        self._levels: Counter[int] = Counter()

    def add(self, box: Box, value: V) -> None:
        """Add a value that is not in the grid yet."""
        cells = covering(box)
        self._levels[cells[0][0]] += 1
        self._cells.add_all(cells, value)

    def remove(self, box: Box, value: V) -> None:
        """Remove the value that was added with this box."""
        cells = covering(box)
        level = cells[0][0]
        self._levels[level] -= 1
        if not self._levels[level]:
            del self._levels[level]
        self._cells.remove_all(cells, value)

    def near(self, latitude: float, longitude: float) -> Iterator[V]:
        """Yield the values whose boxes contain a location, each once, and some whose boxes are close to it."""
        for level in self._levels:
            yield from self._cells[cell_at(latitude, longitude, level)]
