"""`fanline suspend`, `unsuspend`, `remove` and `reports`, each in a separate process."""

import json
from pathlib import Path

from graph.model import ReportReason
from graph.visibility.views import SYSTEM
from resolvers import ids
from tests.server.cli.test_commands import fanline
from tests.support.graph_worlds import people, posts
from tests.support.graphs import environment_of, open_graph


async def test_operators_suspend_users_and_remove_posts(store_url: str, tmp_path: Path) -> None:
    """Unknown logins and posts are errors."""
    graph = await open_graph(store_url)
    try:
        alice, bob = await people(graph, "alice", "bob")
        [first, second] = await posts(graph, bob, "buy this", "and this")
        await graph.moderation.report_post(graph.visibility.of(alice), alice, first, ReportReason.SPAM, "again")
        await graph.moderation.report_user(graph.visibility.of(alice), alice, bob, ReportReason.OTHER)
        environment = environment_of(store_url, tmp_path)

        listed = fanline("reports", **environment)
        lines = [json.loads(line) for line in listed.stdout.splitlines()]
        suspended = [fanline("suspend", "Bob", **environment) for _ in range(2)]
        assert await graph.visibility.of(alice).hidden([bob]) == {bob}
        lifted = fanline("unsuspend", "bob", **environment)
        assert not await graph.visibility.of(alice).hidden([bob])
        removed = [fanline("remove", post, **environment) for post in (lines[0]["post"], str(first), str(second))]
        assert await graph.posts.get_many(SYSTEM, [first, second]) == [None, None]
        closed = fanline("reports", "close", str(lines[0]["report"]), "7", **environment)
        rest = fanline("reports", "list", **environment)
    finally:
        await graph.close()

    assert [line | {"report": 0, "at": ""} for line in lines] == [
        {
            "report": 0,
            "at": "",
            "by": "alice",
            "reason": "SPAM",
            "comment": "again",
            "user": "bob",
            "post": ids.encode(ids.Kind.POST, first),
            "text": "buy this",
        },
        {"report": 0, "at": "", "by": "alice", "reason": "OTHER", "comment": "", "user": "bob"},
    ]
    assert [done.stderr for done in suspended] == ["Bob is now suspended.\n", "Bob was already suspended.\n"]
    assert lifted.stderr == "bob is no longer suspended.\n"
    assert [("is removed" in done.stderr, "already" in done.stderr) for done in removed] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    assert (closed.returncode, "There is no report 7." in closed.stderr) == (1, True)
    assert f"Report {lines[0]['report']} has been closed" in closed.stderr
    assert [json.loads(line) for line in rest.stdout.splitlines()] == [lines[1]]
    for refused, code in (
        (fanline("suspend", "nobody", **environment), 1),
        (fanline("remove", "7", **environment), 1),
        (fanline("remove", "x", **environment), 2),
        (fanline("reports", "close", **environment), 2),
        (fanline("reports", "open", **environment), 2),
    ):
        assert (refused.returncode, refused.stdout) == (code, "")
