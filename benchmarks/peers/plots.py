"""The plot of all variants: bars that begin at zero. Needs matplotlib, from the dependency group `bench`."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.results import OURS, Row, cpu_ms, rps
from benchmarks.plots import SETTINGS
from benchmarks.report import shown

SHADES = {OURS: "#c2410c", "ceiling": "0.65"}
OTHERS = "#3b6ea5"


def draw(found: Sequence[Row], path: Path) -> None:
    """Draw requests per second and CPU time, query by query. Raises ModuleNotFoundError without matplotlib."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    queries = list(dict.fromkeys(row.query for row in found))
    figures = (("requests per second", rps), ("CPU ms of a request", cpu_ms))
    with pyplot.rc_context(SETTINGS):
        size = (9.6, 0.6 + sum(0.5 + 0.28 * sum(row.query == query for row in found) for query in queries))
        heights = [1 + sum(row.query == query for row in found) for query in queries]
        figure, grid = pyplot.subplots(
            len(queries), 2, figsize=size, layout="constrained", squeeze=False, height_ratios=heights
        )
        for query, line in zip(queries, grid, strict=True):
            rows = [row for row in found if row.query == query][::-1]
            for on, (title, of) in zip(line, figures, strict=True):
                values = [row.of(of) for row in rows]
                bars = on.barh([row.variant for row in rows], values, color=[shade(row.variant) for row in rows])
                on.bar_label(bars, [shown(value) for value in values], fontsize=8, padding=2)
                on.set_title(f"{query}: {title}")
                on.margins(x=0.15)
                on.grid(alpha=0.3, axis="x")
            line[1].set_yticklabels([])
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)


def shade(variant: str) -> str:
    """Return a variant's colour."""
    return SHADES.get(variant, OTHERS)
