"""The applications in docs/client-kit.md work with the packed kit, with each library, and with React 18 and 19."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.clients.cached_lists import Stage
from tests.clients.packed_kit import KIT, command, install
from tests.clients.programs import FOLDER, relay_artifacts, run
from tests.conftest import need

pytestmark = pytest.mark.slow

PACKAGES = FOLDER / "node_modules"
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


def install_packages(project: Path, packed: Path, react: int) -> None:
    """Install the packed kit into a project, next to the libraries and a version of React."""
    install(project, packed)
    modules = project / "node_modules"
    for library in PACKAGES.iterdir():
        if library.name not in ("react", "react-dom", "@fanline") and not library.name.startswith("."):
            (modules / library.name).symlink_to(library)
    for name in ("react", "react-dom"):
        old = PACKAGES / f"{name}-{react}"
        (modules / name).symlink_to(old if old.exists() else PACKAGES / name)
    (project / "kit").symlink_to(FOLDER / "kit")


def write_application(project: Path, library: str, url: str, token: str) -> None:
    """Write an application from the page, for a server and a token."""
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
        command(project, "node", "schema.mjs", schema)
    socket = (APP / "socket.ts").read_text("utf-8")
    socket = socket.replace("http://localhost:8000/graphql", url).replace("Bearer <token>", f"Bearer {token}")
    (folder / "socket.ts").write_text(socket, "utf-8")


def compiled(project: Path) -> Path:
    """Check the types of an application, and compile it to a program for Node. Return its main file."""
    compiler = KIT / "node_modules" / ".bin" / "tsc"
    need(compiler.exists(), "`npm install` in client")
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS, "include": ["src"]}))
    for file in (project / "src").rglob("*.ts*"):
        file.write_text(for_node(file.read_text("utf-8")), "utf-8")
    command(project, str(compiler))
    return project / "out" / "main.js"


def for_node(program: str) -> str:
    """Return a program that imports files by their full names, and documents that relay-compiler has compiled."""
    document = r"graphql`\s*\w+ (\w+)[^`]*`"
    names = re.findall(document, program)
    imports = (f'import {name}Document from "./__generated__/{name}.graphql";\n' for name in names)
    program = "".join(imports) + re.sub(document, r"\1Document", program)
    program = re.sub(r'from "(\./[^"]*)(?<!\.json)"', r'from "\1.js"', program)
    return re.sub(r'from "(\./[^"]*\.json)"', r'from "\1" with { type: "json" }', program)


@pytest.mark.parametrize(
    ("library", "react"),
    [("apollo", 19), ("urql", 18), ("relay", 18), pytest.param("apollo", 18, marks=pytest.mark.long)],
)
async def test_the_screen_recovers_loads_more_and_stays_live(
    stage: Stage, packed: Path, tmp_path: Path, library: str, react: int
) -> None:
    """Requests and a subscription fail: what is on the screen stays, and the user can try again."""
    install_packages(tmp_path, packed, react)
    write_application(tmp_path, library, f"{stage.api.url}/graphql", stage.token)
    main = compiled(tmp_path)
    await stage.graph.worker().drain()
    node = ("node", "--preserve-symlinks", "--preserve-symlinks-main")  # all packages find those of the project
    seen = await run(*node, str(tmp_path / "kit" / "home-screen.mjs"), str(main))
    assert seen["version"].startswith(f"{react}.")
    assert seen["loading"] == "Loading …"
    assert seen["alert"].endswith("offline Try again")
    texts = [text.removeprefix("repost of ") for text in await stage.expected()]
    assert texts[0] == "live"
    assert [each.split(": ", 1)[1] for each in seen["first"]] == texts[1:21]
    assert "refused" in seen["refused"]
    assert seen["failed"] == 40
    assert not seen["hasMore"]
    assert seen["live"].endswith(": live")
