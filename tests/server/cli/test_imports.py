"""What the commands import, and how."""

import asyncio
import subprocess
import sys
from pathlib import Path

from graph import Graph
from tests.server.cli.test_commands import CLEAN
from tests.support.graphs import environment_of

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
UNUSED = {"alembic", "graphql", "prometheus_client", "rich", "starlette", "strawberry", "uvicorn", "valkey"}
"""What commands about users and posts do without."""
MODULES = """
import sys
from server.cli.main import main

for command in sys.argv[1:]:
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
print(*sys.modules, sep="\\n")
"""
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
    """Nothing that a command imports is garbage, so the collector never scans all of it, not even at exit."""
    [counts] = imported(RUN, "worker", "--once", FANLINE_DATA_DIR=str(tmp_path / "nowhere"))

    before, after, frozen = counts.split()
    assert (before, frozen) == (after, "True")


async def test_commands_of_operators_import_neither_graphql_nor_a_server(graph: Graph, tmp_path: Path) -> None:
    """The schema of the archive is up to date, so nothing is imported to upgrade it."""
    await graph.users.sign_up("alice", "correct horse")
    await graph.archive.migrate()
    environment = environment_of(graph.store.url, tmp_path)

    commands = ("suspend alice", "reports", "dead-letters list", "export alice", "worker --once")
    modules = set(await asyncio.to_thread(imported, MODULES, *commands, **environment))
    assert "graph" in modules
    assert UNUSED.isdisjoint(modules)
