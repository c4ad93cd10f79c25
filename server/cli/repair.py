"""The command `fanline repair`: runs a check or a repair, and prints its progress and report."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from graph import Graph
from graph.model import time_of
from graph.repair.repair import Kind, OnProgress, Part, Report
from server.cli.console import console
from server.cli.stores import existing_store_of, run
from server.lifespan import ArchiveUse
from server.settings import Settings


def check() -> bool:
    """Compare derived data with its source and print the differences, without changing anything.

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
    with _progress(console) as on_progress:
        return await graph.repair().run(correct=False, on_progress=on_progress)


async def _repair(graph: Graph) -> Report:
    with _progress(console) as on_progress:
        return await graph.repair().run(correct=True, on_progress=on_progress)


@contextmanager
def _progress(console: Console) -> Iterator[OnProgress]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("Comparing", total=None)

        def on_progress(part: Part, done: int, total: int | None) -> None:
            progress.update(
                bar, description=f"Comparing {part.value}", completed=done, total=total and max(done, total)
            )

        yield on_progress


def show(report: Report, console: Console) -> None:
    """Print the numbers of comparisons and differences, examples of each kind, and what to do next."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    for heading in ("compared", "different", "corrected")[: 3 if report.corrects else 2]:
        table.add_column(heading, justify="right")
    for part in Part:
        figures = (report.compared[part], report.found_in(part), report.corrected_in(part))
        table.add_row(part.value, *(f"{figure:,}" for figure in figures[: 3 if report.corrects else 2]))
    console.print(table)
    for kind, count in report.found.items():
        _show_kind(report, kind, count, console)
    console.print()
    for sentence in _conclusion(report):
        console.print(sentence)


def _show_kind(report: Report, kind: Kind, count: int, console: Console) -> None:
    left = f" ({count - report.corrected[kind]:,} not corrected)" if report.corrected[kind] < count else ""
    console.print(f"\n[bold]{count:,} × {escape(kind.problem)}[/]", soft_wrap=True)
    console.print(f"    Correction: {escape(kind.correction)}{left if report.corrects else ''}", soft_wrap=True)
    for example in report.examples[kind]:
        console.print(f"    - {escape(example)}", soft_wrap=True)
    if count > len(report.examples[kind]):
        console.print(f"    - and {count - len(report.examples[kind]):,} more")


def _conclusion(report: Report) -> Iterator[str]:
    found, left = report.found.total(), report.found.total() - report.corrected.total()
    differences = "1 difference" if found == 1 else f"{found:,} differences"
    if report.archive_error:
        yield f"[yellow]Archived posts were not compared:[/] {escape(report.archive_error)}"
    if report.watermark < report.last:
        yield (
            f"Events after {time_of(report.watermark):%Y-%m-%d %H:%M:%S} UTC are not projected yet and were not "
            "compared. If no worker is running, project them with `fanline worker --once`."
        )
    if not found:
        yield "No differences."
    elif not report.corrects:
        yield f"{differences}. Nothing was changed. Run `fanline repair` to correct them."
    elif left:
        yield f"{differences}, {left:,} not corrected."
    else:
        yield f"{differences}, all corrected."
