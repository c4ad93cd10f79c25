"""Plots as SVG; identical figures produce identical files. Needs matplotlib, from the dependency group `bench`."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Cell, Table

Lines = Mapping[str, tuple[Sequence[Cell], Sequence[Cell]]]
"""Lines by name: the x and the y coordinates of their points."""

SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "fanline",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
}


def plot(
    path: Path,
    title: str,
    axes: tuple[str, str],
    lines: Lines,
    goal: tuple[str, float] | None = None,
    *,
    linear: bool = False,
) -> None:
    """Draw lines, and a horizontal line for the goal, on logarithmic axes or, if `linear`, on axes that start at 0.

    Raises ModuleNotFoundError without matplotlib.
    """
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with pyplot.rc_context(SETTINGS):
        figure, on = pyplot.subplots(figsize=(7.2, 4.4), layout="constrained")
        for name, (x, y) in lines.items():
            on.plot(numbers(x), numbers(y), marker="o", markersize=4, label=name)
        if goal:
            on.axhline(goal[1], color="0.5", linestyle="--", linewidth=1, label=goal[0])
        on.set(title=title, xlabel=axes[0], ylabel=axes[1])
        if linear:
            on.set(xlim=(0, None), ylim=(0, None))
        else:
            on.set(xscale="symlog" if any_zero(lines) else "log", yscale="log")
        on.grid(alpha=0.3)
        on.legend(fontsize=8)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)


def any_zero(lines: Lines) -> bool:
    """Return True if a line has a point at x = 0, which has no logarithm."""
    return any(number == 0 for x, _ in lines.values() for number in numbers(x))


def numbers(cells: Sequence[Cell]) -> list[Any]:
    """Return cells as numbers."""
    return [float(cell) for cell in cells]


def by(table: Table, column: str, x: str, y: str) -> dict[str, tuple[Sequence[Cell], Sequence[Cell]]]:
    """Return a line for each value of a column."""
    lines: dict[str, tuple[list[Cell], list[Cell]]] = {}
    for name, across, up in zip(table.column(column), table.column(x), table.column(y), strict=True):
        xs, ys = lines.setdefault(str(name), ([], []))
        xs.append(across)
        ys.append(up)
    return {name: points for name, points in lines.items() if len(points[0]) > 1}


def plot_inserts(table: Table, folder: Path) -> None:
    """Draw inserts per second, and the duration of a fan-out."""
    labels = [f"{w}, {c}" for w, c in zip(table.column("workers"), table.column("caches"), strict=True)]
    rows = [[*row, label] for row, label in zip(table.rows, labels, strict=True)]
    named = Table(table.key, table.title, [*table.columns, "line"], rows)
    axes = ("followers", "inserts per second")
    goal = ("goal: 100,000/s", 100_000.0)
    plot(folder / "inserts.svg", table.title, axes, by(named, "line", "followers", "inserts/s"), goal)
    title = "Fan-out: time until projected"
    lines = by(named, "line", "followers", "seconds")
    plot(folder / "fanout-time.svg", title, ("followers", "seconds"), lines, ("goal for 1,000,000: 60 s", 60.0))


def plot_publish(table: Table, folder: Path) -> None:
    """Draw the latency of publishing, by followers."""
    push = table.where(mode="push", store="in memory")
    alone, beside = push.where(**{"also running": "nothing"}), push.where(**{"also running": "a worker process"})
    merged, disk = table.where(mode="hybrid"), table.where(store="appendfsync always")
    lines: Lines = {
        f"{name}, {rank}": (rows.column("followers"), rows.column(f"{rank} ms"))
        for name, rows in {"alone": alone, "with a worker": beside, "hybrid": merged, "on disk": disk}.items()
        for rank in ("p50", "p99")
    }
    plot(folder / "publish.svg", table.title, ("followers", "ms"), lines, ("goal: p99 of 50 ms", 50.0))


def plot_served(table: Table, folder: Path) -> None:
    """Draw the time until all followers see a post, by followers and mode, with one worker process."""
    lines = by(table.where(workers=1), "mode", "followers", "seconds until visible to all")
    axes = ("followers", "seconds")
    plot(folder / "served.svg", table.title, axes, lines, ("goal for 1,000,000: 60 s", 60.0))


def plot_models(table: Table, folder: Path) -> None:
    """Draw the latency of a page, by followed authors, for each model."""
    lines = by(table, "mode", "followed", "p50 ms")
    plot(folder / "pages.svg", table.title, ("followed authors", "p50, ms"), lines)


def plot_depth(table: Table, folder: Path) -> None:
    """Draw the latency of a page, by depth in posts, for each model."""
    lines = by(table, "mode", "depth in posts", "p50 ms")
    plot(folder / f"{table.key}.svg", table.title, ("posts above the page", "p50, ms"), lines)


def plot_memory(table: Table, folder: Path) -> None:
    """Draw the memory of a cache, by posts."""
    lines = {"one cache": (table.column("posts"), table.column("bytes"))}
    plot(folder / "memory.svg", table.title, ("posts in the cache", "bytes"), lines)


def plot_overload(loads: Table, times: Table, folder: Path) -> None:
    """Draw goodput and the latency of answered requests, by load and over time, for each server."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    panels = (
        (loads, "load %", "goodput ÷ capacity", "linear"),
        (loads, "load %", "p99 ms", "log"),
        (loads, "load %", "refused/s", "linear"),
        (times, "seconds", "goodput ÷ capacity", "linear"),
        (times, "seconds", "refused or timed out ÷ capacity", "linear"),
        (times, "seconds", "p99 ms", "log"),
    )
    with pyplot.rc_context(SETTINGS):
        figure, grid = pyplot.subplots(2, 3, figsize=(10, 6), layout="constrained")
        for (table, x, y, scale), on in zip(panels, grid.flat, strict=True):
            for name, (across, up) in by(table, "server", x, y).items():
                heights = [height if height or scale == "linear" else math.nan for height in numbers(up)]
                on.plot(numbers(across), heights, marker="o", markersize=3, label=name)
            on.set(xlabel=x, ylabel=y, yscale=scale, ylim=(0, None) if scale == "linear" else None)
            on.grid(alpha=0.3)
        grid[0][0].legend(fontsize=8)
        figure.savefig(folder / "overload.svg", format="svg", metadata={"Date": None})
        pyplot.close(figure)
