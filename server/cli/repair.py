"""`fanline repair`: run a check or a repair, and print its progress and report."""

from collections.abc import Callable, Iterator
from functools import partial

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from graph import Graph
from graph.model import time_of
from graph.repair.defects import Defect
from graph.repair.repair import RepairReport
from server.cli.console import console
from server.cli.progress import progress_bar
from server.cli.stores import existing_store_of, run
from server.lifespan import ArchiveUse
from server.settings import Settings


def check() -> bool:
    """Compare the store with the archive and print the differences, without changing anything.

    Return True if there are none. Raises SettingsError if there is no store.
    """
    settings = Settings.load()
    with existing_store_of(settings):
        report = run(settings, partial(_run, correct=False), ArchiveUse.READ_ONLY)
    show(report, console)
    return report.clean


def repair() -> bool:
    """Compare the store with the archive, correct the differences, and print them.

    Return True if no difference is left. Raises SettingsError if there is no store.
    """
    settings = Settings.load()
    with existing_store_of(settings):
        report = run(settings, partial(_run, correct=True))
    show(report, console)
    return report.clean


async def _run(graph: Graph, *, correct: bool) -> RepairReport:
    with progress_bar("Waiting for the archive") as advance:
        return await graph.repair().run(correct=correct, on_progress=partial(_show_progress, advance))


def _show_progress(advance: Callable[[str, int, int], None], part: str, done: int, total: int) -> None:
    advance(f"Comparing {part}", done, total)


def show(report: RepairReport, console: Console) -> None:
    """Print how much was compared, how much differs, examples of each defect, and what to do next."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    for heading in ("compared", "different", "corrected")[: 3 if report.corrects else 2]:
        table.add_column(heading, justify="right")
    for part, compared in report.compared.items():
        figures = (compared, report.found_in(part), report.corrected_in(part))
        table.add_row(part, *(f"{figure:,}" for figure in figures[: 3 if report.corrects else 2]))
    console.print(table)
    for defect, count in report.found.items():
        _show_defect(report, defect, count, console)
    console.print()
    for sentence in _conclusion(report):
        console.print(sentence)


def _show_defect(report: RepairReport, defect: Defect, count: int, console: Console) -> None:
    left = f" ({count - report.corrected[defect]:,} not corrected)" if report.corrected[defect] < count else ""
    console.print(f"\n[bold]{count:,} × {escape(defect.text)}[/]", soft_wrap=True)
    console.print(f"    Correction: {escape(defect.correction)}{left if report.corrects else ''}", soft_wrap=True)
    for example in report.examples[defect]:
        console.print(f"    - {escape(example)}", soft_wrap=True)
    if count > len(report.examples[defect]):
        console.print(f"    - and {count - len(report.examples[defect]):,} more")


def _conclusion(report: RepairReport) -> Iterator[str]:
    found, left = report.found.total(), report.found.total() - report.corrected.total()
    differences = "1 difference" if found == 1 else f"{found:,} differences"
    if report.up_to < report.last:
        yield (
            f"Events after {time_of(report.up_to):%Y-%m-%d %H:%M:%S} UTC have not been projected and archived yet, so "
            f"they were not compared. If no worker is running, run `fanline worker --once`."
        )
    if report.left_out:
        yield f"{report.left_out:,} further differences may come from events in progress, and were left out."
    if not found:
        yield "No differences."
    elif not report.corrects:
        yield f"{differences}. Nothing was changed. Run `fanline repair` to correct them."
    elif left:
        yield f"{differences}, {left:,} not corrected."
    else:
        yield f"{differences}, all corrected."
