"""The programs and configurations in the documentation run: the tests of clients run files that contain them."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from graph import Graph
from tests.clients.programs import FOLDER, chromium_exists, node, run
from tests.conftest import need
from tests.docs.blocks import BLOCKS, ROOT, Block, claim
from tests.server.conftest import Api, api, settings

__all__ = ["api", "chromium_exists", "node", "settings"]

[COOKIE] = claim(__name__, "js", page="docs/authentication.md")
[LIVE] = claim(__name__, "ts", page="docs/client-kit.md")
PAGES = ("docs/client-kit.md", "docs/clients.md", "docs/cookbook.md", "docs/persisted-documents.md")
QUOTED = [block for page in PAGES for block in claim(__name__, "js", "py", page=page)]
APPLICATIONS = claim(__name__, "tsx", page="docs/client-kit.md")
CONFIGURATIONS = [
    block for page in ("docs/clients.md", "docs/persisted-documents.md") for block in claim(__name__, "json", page=page)
]
SOURCES = [
    path
    for folder in (FOLDER, FOLDER / "kit", FOLDER / "kit" / "app")
    for path in sorted(folder.iterdir())
    if path.is_file()
]


@pytest.mark.parametrize("block", QUOTED, ids=str)
def test_a_program_is_a_part_of_one_that_is_run(block: Block) -> None:
    """Another file in the folder names the program's file: a test, or a program that imports it."""
    [program] = [path for path in SOURCES if path.suffix in (".mjs", ".py") and block.text in path.read_text("utf-8")]
    assert any(program.stem in path.read_text("utf-8") for path in SOURCES if path != program)


@pytest.mark.parametrize("block", APPLICATIONS, ids=str)
def test_an_application_consists_of_files_that_are_compiled_and_used(block: Block) -> None:
    """tests/clients/test_home_screen.py compiles and uses them."""
    files = [path for path in (FOLDER / "kit" / "app").rglob("*.ts*") if path.read_text("utf-8") == block.text]
    assert len(files) == 1


def test_the_page_shows_all_files_of_the_applications() -> None:
    assert len(APPLICATIONS) == len([*(FOLDER / "kit" / "app").rglob("*.ts*")])
    operations = [block.text for block in BLOCKS if (block.page, block.language) == ("docs/client-kit.md", "graphql")]
    assert operations == [(FOLDER / "kit" / "app" / "home.graphql").read_text("utf-8")]


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=str)
def test_a_configuration_is_a_file_that_is_used(block: Block) -> None:
    [file] = [path for path in SOURCES if path.suffix == ".json" and path.read_text("utf-8") == block.text]
    assert any(file.name in path.read_text("utf-8") for path in SOURCES if path.suffix == ".py")


@pytest.mark.slow
async def test_a_session_in_a_cookie(api: Api, chromium_exists: None, node: str, graph: Graph) -> None:
    """In Chromium: the log-in returns no token, later requests are alice's, and scripts cannot read the cookie."""
    await graph.users.sign_up("alice", "correct horse", "Alice")
    seen = await run(node, "cookie.mjs", api.url, COOKIE.text)
    assert seen["token"] is None
    assert seen["viewer"] == {"user": {"login": "alice"}}
    assert seen["readable"] == ""
    assert seen["afterwards"] is None


TYPES = """import {{ live, type LiveEvent, type LiveOptions }} from "@fanline/client";
declare const options: LiveOptions<LiveEvent>;
const {{ liveCursor, refetch, subscribe, apply, watchPages, onEnd }} = options;
{0}
stop();
"""


@pytest.mark.slow
async def test_the_options_of_live_have_the_right_types(node: str, tmp_path: Path) -> None:
    compiler = ROOT / "client" / "node_modules" / ".bin" / "tsc"
    need(compiler.exists(), "`npm install` in client")
    (tmp_path / "node_modules").symlink_to(FOLDER / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(ROOT / "client" / "tsconfig.json", tmp_path / "base.json")
    options = {"noEmit": True, "rootDir": ".", "types": [], "exactOptionalPropertyTypes": False}
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"extends": "./base.json", "compilerOptions": options, "include": ["page.ts"]})
    )
    (tmp_path / "page.ts").write_text(TYPES.format(LIVE.text))
    process = await asyncio.create_subprocess_exec(compiler, cwd=tmp_path, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert (out.decode(), process.returncode) == ("", 0)
