"""What the commands import, and how."""

import subprocess
import sys
from pathlib import Path

from tests.server.cli.test_commands import CLEAN

HEAVY = {
    "alembic",
    "argon2",
    "graph",
    "graphql",
    "pydantic",
    "redis",
    "sqlalchemy",
    "starlette",
    "strawberry",
    "uvicorn",
}
RUN = """
import atexit, gc, sys
from server.cli.main import main

def look():
    full = gc.get_stats()[2]["collections"]
    print(before, full, gc.get_freeze_count() > 50 * len(gc.get_objects()))

before = gc.get_stats()[2]["collections"]
atexit.register(look)
main()
"""


def imported(program: str, *arguments: str, **environment: str) -> list[str]:
    """Return the lines that a program prints about its imports."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, env=CLEAN | environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    ).stdout.splitlines()


def test_help_imports_neither_the_graph_nor_a_framework() -> None:
    """`fanline --help` is fast because each command imports its dependencies when it runs."""
    code = "import sys; import server.cli.main; print(*sorted({name.split('.')[0] for name in sys.modules}), sep='\\n')"

    modules = imported(code)

    assert "server" in modules
    assert HEAVY.isdisjoint(modules)


def test_commands_hardly_collect_garbage(tmp_path: Path) -> None:
    """Of what a command imports nothing is garbage: the collector looks through all of it neither once nor at exit."""
    [counts] = imported(RUN, "worker", "--once", FANLINE_DATA_DIR=str(tmp_path / "nowhere"))

    before, after, frozen = counts.split()
    assert (before, frozen) == (after, "True")
