"""Progress bars of commands with several steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from server.cli.console import console


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar during the block. Yield a function that takes the step, the number done and the total.

    The estimate of the remaining time starts over with each step, and ignores the work of earlier runs.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar, current = progress.add_task(description, total=None), ""

        def advance(step: str, done: int, total: int) -> None:
            nonlocal current
            if step == current:
                progress.update(bar, completed=done)
            else:
                progress.reset(bar, description=step, total=total, completed=done)
                current = step

        yield advance
