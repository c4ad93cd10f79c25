"""The client kit as npm publishes it: packed into a file, and installed from that file without scripts."""

import json
import re
import tarfile
from pathlib import Path

import pytest

from tests.clients.packed_kit import KIT, PACKAGES, command, install

pytestmark = pytest.mark.slow


@pytest.fixture
def project(packed: Path, tmp_path: Path) -> Path:
    """Install the file without scripts into an empty project, next to the libraries whose types the kit uses."""
    project = tmp_path / "project"
    project.mkdir()
    install(project, packed)
    for library in PACKAGES.iterdir():
        if not library.name.startswith("."):
            (project / "node_modules" / library.name).symlink_to(library)
    return project


def test_the_package_has_its_programs_and_types_and_needs_no_script(packed: Path) -> None:
    """It contains the compiled files and no other code, and nothing runs when it is installed."""
    with tarfile.open(packed) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
        manifest = json.load(archive.extractfile("package/package.json") or pytest.fail("there is no manifest"))
    modules = {path.stem for path in (KIT / "src").glob("*.ts")}
    compiled = {f"dist/{module}{ending}" for module in modules for ending in (".js", ".d.ts")}
    assert names == compiled | {"package.json", "README.md"}
    assert not {"preinstall", "install", "postinstall", "prepare"} & set(manifest["scripts"])
    assert "dependencies" not in manifest
    assert all(manifest["peerDependenciesMeta"][name]["optional"] for name in manifest["peerDependencies"])
    exported = {path.removeprefix("./") for entry in manifest["exports"].values() for path in entry.values()}
    assert exported <= compiled


def test_a_project_imports_the_installed_package(project: Path) -> None:
    """Node finds all entry points, and their types are compatible with those of the libraries."""
    installed = project / "node_modules" / "@fanline" / "client"
    assert not installed.is_symlink()
    entries = [f"@fanline/client{name[1:]}" for name in json.loads((installed / "package.json").read_text())["exports"]]
    program = f"for (const name of {json.dumps(entries)}) console.log(Object.keys(await import(name)).length > 0)"
    assert command(project, "node", "--input-type=module", "-e", program).split() == ["true"] * len(entries)

    types = (KIT / "test" / "types.ts").read_text("utf-8")
    types = types.replace("../dist/index.js", "@fanline/client")
    types = re.sub(r"\.\./dist/([\w-]+)\.js", r"@fanline/client/\1", types)
    assert set(entries) == set(re.findall(r'"(@fanline/client.*?)"', types))
    (project / "types.ts").write_text(types, "utf-8")
    options = json.loads((KIT / "tsconfig.json").read_text())["compilerOptions"] | {"noEmit": True, "rootDir": "."}
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": ["types.ts"]}))
    command(project, "node", str(PACKAGES / "typescript" / "bin" / "tsc"))
