"""The commands within sentences and tables of the documentation name programs, files and options that exist."""

import re
import shlex
import sqlite3
import tomllib
from contextlib import closing
from importlib.util import find_spec
from json import loads
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import need
from tests.docs.blocks import BLOCKS, NOT_RUN, PAGES, ROOT
from tests.docs.shell import environment, has, sh

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROGRAMS = {
    *("docker", "echo", "for", "kill", "npm", "npx", "openssl", "pip", "pg_dump", "python", "python3", "sqlite3", "uv"),
    *("systemctl", "systemd-analyze", "ulimit", "valkey-cli", "curl", "git", "journalctl", "promtool"),
}
BACKUP = 'sqlite3 archive.sqlite ".backup copy.sqlite"'
IN_OTHER_TESTS = {
    "echo {} > trusted/relay.json": "tests/clients/test_persisted_documents.py",
    "openssl rand -base64 48": "tests/docs/test_deployment.py",
    "systemd-analyze security": "tests/deployment/test_units.py",
    "valkey-cli --cluster": "tests/docs/test_cluster.py",
    BACKUP: "tests/docs/test_inline.py",
}


def inline() -> list[str]:
    """Return the code spans that are commands, except Fanline's, which test_pages.py checks."""
    found = set()
    for path in PAGES:
        text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.S | re.M)
        spans = {" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)}
        found |= {span for span in spans if span.split()[0] in PROGRAMS and " " in span}
    return sorted(found)


COMMANDS = inline()


def is_not_run(command: str) -> bool:
    return any(command.startswith(start) for starts in NOT_RUN for start in starts.split(", "))


def installs(words: list[str]) -> list[str]:
    """Check the options of uv, and return the command that it runs."""
    while words and words[0].startswith("-"):
        option = words.pop(0)
        known = {"--group": PROJECT["dependency-groups"], "--extra": PROJECT["project"]["optional-dependencies"]}
        assert words.pop(0) in known[option]
    return words


def checked(command: str) -> bool:
    """Return True for a command of uv, Python, pip or npm. What it names must exist."""
    words = shlex.split(command.removeprefix("python3 -m "))
    program, *rest = words
    if program == "uv":
        subcommand, *rest = rest or ["run"]
        assert subcommand in ("run", "sync")
        program, *rest = installs(rest) or ["fanline"]
    if program == "npm":
        assert rest[0] in ("install", "test", "pack") or rest[1] in scripts("examples/web") | scripts("client")
    elif program == "pip":
        extras = re.findall(r"\[(\w+)\]", command)
        assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
    elif program == "python":
        assert rest[0] == "-m"
        assert find_spec(rest[1]) is not None
    elif program == "pytest":
        assert all((ROOT / word).exists() for word in rest if word.startswith("tests/"))
    return program in ("fanline", "mkdocs", "mutmut", "lint-imports", "npm", "pip", "pytest", "python")


def scripts(folder: str) -> set[str]:
    """Return the scripts of an npm package."""
    return set(loads((ROOT / folder / "package.json").read_text("utf-8"))["scripts"])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_what_exists(command: str) -> None:
    assert command in IN_OTHER_TESTS or is_not_run(command) or checked(command)


def test_no_exception_is_superfluous() -> None:
    """Each exception, a command that tests cannot run or that they run elsewhere, is on a page."""
    text = "\n".join([*COMMANDS, *(block.text for block in BLOCKS if block.language == "sh")])
    assert [start for starts in NOT_RUN for start in starts.split(", ") if start not in text] == []
    assert [command for command in IN_OTHER_TESTS if command not in COMMANDS] == []
    assert [file for file in IN_OTHER_TESTS.values() if not (ROOT / file).exists()] == []


@pytest.mark.slow
def test_the_backup_of_an_sqlite_archive(tmp_path: Path) -> None:
    """The archive has a connection with uncommitted changes, which the copy lacks."""
    need(has("sqlite3"), "sqlite3")
    with closing(sqlite3.connect(tmp_path / "archive.sqlite")) as used:
        used.execute("PRAGMA journal_mode = WAL")
        used.execute("CREATE TABLE events (number INTEGER)")
        used.execute("INSERT INTO events VALUES (1)")
        used.commit()
        used.execute("INSERT INTO events VALUES (2)")
        sh(BACKUP, tmp_path, environment())
    with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        assert copy.execute("SELECT number FROM events").fetchall() == [(1,)]
