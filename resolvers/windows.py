"""One read for all windows of a list with the same bounds in one operation: of `first: 71`, `first: 72` and so on.

The widest window is read, and the pages of the others are cut from its page.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from typing import Generic, TypeAlias, TypeVar

from graph.paging import Window

O = TypeVar("O", bound=Hashable)  # noqa: E741 - the owner of a list
V = TypeVar("V")

LoadPages: TypeAlias = Callable[[Sequence[tuple[O, Window]]], Awaitable[Sequence[V | Exception]]]


class SharedWindows(Generic[O, V]):
    """A batch function of pages by owner and window. `cut` returns the page of a window from a wider page."""

    def __init__(self, load: LoadPages[O, V], cut: Callable[[Window, V], V]) -> None:
        self._load = load
        self._cut = cut

    async def __call__(self, keys: Sequence[tuple[O, Window]]) -> Sequence[V | Exception]:
        """Return the page of each owner and window. Costs what the widest windows cost."""
        if len(keys) == 1:
            return await self._load(keys)
        widest: dict[tuple[O, Window], int] = {}
        for owner, window in keys:
            start = owner, replace(window, count=0)
            widest[start] = max(window.count, widest.get(start, 0))
        if len(widest) == len(keys):
            return await self._load(keys)
        reads = [(owner, replace(start, count=count)) for (owner, start), count in widest.items()]
        pages = dict(zip(widest, await self._load(reads), strict=True))
        found = [(window, pages[owner, replace(window, count=0)]) for owner, window in keys]
        return [page if isinstance(page, Exception) else self._cut(window, page) for window, page in found]
