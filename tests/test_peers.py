"""Tests of the comparison with other servers."""

import json
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import TINY, main
from benchmarks.peers import growth, measure
from benchmarks.peers.clients import check, different
from benchmarks.peers.handwritten import cursors_of, encode, moment
from benchmarks.peers.measure import Bench, bench
from benchmarks.peers.processes import NODE_VARIANTS, missing
from benchmarks.peers.queries import reads
from benchmarks.peers.world import Size
from graph.model import number_at, time_of
from graph.paging import CursorKind, encode_cursor
from resolvers import ids
from schema.scalars import print_time

FIGURES = {"rps", "cpu_ms", "p50_ms", "p99_ms", "round_trips"}
MEASURED = ("fanline", "fanline-executor-off", "ceiling")
VARIANTS = ("fanline", "fanline-executor-off", "strawberry-tutorial", "asgi-redis-py", "ceiling")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Run the servers of all variants. They remove their temporary folders at the end."""
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        with bench([*VARIANTS, *(variant for variant in NODE_VARIANTS if not missing(variant))], TINY) as running:
            assert list(folder.glob("fanline-benchmark-*"))
            yield running
    assert not list(folder.glob("fanline-benchmark-*")), "a folder was not removed"


@pytest.fixture
def measured(running: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the measurements use the servers that run already."""

    def those(variants: Sequence[str], size: Size) -> AbstractContextManager[Bench]:
        return nullcontext(replace(running, servers=[each for each in running.servers if each.variant in variants]))

    monkeypatch.setattr(growth, "bench", those)
    monkeypatch.setattr(measure, "bench", those)


@pytest.mark.long
def test_the_command_measures_variants_and_writes_their_ratios(
    measured: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every variant has all figures for every query, and ratios to Fanline."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    main(
        ["--tiny", "--rounds", "1", "--json", "f.json", "--plots", "p", "--only", *MEASURED, "--queries", "H", "small"]
    )
    assert "compared: the same data" in capsys.readouterr().out
    figures = json.loads((tmp_path / "f.json").read_text("utf-8"))
    assert set(figures["variants"]) == set(MEASURED)
    for by_query in figures["variants"].values():
        assert set(by_query) == {"H", "small"}
        assert all(set(row) >= FIGURES for row in by_query.values())
    assert set(figures["ratios"]) == set(MEASURED) - {"fanline"}
    assert set(figures["ratios"]["ceiling"]["H"]) == {"rps", "cpu_ms", "p99_ms"}
    assert figures["variants"]["ceiling"]["H"]["round_trips"] == 3


@pytest.mark.long
def test_growth_is_measured_with_and_without_the_executor(measured: None) -> None:
    pages, depth = growth.grow(growth.Effort(rounds=1, seconds=0.05, warm_up=0.05), TINY, print)
    assert set(pages.column("posts of a page")) == {1, 2, 5, 10, 20, 50, 100}
    assert {row[1] for row in depth.rows} == {1, 2, 3, 4, 5}
    for table in (pages, depth):
        assert set(table.column("variant")) == {"fanline", "fanline-executor-off"}
        assert len(table.rows) == 2 * len({row[1] for row in table.rows})


@pytest.mark.long
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
