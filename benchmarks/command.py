"""Common parts of all commands: options, a machine description, tables as they are measured, JSON and plots."""

import argparse
import asyncio
import importlib
import os
import platform
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.console import Console

from benchmarks.report import Table, save, show
from benchmarks.stores import private_store, version

S = TypeVar("S")

WIDTH = 150


@dataclass(frozen=True, slots=True)
class Benchmark(Generic[S]):
    """One command: its description, its sizes (full, quick, tiny), and its functions that measure and draw, if any."""

    description: str
    sizes: Mapping[str, S]
    measure: Callable[[S], AsyncIterator[Table]]
    draw: Callable[[Mapping[str, Table], Path], None] | None = None

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Run the command."""
        options = self._options().parse_args(arguments)
        console = Console(width=None if sys.stdout.isatty() else WIDTH)
        machine = describe_machine()
        console.print(machine)
        tables: list[Table] = []
        run_to_end(self._collect(self.sizes[options.size], tables, console))
        if options.json:
            save(options.json, machine, tables)
        self._plot(tables, options.plots, console)

    def _options(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(description=self.description)
        parser.set_defaults(size="full")
        sizes = parser.add_mutually_exclusive_group()
        sizes.add_argument(
            "--quick", dest="size", action="store_const", const="quick", help="small sizes, under a minute"
        )
        sizes.add_argument("--tiny", dest="size", action="store_const", const="tiny", help=argparse.SUPPRESS)
        parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
        parser.add_argument(
            "--plots", type=Path, metavar="DIR", default=Path("docs/benchmarks"), help="folder for plots (%(default)s)"
        )
        return parser

    async def _collect(self, sizes: S, tables: list[Table], console: Console) -> None:
        async for table in self.measure(sizes):
            show(console, table)
            tables.append(table)

    def _plot(self, tables: Sequence[Table], folder: Path, console: Console) -> None:
        if self.draw is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self.draw({table.key: table for table in tables}, folder)
        except ModuleNotFoundError as missing:
            if missing.name != "matplotlib":
                raise
            console.print("No plots: matplotlib is in the dependency group 'bench' (uv run --group bench …).")
        else:
            console.print(f"Plots are in {folder}.")


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on uvloop if it is installed. SIGTERM cancels it, so that stores and workers are stopped."""
    try:
        new_loop: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ModuleNotFoundError:
        new_loop = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        try:
            runner.run(until_terminated(work))
        except asyncio.CancelledError:
            sys.exit(128 + signal.SIGTERM)


async def until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """Await a coroutine. SIGTERM cancels it, as Ctrl-C does, so that it can clean up."""
    task = asyncio.create_task(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await task


def describe_machine() -> str:
    """Return a description of the machine: processors, versions and load. It contains no names and no dates."""
    with private_store() as url:
        store = version(url)
    return (
        f"{os.cpu_count()} CPUs ({platform.machine()}), load {os.getloadavg()[0]:.1f} before; Python "
        f"{platform.python_version()}, redis-py {version_of('redis')}, Valkey {store} on a unix socket, "
        "persistence off unless a table says otherwise."
    )
