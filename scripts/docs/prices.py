"""The table of measured query costs, from the file written by `python -m benchmarks.calibration --json FILE`."""

import json
from pathlib import Path
from typing import Any

from scripts.docs.tables import markdown

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "prices.json"
QUERY, UNIT, POINTS, LATE, CPU = 0, 1, 2, 3, 4


def table() -> str:
    """Return the table: the points of each query, and its CPU time and ratio for each database."""
    tables: list[dict[str, Any]] = json.loads(RESULTS.read_text("utf-8"))["tables"]
    names = [str(each["title"]).rpartition(", ")[2] for each in tables]
    rows = []
    for cells in zip(*(each["rows"] for each in tables), strict=True):
        first = cells[0]
        ratios = [f"{row[-1]:.2f}" for row in cells]
        times = [f"{row[CPU]:.2f}" for row in cells]
        rows.append((first[QUERY], first[UNIT], f"{first[POINTS]:,.0f}", f"{first[LATE]:,.0f}", *times, *ratios))
    head = ("query", "per additional", "points", "late points")
    return markdown((*head, *(f"ms, {name}" for name in names), *(f"ratio, {name}" for name in names)), rows)
