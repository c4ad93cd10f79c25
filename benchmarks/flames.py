"""A flame graph of a profile: `python -m benchmarks.flames STACKS SVG --title TITLE`.

`STACKS` has a line for each stack: its functions separated by semicolons, outermost first, then a space and the number
of samples, as `py-spy record --gil --format raw` writes it. The graph shows functions, not lines, and leaves out the
functions that all stacks begin with. Needs matplotlib, from the dependency group `bench`.
"""

import argparse
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.plots import SETTINGS

NARROWEST = 0.004  # part of the width below which a function is left out
WIDTH = 12.0  # inches
LAYER = 0.19  # inches
LETTER = 0.0062  # the width of a letter, as a part of the whole width
PLACE = re.compile(r"(?P<name>.*) \((?P<file>[^:]+)(:\d+)?\)")
COLOURS = {"executor/": "#f4a261", "resolvers/": "#e9c46a", "graph/": "#e76f51", "server/": "#90be6d"}
OTHERS = "0.85"


@dataclass(slots=True)
class Frame:
    """A function at one place in the call tree, and the number of samples that contain it."""

    name: str
    seen: int = 0
    calls: dict[str, "Frame"] = field(default_factory=dict)

    def add(self, stack: Iterable[str], seen: int) -> None:
        """Add a stack."""
        frame = self
        frame.seen += seen
        for name in stack:
            frame = frame.calls.setdefault(name, Frame(name))
            frame.seen += seen


def read(path: Path) -> Frame:
    """Return the innermost function that all stacks share. Raises ValueError for a file that has no stacks."""
    root = Frame("all")
    for line in path.read_text("utf-8").splitlines():
        stack, _, seen = line.rpartition(" ")
        root.add((PLACE.sub(r"\g<name> (\g<file>)", name) for name in stack.split(";")), int(seen))
    if not root.seen:
        raise ValueError(f"{path} has no stacks")
    while len(root.calls) == 1:
        [root] = root.calls.values()
    return root


def boxes(frame: Frame, left: float, whole: int, layer: int = 0) -> Iterator[tuple[Frame, float, float, int]]:
    """Yield the functions that are wide enough, with their left edges, widths and layers."""
    width = frame.seen / whole
    if width < NARROWEST:
        return
    yield frame, left, width, layer
    for called in sorted(frame.calls.values(), key=lambda each: each.name):
        yield from boxes(called, left, whole, layer + 1)
        left += called.seen / whole


def draw(root: Frame, title: str, path: Path) -> None:
    """Draw a flame graph. Raises ModuleNotFoundError without matplotlib."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    shown = list(boxes(root, 0.0, root.seen))
    layers = max(layer for *_, layer in shown) + 1
    with pyplot.rc_context(SETTINGS):
        figure, on = pyplot.subplots(figsize=(WIDTH, 0.5 + LAYER * layers), layout="constrained")
        for frame, left, width, layer in shown:
            colour = next((shade for folder, shade in COLOURS.items() if f"({folder}" in frame.name), OTHERS)
            on.barh(layer, width, left=left, height=1, align="edge", color=colour, edgecolor="white", linewidth=0.4)
            name = label(frame.name, width)
            on.text(left + LETTER / 2, layer + 0.5, name, fontsize=6.5, va="center", family="monospace")
        on.set(xlim=(0, 1), ylim=(0, layers), title=title)
        on.axis("off")
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)


def label(name: str, width: float) -> str:
    """Return the part of a function's name that fits into the width, with its file if there is room."""
    room = int(width / LETTER)
    short = name.partition(" (")[0]
    text = name if len(name) <= room else short
    return text[:room] if room > 2 else ""


def main() -> None:
    """Draw the flame graph of a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flames", description="Draw a flame graph.")
    parser.add_argument("stacks", type=Path, help="stacks as py-spy writes them with --format raw")
    parser.add_argument("svg", type=Path, help="the file to write")
    parser.add_argument("--title", default="", help="the title of the graph")
    chosen = parser.parse_args()
    draw(read(chosen.stacks), chosen.title, chosen.svg)


if __name__ == "__main__":
    main()
