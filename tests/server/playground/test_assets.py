"""`fanline playground-assets` installs exactly the pinned files, from npm or, without npm, from the CDN."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from server.playground import assets
from server.playground.assets import ASSETS, AssetsUnavailable, all_installed, install
from server.playground.page import Playground
from tests.conftest import need


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install assets in an empty folder, and let no others be found."""
    monkeypatch.setattr(assets, "FOLDER", tmp_path / "installed")
    monkeypatch.setattr(assets, "HERE", tmp_path)
    assert not all_installed()
    return tmp_path / "installed"


@pytest.fixture
def cdn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve a folder as the CDN, on a machine without npm."""
    root = folder.parent / "cdn"
    root.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    thread = Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    monkeypatch.setattr(assets, "CDN", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("PATH", "")
    yield root
    server.shutdown()
    thread.join()
    server.server_close()


def copy_to(root: Path) -> None:
    """Copy the pinned files, as the CDN has them."""
    for asset in ASSETS:
        source = Path(assets.__file__).parent / "node_modules" / asset.partition("@")[0] / asset.partition("/")[2]
        need(source.is_file(), "`npm install` in server/playground")
        (root / asset).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / asset)


def test_without_npm_the_assets_come_from_the_cdn(folder: Path, cdn: Path) -> None:
    """Afterwards, the page loads nothing from another machine."""
    copy_to(cdn)
    install()
    assert all_installed()
    page = Playground().page()
    assert "http" not in bytes(page.body).decode() + page.headers["content-security-policy"]


def test_a_file_with_other_content_is_refused(folder: Path, cdn: Path) -> None:
    copy_to(cdn)
    with (cdn / next(iter(ASSETS))).open("ab") as file:
        file.write(b" ")
    with pytest.raises(AssetsUnavailable, match="is not the pinned one"):
        install()
    assert not folder.exists()


def test_a_missing_file_is_an_explained_failure(folder: Path, cdn: Path) -> None:
    with pytest.raises(AssetsUnavailable, match="cannot be downloaded from http"):
        install()


def test_a_failure_of_npm_is_explained(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error network is down' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(AssetsUnavailable, match="npm error network is down"):
        install()


@pytest.mark.slow
def test_with_npm_the_assets_come_from_its_registry(folder: Path) -> None:
    need(bool(shutil.which("npm")), "npm, from nodejs.org or your distribution")
    install()
    assert all_installed()
