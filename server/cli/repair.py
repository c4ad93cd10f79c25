"""`fanline repair`: its progress while it runs, and its report."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from graph import Graph
from graph.model import time_of
from graph.repair.repair import Advance, Kind, Part, Report
from server.cli.console import console
from server.cli.stores import existing_store_of, run
from server.lifespan import ArchiveUse
from server.settings import Settings


def check() -> bool:
    """Compare derived data with its source, change nothing, and print the differences.

    Return True if there are none. Raises SettingsError if there is no store.
    """
    settings = Settings.load()
    with existing_store_of(settings):
        report = run(settings, _check, ArchiveUse.READ_ONLY)
    show(report, console)
    return report.clean


def repair() -> bool:
    """Compare derived data with its source, correct the differences, and print them.

    Return True if no difference is left. Raises SettingsError if there is no store.
    """
    settings = Settings.load()
    with existing_store_of(settings):
        report = run(settings, _repair)
    show(report, console)
    return report.clean


async def _check(graph: Graph) -> Report:
    with _progress(console) as advance:
        return await graph.repair().run(mend=False, advance=advance)


async def _repair(graph: Graph) -> Report:
    with _progress(console) as advance:
        return await graph.repair().run(mend=True, advance=advance)


@contextmanager
def _progress(console: Console) -> Iterator[Advance]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("Comparing", total=None)

        def advance(part: Part, done: int, total: int | None) -> None:
            progress.update(
                bar, description=f"Comparing {part.value}", completed=done, total=total and max(done, total)
            )

        yield advance


def show(report: Report, console: Console) -> None:
    """Print what was compared, what differed, a few examples of each kind, and what to do now."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    for heading in ("compared", "differ", "mended")[: 3 if report.mending else 2]:
        table.add_column(heading, justify="right")
    for part in Part:
        figures = (report.compared[part], report.differed(part), report.cured(part))
        table.add_row(part.value, *(f"{figure:,}" for figure in figures[: 3 if report.mending else 2]))
    console.print(table)
    for kind, count in report.found.items():
        _show_kind(report, kind, count, console)
    console.print()
    for sentence in _conclusion(report):
        console.print(sentence)


def _show_kind(report: Report, kind: Kind, count: int, console: Console) -> None:
    remedy = kind.remedy if report.mending else f"to mend: {kind.remedy}"
    left = count - report.mended[kind]
    console.print(f"\n[bold]{count:,} × {escape(kind.wrong)}[/]", soft_wrap=True)
    console.print(f"    {escape(remedy)}{f' ({left:,} not mended)' if report.mending and left else ''}", soft_wrap=True)
    for example in report.examples[kind]:
        console.print(f"    - {escape(example)}", soft_wrap=True)
    if count > len(report.examples[kind]):
        console.print(f"    - and {count - len(report.examples[kind]):,} more")


def _conclusion(report: Report) -> Iterator[str]:
    found, left = report.found.total(), report.found.total() - report.mended.total()
    differences = "1 difference" if found == 1 else f"{found:,} differences"
    if report.skipped:
        yield f"[yellow]The archive was left out, so older posts were not compared:[/] {escape(report.skipped)}"
    if report.upto < report.last:
        yield (
            f"What happened after {time_of(report.upto):%Y-%m-%d %H:%M:%S} UTC is not yet projected and was not "
            "compared; if no worker runs, `fanline worker --once` projects it."
        )
    if not found:
        yield "No differences."
    elif not report.mending:
        yield f"{differences}. `fanline repair` mends what can be mended; nothing was changed now."
    elif left:
        yield f"{differences}; {left:,} could not be mended."
    else:
        yield f"{differences}, all mended."
