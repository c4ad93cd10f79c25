"""The home screens in docs/client-kit.md work with Apollo Client, urql and Relay, and with React 18 and 19."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.clients.cached_lists import Stage
from tests.clients.home_screen import HOME_SCREEN, RELAY_HOME_SCREEN
from tests.clients.programs import FOLDER, relay_artifacts, run
from tests.conftest import need

pytestmark = pytest.mark.slow


PACKAGES = FOLDER / "node_modules"
KIT = FOLDER.parents[1] / "client"


def compiled(folder: Path, cache: str) -> Path:
    """Write the screen for a library, and compile it to a program in a project with `node_modules`."""
    compiler = KIT / "node_modules" / ".bin" / "tsc"
    need(compiler.exists(), "`npm install` in client")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "src").mkdir()
    screen = folder / "src" / "Home.jsx"
    if cache == "relay":
        screen.write_text(RELAY_HOME_SCREEN, "utf-8")
        relay_artifacts(folder)
        screen.write_text(with_artifacts(RELAY_HOME_SCREEN), "utf-8")
    else:
        screen.write_text(HOME_SCREEN.replace("apollo-react", f"{cache}-react"), "utf-8")
    options = ("--allowJs", "--skipLibCheck", "--jsx", "react-jsx", "--module", "nodenext", "--target", "es2022")
    command = [str(compiler), *options, "--outDir", "out", str(screen)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return folder / "out" / "Home.js"


def with_artifacts(program: str) -> str:
    """Return a program with what relay-compiler has made of its documents in their place, like Relay's Babel plugin."""
    document = r"graphql`\s*\w+ (\w+)[^`]*`"
    imports = (f'import {name} from "./__generated__/{name}.graphql.js";\n' for name in re.findall(document, program))
    return "".join(imports) + re.sub(document, r"\1", program)


def installed(folder: Path, react: int) -> None:
    """Let a project find the libraries, a version of React, and the kit without what it has for its development."""
    modules = folder / "node_modules"
    modules.mkdir()
    for library in PACKAGES.iterdir():
        if library.name not in ("react", "react-dom", "@fanline", ".bin"):
            (modules / library.name).symlink_to(library)
    for name in ("react", "react-dom"):
        old = PACKAGES / f"{name}-{react}"
        (modules / name).symlink_to(old if old.exists() else PACKAGES / name)
    kit = modules / "@fanline" / "client"
    kit.mkdir(parents=True)
    for name in ("package.json", "dist"):
        (kit / name).symlink_to(KIT / name)
    (folder / "kit").symlink_to(FOLDER / "kit")


@pytest.mark.parametrize(("cache", "react"), [("apollo", 18), ("apollo", 19), ("urql", 18), ("relay", 18)])
async def test_the_screen_recovers_loads_more_and_stays_live(
    stage: Stage, tmp_path: Path, cache: str, react: int
) -> None:
    """Requests and a subscription fail: what is on the screen stays, and the user can try again."""
    installed(tmp_path, react)
    screen = compiled(tmp_path, cache)
    await stage.graph.worker().drain()
    node = ("node", "--preserve-symlinks", "--preserve-symlinks-main")  # all packages find those of the project
    program = (str(tmp_path / "kit" / "home-screen.mjs"), f"{stage.api.url}/graphql", stage.token, cache, str(screen))
    seen = await run(*node, *program)
    assert seen["version"].startswith(f"{react}.")
    assert seen["loading"] in ("", "Loading …")
    assert seen["alert"].endswith("offline Try again")
    texts = [text.removeprefix("repost of ") for text in await stage.expected()]
    assert texts[0] == "live"
    assert [each.split(": ", 1)[1] for each in seen["first"]] == texts[1:21]
    assert "refused" in seen["refused"]
    assert seen["failed"] == 40
    assert not seen["hasMore"]
    assert seen["live"].endswith(": live")
