"""The commands in the documentation work in a shell: setting up, the demo, seeding and repair, the npm packages."""

import gzip
import logging
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import typer.main

from server.cli.main import cli
from server.process.logs import LOGGING
from tests.clients.programs import node
from tests.conftest import need
from tests.docs.blocks import ROOT, claim
from tests.docs.shell import commands, environment, running, sh
from tests.server.cli.test_commands import ask, free_port

__all__ = ["node"]

DEMOS = claim(__name__, "sh", containing="fanline demo")
[SEEDS] = claim(__name__, "sh", page="docs/cli.md")
[REPAIR] = claim(__name__, "sh", page="docs/operations.md", containing="fanline repair")
[IN_A_PROJECT] = claim(__name__, "sh", page="docs/client-kit.md")
[KIT] = claim(__name__, "sh", page="client/README.md")
[WEB] = claim(__name__, "sh", page="examples/web/README.md")
CLI = claim(__name__, "text", page="docs/cli.md", containing="fanline ")

SET_UP = next(block for block in DEMOS if block.page == "CONTRIBUTING.md")
WITHOUT_PIP = next(block for block in DEMOS if "venv" in block.text)  # where pip is managed by the system
READY_SECONDS = 240.0  # the demo seeds its users first, which takes long on a busy machine
VENV = {"UV_PROJECT_ENVIRONMENT": sys.prefix}


def ready(url: str, log: Path) -> httpx.Response:
    """Return the response of a server once it answers."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            response = httpx.get(url, timeout=READY_SECONDS)
            if response.status_code == 200:
                return response
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, log.read_text("utf-8")
        time.sleep(0.05)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a data folder for the demo. The first start takes several seconds to seed it."""
    return str(tmp_path_factory.mktemp("demo"))


@pytest.mark.slow
def test_the_demo_starts(tmp_path: Path, data: str) -> None:
    """The demo starts in a checkout after the set-up. `uv sync` only reports what it would install."""
    port, log = free_port(), tmp_path / "log"
    script = SET_UP.text.replace("uv sync", "uv sync --dry-run").replace("fanline demo", f"fanline demo --port {port}")
    with running(script, tmp_path, environment(**VENV, FANLINE_DATA_DIR=data), log):
        ready(f"http://localhost:{port}/health/ready", log)
        assert ask(port, '{ user(by: {login: "alice"}) { login } }')["data"] == {"user": {"login": "alice"}}


@pytest.mark.slow
def test_uv_in_a_virtual_environment(tmp_path: Path, long_profile: bool) -> None:
    """It would run the same demo, so `fanline --version` is enough here."""
    if not long_profile:
        pytest.skip("installs a package for ten seconds: run with --long")
    script = WITHOUT_PIP.text.replace("fanline demo", "fanline --version")
    assert re.search(r"^fanline \d", sh(script, tmp_path, environment(**VENV)), re.M)


def test_all_pages_start_the_demo_with_the_same_commands() -> None:
    """The pages have only the commands that the tests above run, and the one that runs the tests."""
    known = {*commands(SET_UP.text), *commands(WITHOUT_PIP.text), "python3 -m uv run pytest"}
    assert {command for block in DEMOS for command in commands(block.text)} == known


@pytest.mark.slow
def test_seeding_and_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The users and posts are a thousandth of the page's. A file of follows is in the format on the page.

    The commands run in this process, because each process takes a second to start.
    """
    with gzip.open(tmp_path / "follows.txt.gz", "wt") as follows:
        follows.write("# chain 3 2\n0 1\n1 2\n")
    with gzip.open(tmp_path / "texts.txt.gz", "wt") as texts:
        texts.write("one\ntwo\n")
    monkeypatch.chdir(tmp_path)
    for number, command in enumerate(commands(SEEDS.text)):
        monkeypatch.setenv("FANLINE_DATA_DIR", str(tmp_path / str(number)))
        smaller = re.sub(r"\b(\d+)000\b", r"\1", command.replace("--following 30", "--following 3"))
        fanline(smaller)
        users = re.search(r"--users (\d+)", smaller)
        assert f"Seeded {users[1] if users else 3} users" in capfd.readouterr().err
    for command in commands(REPAIR.text):
        fanline(command)
        assert "No differences." in capfd.readouterr().err


def fanline(command: str) -> None:
    """Run a command of Fanline in this process."""
    program, *arguments = shlex.split(command)
    assert program == "fanline"
    with log_restored():
        assert typer.main.get_command(cli).main(arguments, standalone_mode=False) in (0, None)


@contextmanager
def log_restored() -> Iterator[None]:
    """Undo the block's changes to logging, which would continue to write to the captured output of a test."""
    loggers = [logging.getLogger(name) for name in ("", *LOGGING["loggers"])]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    try:
        yield
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
            logger.handlers[:], logger.propagate = handlers, propagate
            logger.setLevel(level)


