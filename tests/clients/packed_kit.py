"""The client kit as npm publishes it: packed into a file, and installed from that file without scripts."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.programs import FOLDER
from tests.conftest import need

KIT = FOLDER.parents[1] / "client"
PACKAGES = KIT / "node_modules"
QUIET = ("--offline", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")


def command(folder: Path, *arguments: str) -> str:
    """Run a command in a folder, and return what it prints."""
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def packed(node: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack a copy of the kit that has never been compiled. Compiling it in place would disturb other tests."""
    need(PACKAGES.is_dir(), "`npm install` in client")
    folder = tmp_path_factory.mktemp("packed")
    copy = shutil.copytree(KIT, folder / "client", ignore=shutil.ignore_patterns("node_modules", "dist"))
    (copy / "node_modules").symlink_to(PACKAGES)
    command(copy, "npm", "pack", "--pack-destination", str(folder), *QUIET)
    [file] = folder.glob("*.tgz")
    return file


def install(project: Path, packed: Path) -> None:
    """Install the packed kit into an empty project, without running scripts."""
    (project / "package.json").write_text('{"type": "module"}')
    command(project, "npm", "install", "--ignore-scripts", *QUIET, str(packed))
