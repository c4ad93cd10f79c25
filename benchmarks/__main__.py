"""Comparison of Fanline with other servers: `python -m benchmarks [--quick] [--json FILE] [--growth]`. On Linux.

All servers read the same store. Fanline, Strawberry, Node servers and hand-written code answer the same queries in
turn.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import orjson
from rich.console import Console

from benchmarks.command import WIDTH, describe_machine
from benchmarks.peers import growth, plots
from benchmarks.peers.clients import Unequal
from benchmarks.peers.measure import Plan, measure
from benchmarks.peers.processes import NAMES, describe_node
from benchmarks.peers.queries import MIXED, reads
from benchmarks.peers.results import document, rows, tables
from benchmarks.peers.world import Size
from benchmarks.report import save, show

QUERIES = (*reads(""), MIXED)
TINY = Size(users=150, readers=4, writers=4, posts_each=10, reader_follows=60, famous_followers=60)
PLANS = {
    "full": Plan(NAMES, QUERIES, 10, 1.5, 3.0),
    "quick": Plan(NAMES, QUERIES, 3, 0.5, 0.8),
    "tiny": Plan(NAMES, QUERIES, 2, 0.2, 0.1, TINY),
}
EFFORTS = {
    "full": growth.Effort(5, 1.0, 1.5),
    "quick": growth.Effort(2, 0.6, 0.6),
    "tiny": growth.Effort(1, 0.2, 0.1),
}


def options() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    parser = argparse.ArgumentParser("python -m benchmarks", description="Compare Fanline with other servers.")
    parser.set_defaults(size="full")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", dest="size", action="store_const", const="quick", help="under 3 minutes")
    sizes.add_argument("--tiny", dest="size", action="store_const", const="tiny", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often the variants take turns")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="VARIANT", help=", ".join(NAMES))
    parser.add_argument("--queries", nargs="+", choices=QUERIES, metavar="QUERY", help=", ".join(QUERIES))
    parser.add_argument("--growth", action="store_true", help="measure how time grows with pages and depth instead")
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", default=Path("docs/benchmarks"), help="folder for plots (%(default)s)"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    chosen = options().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    signal.signal(signal.SIGTERM, stop)
    machine = f"{describe_machine()} {describe_node()}"
    console.print(machine)
    try:
        (grow if chosen.growth else compare)(chosen, machine, console)
    except Unequal as unequal:
        sys.exit(str(unequal))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def compare(chosen: argparse.Namespace, machine: str, console: Console) -> None:
    """Measure the variants, print the tables, and write the JSON file and the plot."""
    plan = PLANS[chosen.size]
    plan = replace(
        plan,
        variants=chosen.only or plan.variants,
        queries=chosen.queries or plan.queries,
        rounds=chosen.rounds or plan.rounds,
    )
    measured = measure(plan, console.print)
    for variant, why in measured.skipped.items():
        console.print(f"{variant} was skipped: {why}.")
    found = rows(measured)
    for table in tables(found, plan.size.readers):
        show(console, table)
    if chosen.json:
        chosen.json.write_bytes(orjson.dumps(document(machine, measured, found), option=orjson.OPT_INDENT_2) + b"\n")
    plot(lambda folder: plots.draw(found, folder / "peers.svg"), chosen.plots, console)


def grow(chosen: argparse.Namespace, machine: str, console: Console) -> None:
    """Measure how time grows with the size of answers, print the tables, and write the JSON file and the plots."""
    effort, size = EFFORTS[chosen.size], PLANS[chosen.size].size
    found = growth.grow(replace(effort, rounds=chosen.rounds or effort.rounds), size, console.print)
    for table in found:
        show(console, table)
    if chosen.json:
        save(chosen.json, machine, found)
    plot(lambda folder: growth.draw(found, folder), chosen.plots, console)


def plot(draw: Callable[[Path], None], folder: Path, console: Console) -> None:
    """Draw plots into a folder, if matplotlib is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        draw(folder)
    except ModuleNotFoundError as missing:
        if missing.name != "matplotlib":
            raise
        console.print("No plots: matplotlib is in the dependency group 'bench' (uv run --group bench …).")
    else:
        console.print(f"Plots are in {folder}.")


def stop(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt, so that all processes are ended before this one."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
