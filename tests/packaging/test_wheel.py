"""The wheel is complete."""

import zipfile
from pathlib import Path

import pytest

from tests.packaging.project import PACKAGES, ROOT, uv

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LEFT_OUT = ("__pycache__", "node_modules")
OF_THE_EXECUTOR = {
    f"executor/{name}" for name in ("LICENSE", "README.md", "pyproject.toml")
}  # a distribution of its own


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Build a source distribution and, from it, the wheel."""
    uv("build", "--quiet", "--out-dir", str(tmp_path), str(ROOT), cwd=tmp_path)
    [built] = tmp_path.glob("*.whl")
    return built


def own_files() -> set[str]:
    """Return the files of the packages in the checkout."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and not set(path.parts) & set(LEFT_OUT)
    }


def test_the_wheel_has_every_file_of_the_packages_and_the_examples(wheel: Path) -> None:
    """These include Lua scripts, migrations, the playground's page and py.typed, but no tests or documents."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    examples = {f"server/playground/examples/{path.name}" for path in (ROOT / "examples").glob("*.graphql")}
    assert names == (own_files() | examples) - OF_THE_EXECUTOR
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
