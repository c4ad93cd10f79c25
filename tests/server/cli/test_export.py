"""`fanline export` in a separate process."""

import json
from pathlib import Path

from tests.server.cli.test_commands import fanline
from tests.support.graph_worlds import people, posts
from tests.support.graphs import environment_of, open_graph


async def test_a_user_is_exported_as_lines_of_json(store_url: str, tmp_path: Path) -> None:
    """An unknown login is an error, and nothing is printed."""
    graph = await open_graph(store_url)
    try:
        alice, bob = await people(graph, "alice", "bob")
        await posts(graph, alice, "hello\nworld")
        await posts(graph, bob, "not hers")
    finally:
        await graph.close()
    environment = environment_of(store_url, tmp_path)

    done = fanline("export", "Alice", **environment)

    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert [line["kind"] for line in lines] == ["Profile", "UserCreated", "PostPublished"]
    assert (lines[0]["login"], lines[2]["text"]) == ("alice", "hello\nworld")
    unknown = fanline("export", "nobody", **environment)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "nobody" in unknown.stderr
