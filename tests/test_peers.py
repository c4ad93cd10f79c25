"""Tests of the comparison with other servers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import TINY
from benchmarks.peers import growth
from benchmarks.peers.clients import check, different
from benchmarks.peers.handwritten import cursors_of, encode, moment
from benchmarks.peers.measure import Bench, bench
from benchmarks.peers.processes import NODE_VARIANTS, missing
from benchmarks.peers.queries import reads
from graph.model import number_at, time_of
from graph.paging import CursorKind, encode_cursor
from resolvers import ids
from schema.scalars import print_time
from tests.test_benchmarks import environment

FIGURES = {"rps", "cpu_ms", "p50_ms", "p99_ms", "round_trips"}
MEASURED = ("fanline", "ceiling")
VARIANTS = ("fanline", "fanline-executor-off", "strawberry-tutorial", "asgi-redis-py", "ceiling")


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command at its smallest size, with its files in a folder."""
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--json", "figures.json", "--plots", "plots", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=110, check=False
    )


@pytest.mark.slow
def test_the_command_measures_variants_and_writes_their_ratios(tmp_path: Path) -> None:
    """Every variant has all figures for every query, and ratios to Fanline."""
    done = run(tmp_path, "--rounds", "1", "--only", *MEASURED, "--queries", "H", "small")
    assert done.returncode == 0, done.stderr
    assert "compared: the same data" in done.stdout
    figures = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    assert set(figures["variants"]) == set(MEASURED)
    for by_query in figures["variants"].values():
        assert set(by_query) == {"H", "small"}
        assert all(set(row) >= FIGURES for row in by_query.values())
    assert set(figures["ratios"]) == set(MEASURED) - {"fanline"}
    assert set(figures["ratios"]["ceiling"]["H"]) == {"rps", "cpu_ms", "p99_ms"}
    assert figures["variants"]["ceiling"]["H"]["round_trips"] == 3
    assert not list(tmp_path.glob("fanline-benchmark-*")), "a folder was not removed"


@pytest.fixture(scope="module")
def running() -> Iterator[Bench]:
    """Run the servers of all variants."""
    with bench([*VARIANTS, *(variant for variant in NODE_VARIANTS if not missing(variant))], TINY) as running:
        yield running


@pytest.mark.slow
def test_growth_is_measured_with_and_without_the_executor(running: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = replace(running, servers=[each for each in running.servers if each.variant in growth.VARIANTS])
    monkeypatch.setattr(growth, "bench", lambda variants, size: nullcontext(measured))
    pages, depth = growth.grow(growth.Effort(rounds=1, seconds=0.05, warm_up=0.05), TINY, print)
    assert set(pages.column("posts of a page")) == {1, 2, 5, 10, 20, 50, 100}
    assert {row[1] for row in depth.rows} == {1, 2, 3, 4, 5}
    for table in (pages, depth):
        assert set(table.column("variant")) == {"fanline", "fanline-executor-off"}
        assert len(table.rows) == 2 * len({row[1] for row in table.rows})


@pytest.mark.slow
def test_all_variants_give_equal_answers(running: Bench) -> None:
    """Data and order of keys are equal for every query."""
    queries = reads(running.world.famous)
    compared = check(running.servers, queries, running.world.readers)
    assert compared == len(running.servers) * len(queries) * TINY.readers


def test_a_different_answer_is_reported() -> None:
    """The message names the query and both variants."""
    told = different("ceiling", b'{"viewer":{"id":"one"}}', "yoga", b'{"viewer":{"id":"two"}}', "small")
    assert told.startswith("small is answered differently")
    assert "ceiling: " in told
    assert "yoga: " in told


def test_hand_written_ids_and_cursors_equal_fanlines() -> None:
    """Several numbers are encoded at once, of equal or different lengths."""
    for numbers in ([889678045081600, 889678045040640], [7, 4711, 889678045081600], [1]):
        words = [str(number) for number in numbers]
        assert encode("User:", words) == [ids.encode(ids.Kind.USER, number) for number in numbers]
        assert cursors_of("post", words) == [encode_cursor(CursorKind.POST, number) for number in numbers]
        assert cursors_of("follow", words) == [encode_cursor(CursorKind.FOLLOW, number) for number in numbers]
    assert encode("User:", []) == []


def test_hand_written_times_equal_fanlines() -> None:
    for number in (number_at(time_of(1 << 12)), 889678045081600, 889678045081600 + (86_399_999 << 12)):
        assert moment(str(number)) == print_time(time_of(number))
