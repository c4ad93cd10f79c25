"""The content of pyproject.toml, and the `uv` command."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.conftest import need

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
CONSTRAINTS: list[str] = PROJECT["tool"]["uv"]["constraint-dependencies"]


def uv(*arguments: str, cwd: Path, **variables: str) -> None:
    """Run uv and check that it succeeds. `uv run` sets the variable UV to its own path."""
    command = os.environ.get("UV") or shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    need(bool(command), "uv")
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"} | variables
    done = subprocess.run(
        [str(command), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
