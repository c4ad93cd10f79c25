"""The home screen in docs/client-kit.md works with Apollo Client and with urql."""

import subprocess
from pathlib import Path

import pytest

from tests.clients.cached_lists import Stage
from tests.clients.home_screen import HOME_SCREEN
from tests.clients.programs import FOLDER, run
from tests.conftest import need

pytestmark = pytest.mark.slow


def compiled(folder: Path, cache: str) -> Path:
    """Write the screen for a library, and compile it to a program next to the libraries."""
    compiler = FOLDER.parents[1] / "client" / "node_modules" / ".bin" / "tsc"
    need(compiler.exists(), "`npm install` in client")
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "Home.jsx").write_text(HOME_SCREEN.replace("apollo-react", f"{cache}-react"), "utf-8")
    options = ("--allowJs", "--jsx", "react-jsx", "--module", "nodenext", "--target", "es2022", "--outDir", "out")
    command = [str(compiler), *options, "Home.jsx"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return folder / "out" / "Home.js"


@pytest.mark.parametrize("cache", ["apollo", "urql"])
async def test_the_screen_recovers_loads_more_and_stays_live(stage: Stage, tmp_path: Path, cache: str) -> None:
    """Requests and a subscription fail: what is on the screen stays, and the user can try again."""
    screen = compiled(tmp_path, cache)
    await stage.graph.worker().drain()
    seen = await run(
        "node", str(FOLDER / "kit" / "home-screen.mjs"), f"{stage.api.url}/graphql", stage.token, cache, str(screen)
    )
    assert seen["loading"] in ("", "Loading …")
    assert seen["alert"].endswith("offline Try again")
    texts = [text.removeprefix("repost of ") for text in await stage.expected()]
    assert texts[0] == "live"
    assert [each.split(": ", 1)[1] for each in seen["first"]] == texts[1:21]
    assert "refused" in seen["refused"]
    assert seen["failed"] == 40
    assert not seen["hasMore"]
    assert seen["live"].endswith(": live")
