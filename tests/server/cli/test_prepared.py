"""Commands in forked processes do what `fanline` does in a new process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.cli.test_commands import CLEAN
from tests.support.prepared import preparation_for


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("seed", "--users", "5", "--posts", "5", "--following", "1"), id="a success"),
        pytest.param(("serve", "--workers", "0"), id="a wrong usage"),
    ],
)
def test_a_forked_command_is_like_a_new_process(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output, exit code and files are the same. The data folder is relative to the folder of the test."""
    environment = CLEAN | {"FANLINE_DATA_DIR": "data", "COLUMNS": "90"}
    results = []
    for name in ("forked", "new"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        if name == "forked":
            done = preparation_for(arguments[0]).run(*arguments, environment=environment)
        else:
            command = [str(Path(sys.executable).with_name("fanline")), *arguments]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        files = sorted((str(path.relative_to(".")), oct(path.stat().st_mode)) for path in Path().rglob("*"))
        results.append((done.returncode, done.stdout, done.stderr.replace(os.getcwd(), ""), files))

    assert results[0] == results[1]
