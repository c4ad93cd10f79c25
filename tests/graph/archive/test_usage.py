"""An operation's use of the archive: counts, the budget of its pages, and the charge afterwards."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import statements
from graph.archive.archive import Archive
from graph.archive.usage import (
    BUDGET,
    ROW_POINTS,
    STATEMENT_POINTS,
    TRANSACTION_POINTS,
    ScanLimit,
    Usage,
    count_items,
    count_rows,
    used_by,
)
from graph.pages.scanning import scanned_page
from graph.paging import Window

STATE = TRANSACTION_POINTS + STATEMENT_POINTS


@pytest.fixture
async def archive(tmp_path: Path) -> Archive:
    archive = Archive(f"sqlite:///{tmp_path}/archive.sqlite")
    await archive.state()
    return archive


async def test_an_operation_is_charged_for_what_it_has_read(archive: Archive) -> None:
    """An operation is charged once, at its end. No operation is charged for the archive's own work."""
    charged: list[int] = []
    usage = Usage("alice", anonymous=False, charge=charged.append)
    with used_by(usage):
        await archive.state()
        await archive.rows([1, 2])
    await archive.state()
    assert (usage.transactions, usage.statements, usage.rows, charged) == (2, 2, 0, [])
    usage.end()
    usage.end()
    assert charged == [2 * STATE]
    await archive.close()


async def test_a_cancelled_operation_is_charged_when_its_transaction_ends(archive: Archive) -> None:
    """The transaction continues, and its reads still count."""
    charged: list[int] = []
    usage = Usage("alice", anonymous=False, charge=charged.append)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(connection: AsyncConnection) -> None:
        begun.set()
        await go_on.wait()
        await connection.execute(statements.watermark())

    with used_by(usage):
        task = asyncio.create_task(archive._transaction(work))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])
    usage.end()
    assert charged == []
    go_on.set()
    await archive.close()
    assert charged == [STATE]


def test_an_operation_that_reads_nothing_is_not_charged() -> None:
    charged: list[int] = []
    Usage("alice", anonymous=False, charge=charged.append).end()
    assert charged == []


async def scanned(candidates: Sequence[int], window: Window) -> tuple[int, bool]:
    """Return the number of candidates that a page without a visible post examines, and whether there are more."""
    looked_at = 0

    async def read(rest: Window, _: int) -> tuple[Sequence[int], Window | None]:
        nonlocal looked_at
        found = [number for number in candidates if rest.low < number < rest.high][: rest.count]
        count_rows(len(found))
        looked_at += len(found)
        return found, rest.beyond(found[-1]) if len(found) == rest.count else None

    async def show(_: Sequence[int]) -> list[int]:
        return []

    page = await scanned_page(window, read, show)
    return looked_at, page.has_next


async def test_all_pages_of_an_operation_share_one_budget() -> None:
    """The first page that exceeds the budget ends early, where the next one can continue. Further pages are refused."""
    candidates = range(100_000, 0, -1)
    usage = Usage("alice", anonymous=False)
    with used_by(usage):
        count_rows((BUDGET // ROW_POINTS) - 100)
        assert await scanned(candidates, Window(1, True)) == (100, True)
        count_items(ROW_POINTS)
        with pytest.raises(ScanLimit):
            await scanned(candidates, Window(1, True))
    assert usage.points <= BUDGET + ROW_POINTS
    assert (await scanned(candidates, Window(1, True)))[0] == 2000