def copy_of_the_client_kit(checkout: Path) -> Path:
    """Copy the client kit into an empty checkout: compiling it in place would disturb the tests that run it."""
    packages = ROOT / "client" / "node_modules"
    need(packages.is_dir(), "`npm install` in client")
    copy = shutil.copytree(ROOT / "client", checkout / "client", ignore=shutil.ignore_patterns("node_modules", "dist"))
    (copy / "node_modules").symlink_to(packages)
    shutil.copy(ROOT / "schema.graphql", checkout)
    return copy


@pytest.mark.slow
def test_the_tests_of_the_client_kit(node: str, tmp_path: Path) -> None:
    """CI runs `npm install` in its own preparation, so this test does not."""
    install, build, test, pack = commands(KIT.text)
    assert (install, build, test, pack) == ("npm install", "npm run build", "npm test", "npm pack")
    assert "\n  install client " in (ROOT / ".ci" / "run").read_text("utf-8")
    assert "fail 0" in sh(test, copy_of_the_client_kit(tmp_path), environment())


@pytest.mark.slow
def test_the_client_kit_in_a_project(node: str, tmp_path: Path) -> None:
    """`npm pack` compiles the package, which a project next to the checkout installs without scripts."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "package.json").write_text('{"type": "module"}')
    copy_of_the_client_kit(tmp_path / "fanline")
    prepare, pack, install = commands(IN_A_PROJECT.text)
    assert prepare == "npm install --prefix ../fanline/client"
    program = "import { live } from '@fanline/client'; console.log(typeof live)"
    printed = sh(f'{pack}\n{install}\n{node} --input-type=module -e "{program}"', project, environment())
    assert printed.endswith("\nfunction\n")
    assert not (project / "node_modules" / "@fanline" / "client").is_symlink()


@pytest.mark.slow
def test_one_command_starts_the_web_app_and_its_demo(node: str, tmp_path: Path, data: str) -> None:
    """The page is served by Vite, on the port that is shown or the next free one, and its requests reach the demo."""
    *installs, develop = commands(WEB.text)
    assert [command.split()[:2] for command in installs] == [["npm", "install"]] * 2
    need((ROOT / "examples" / "web" / "node_modules").is_dir(), "`npm install` in examples/web")
    log = tmp_path / "log"
    environ = environment(FANLINE_DATA_DIR=data, PORT=str(free_port()), NO_COLOR="1")
    with running(f"exec {develop}", ROOT / "examples" / "web", environ, log):
        deadline = time.monotonic() + READY_SECONDS
        while not (found := re.search(r"Local:\s+(http://localhost:\d+/)", log.read_text("utf-8"))):
            assert time.monotonic() < deadline, log.read_text("utf-8")
            time.sleep(0.1)
        assert '<div id="root">' in ready(found[1], log).text
        asked = ready(f"{found[1]}graphql?query={{user(by:{{login:%22alice%22}}){{login}}}}", log)
        assert asked.json() == {"data": {"user": {"login": "alice"}}}


def test_the_usage_of_each_command_is_generated() -> None:
    """A test in test_pages.py compares the generated parts with the command line."""
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    generated = re.findall(r"<!-- generated: commands -->(.*?)<!-- end -->", page, re.S)
    assert all(block.text in generated[0] for block in CLI)
