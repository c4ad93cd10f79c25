"""Tests of the benchmarks, at their smallest size and in separate processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLES = {
    "archive_attacks": ["archive-attacks"],
    "archiver": ["archiver"],
    "attacks": ["attacks"],
    "calibration": ["calibration-sqlite"],
    "capacity": ["costs", "capacity"],
    "conversations": ["conversations"],
    "endurance": ["growth", "endurance"],
    "fan_out_pacing": ["pacing", "pacing over time"],
    "fanout": ["publish", "served", "inserts"],
    "live": ["matching", "memory", "latency", "readers", "churn"],
    "overload": ["overload", "overload-time"],
    "likes": ["likes", "memory"],
    "most_expensive": ["most-expensive-sqlite", "most-expensive-events-sqlite"],
    "near_cache": ["near-cache", "near-cache-writes", "near-cache-cluster"],
    "rebuild": ["rebuild"],
    "searching": ["archiving", "searches"],
    "sharding": ["sharding", "nodes"],
    "store_size": ["size", "parts"],
    "timelines": ["models", "depth", "rebuild", "following", "archive", "memory", "follows"],
}
UNPLOTTED = {
    "archive_attacks",
    "archiver",
    "calibration",
    "capacity",
    "conversations",
    "likes",
    "most_expensive",
    "near_cache",
    "rebuild",
    "searching",
    "sharding",
    "store_size",
}
"""Benchmarks whose tables are too small for a plot."""
QUICK = {"capacity", "conversations"}
"""Benchmarks that run in every full run of the tests: what the others share with them breaks here too."""


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a command that writes its temporary files to a folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in TABLES]
)
def test_a_benchmark_runs_and_writes_its_tables(name: str, tmp_path: Path) -> None:
    """Each row has all figures, with or without matplotlib."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--tiny", "--json", "figures.json", "--plots", "plots"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    tables = {table["key"]: table for table in json.loads((tmp_path / "figures.json").read_text("utf-8"))["tables"]}
    assert list(tables) == TABLES[name]
    for table in tables.values():
        assert table["rows"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert name in UNPLOTTED or "No plots" in done.stdout or list((tmp_path / "plots").glob("*.svg"))
    assert not list(tmp_path.glob("fanline-benchmark-*")), "a store's folder was not removed"
