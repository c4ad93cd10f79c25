"""The applications in docs/client-kit.md work with Apollo Client, urql and Relay, and with React 18 and 19."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.cached_lists import Stage
from tests.clients.programs import FOLDER, relay_artifacts, run
from tests.conftest import need

pytestmark = pytest.mark.slow

PACKAGES = FOLDER / "node_modules"
KIT = FOLDER.parents[1] / "client"
APP = FOLDER / "kit" / "app"
OPTIONS = {
    "strict": True,
    "skipLibCheck": True,
    "jsx": "react-jsx",
    "target": "es2022",
    "module": "esnext",
    "moduleResolution": "bundler",
    "preserveSymlinks": True,
    "resolveJsonModule": True,
    "rootDir": "src",
    "outDir": "out",
}


def installed(project: Path, react: int) -> None:
    """Let a project find the libraries, a version of React, and the kit without what it has for its development."""
    modules = project / "node_modules"
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
    (project / "kit").symlink_to(FOLDER / "kit")


def sources(project: Path, library: str, url: str, token: str) -> Path:
    """Write an application of the page for a server and a token. Return its main file."""
    folder = project / "src"
    if library == "relay":
        shutil.copytree(APP / "relay", folder)
        relay_artifacts(project, "typescript")
    else:
        folder.mkdir()
        shutil.copy(APP / f"{library}.tsx", folder / "main.tsx")
        home = (APP / "Home.tsx").read_text("utf-8")
        (folder / "Home.tsx").write_text(home.replace("apollo-react", f"{library}-react"), "utf-8")
    if library == "urql":
        shutil.copy(APP / "schema.mjs", project)
        schema = str(FOLDER.parents[1] / "schema.graphql")
        subprocess.run(["node", "--preserve-symlinks-main", "schema.mjs", schema], cwd=project, check=True)
    socket = (APP / "socket.ts").read_text("utf-8")
    socket = socket.replace("http://localhost:8000/graphql", url).replace("Bearer <token>", f"Bearer {token}")
    (folder / "socket.ts").write_text(socket, "utf-8")
    return folder / "main.tsx"


def compiled(project: Path) -> Path:
    """Check the types of an application, and compile it to a program for Node. Return its main file."""
    compiler = KIT / "node_modules" / ".bin" / "tsc"
    need(compiler.exists(), "`npm install` in client")
    (project / "package.json").write_text('{"type": "module"}')
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS, "include": ["src"]}))
    for file in (project / "src").rglob("*.ts*"):
        file.write_text(for_node(file.read_text("utf-8")), "utf-8")
    done = subprocess.run([str(compiler)], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return project / "out" / "main.js"


def for_node(program: str) -> str:
    """Return a program with full names of files, and with what relay-compiler has made of its documents."""
    document = r"graphql`\s*\w+ (\w+)[^`]*`"
    names = re.findall(document, program)
    imports = (f'import {name}Document from "./__generated__/{name}.graphql";\n' for name in names)
    program = "".join(imports) + re.sub(document, r"\1Document", program)
    program = re.sub(r'from "(\./[^"]*)(?<!\.json)"', r'from "\1.js"', program)
    return re.sub(r'from "(\./[^"]*\.json)"', r'from "\1" with { type: "json" }', program)


@pytest.mark.parametrize(("library", "react"), [("apollo", 18), ("apollo", 19), ("urql", 18), ("relay", 18)])
async def test_the_screen_recovers_loads_more_and_stays_live(
    stage: Stage, tmp_path: Path, library: str, react: int
) -> None:
    """Requests and a subscription fail: what is on the screen stays, and the user can try again."""
    installed(tmp_path, react)
    sources(tmp_path, library, f"{stage.api.url}/graphql", stage.token)
    main = compiled(tmp_path)
    await stage.graph.worker().drain()
    node = ("node", "--preserve-symlinks", "--preserve-symlinks-main")  # all packages find those of the project
    seen = await run(*node, str(tmp_path / "kit" / "home-screen.mjs"), str(main))
    assert seen["version"].startswith(f"{react}.")
    assert seen["loading"] in ("Loading …", seen["alert"])  # the request can fail before it is drawn
    assert seen["alert"].endswith("offline Try again")
    texts = [text.removeprefix("repost of ") for text in await stage.expected()]
    assert texts[0] == "live"
    assert [each.split(": ", 1)[1] for each in seen["first"]] == texts[1:21]
    assert "refused" in seen["refused"]
    assert seen["failed"] == 40
    assert not seen["hasMore"]
    assert seen["live"].endswith(": live")
