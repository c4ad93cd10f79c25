"""Share one read between windows of a list that differ only in size, such as `first: 71` and `first: 72`.

Only the widest window is read, and the pages of the narrower windows are cut from its page. Calls in the same
event-loop iteration share a read. All fields of an executor layer make their calls in the same iteration.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar

from graph.paging import Window

O = TypeVar("O", bound=Hashable)  # noqa: E741 - the owner of a list
V = TypeVar("V")

LoadPages: TypeAlias = Callable[[Sequence[tuple[O, Window]]], Awaitable[Sequence[V | Exception]]]


@dataclass(slots=True)
class WindowBatch(Generic[O, V]):
    """The keys of the calls that share a read and, if there are several calls, a future for the pages."""

    keys: list[tuple[O, Window]] = field(default_factory=list)
    pages: "asyncio.Future[dict[tuple[O, Window], V | Exception]] | None" = None


class SharedWindows(Generic[O, V]):
    """A batch function that loads pages by owner and window. `cut` returns a window's part of a wider window's page.

    The first call of an event-loop iteration reads the pages for all calls in the same iteration.
    """

    def __init__(self, load: LoadPages[O, V], cut: Callable[[Window, V], V]) -> None:
        self._load = load
        self._cut = cut
        self._batch: WindowBatch[O, V] | None = None

    def __call__(self, keys: Sequence[tuple[O, Window]]) -> Awaitable[Sequence[V | Exception]]:
        """Return the page of each owner and window. Costs as much as reading only the widest window of each owner."""
        batch = self._batch
        if batch is None:
            self._batch = WindowBatch([*keys])
            return self._lead(self._batch, keys)
        batch.keys += keys
        batch.pages = batch.pages or asyncio.get_running_loop().create_future()
        return self._follow(batch.pages, keys)

    async def _lead(self, batch: WindowBatch[O, V], keys: Sequence[tuple[O, Window]]) -> Sequence[V | Exception]:
        self._batch = None
        if batch.pages is None:
            return await self._read(keys)
        wanted = list(dict.fromkeys(batch.keys))
        try:
            pages = dict(zip(wanted, await self._read(wanted), strict=True))
        except BaseException as error:
            if not batch.pages.done():
                batch.pages.set_exception(
                    error if isinstance(error, Exception) else RuntimeError("The read was cancelled.")
                )
            raise
        if not batch.pages.done():
            batch.pages.set_result(pages)
        return [pages[key] for key in keys]

    async def _follow(
        self, read: "asyncio.Future[dict[tuple[O, Window], V | Exception]]", keys: Sequence[tuple[O, Window]]
    ) -> Sequence[V | Exception]:
        pages = await asyncio.shield(read)
        return [pages[key] for key in keys]

    async def _read(self, keys: Sequence[tuple[O, Window]]) -> Sequence[V | Exception]:
        """Return the pages of distinct keys."""
        if len(keys) == 1:
            return await self._load(keys)
        widest: dict[tuple[O, Window], int] = {}
        for owner, window in keys:
            bounds = owner, replace(window, count=0)
            widest[bounds] = max(window.count, widest.get(bounds, 0))
        if len(widest) == len(keys):
            return await self._load(keys)
        reads = [(owner, replace(window, count=count)) for (owner, window), count in widest.items()]
        pages = dict(zip(widest, await self._load(reads), strict=True))
        found = [(window, pages[owner, replace(window, count=0)]) for owner, window in keys]
        return [page if isinstance(page, Exception) else self._cut(window, page) for window, page in found]
