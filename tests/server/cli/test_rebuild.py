"""The command `fanline rebuild`."""

import shutil
from pathlib import Path

import pytest

from graph.binding import REBUILDING
from graph.errors import StoreNotReady
from graph.rebuild.rebuild import RebuildReport
from server.cli.failures import explain
from server.cli.rebuild import show
from server.embedded import EmbeddedStore
from tests.server.cli.test_commands import fanline, store_answers

SIZES = ("--users", "30", "--posts", "50", "--following", "3")


def lose_store(folder: Path) -> None:
    """Remove the embedded store, but not the archive."""
    shutil.rmtree(EmbeddedStore(folder).folder)


def test_a_lost_store_is_refused_by_other_commands_and_rebuilt(tmp_path: Path) -> None:
    environment = {"FANLINE_DATA_DIR": str(tmp_path)}
    fanline("seed", *SIZES, **environment)
    lose_store(tmp_path)
    refused = fanline("seed", *SIZES, **environment)
    assert refused.returncode == 1
    assert "Run `fanline rebuild`" in refused.stderr.replace("\n", " ")

    done = fanline("rebuild", **environment)

    assert done.returncode == 0, done.stderr
    assert "Rebuilt 30 users" in done.stderr
    assert "50 posts" in done.stderr
    assert fanline("token", "p0", **environment).stdout.count(".") == 2
    assert not store_answers(tmp_path)


def test_a_store_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    environment = {"FANLINE_DATA_DIR": str(tmp_path)}
    fanline("seed", *SIZES, **environment)
    refused = fanline("rebuild", **environment)
    assert refused.returncode == 1
    assert "The store is not empty: it holds events." in refused.stderr.replace("\n", " ")
    assert "already holds 30 users" in fanline("seed", *SIZES, **environment).stderr


def test_an_empty_archive_is_refused(tmp_path: Path) -> None:
    refused = fanline("rebuild", FANLINE_DATA_DIR=str(tmp_path))
    assert refused.returncode == 1
    assert "The archive holds no events" in refused.stderr.replace("\n", " ")


def test_the_report_has_the_numbers_and_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    show(
        RebuildReport(users=1000, follows=20_000, posts=3000, likes=1500, events=24_500, damaged=2, seconds=0.5),
        "the store x",
    )
    text = capsys.readouterr().err
    assert (
        "Rebuilt 1,000 users, 20,000 follows, 3,000 posts and 1,500 likes from 24,500 events in 0.5 seconds (49,000 "
        "events per second), in the store x." in text
    )
    assert "2 damaged events" in text
    assert "must log in again" in text


def test_other_commands_say_that_the_store_is_being_rebuilt(capsys: pytest.CaptureFixture[str]) -> None:
    """They do not report that the store is unavailable."""
    explain(StoreNotReady(REBUILDING))
    assert capsys.readouterr().err == f"fanline: {REBUILDING}\n"
