"""`fanline dead-letters`: lists, retries and drops events that could not be projected."""

from typing import Any

import pytest
import typer
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.numbers import entry_id
from server.cli.dead_letters import drop, handle, retry, show
from tests.graph.conftest import raw
from tests.graph.worker.test_dead_letters import failed_posts
from tests.graph.worker.unprojected import SOON
from tests.support.graph_worlds import home, people

__all__ = ["raw"]


async def test_the_command_lists_retries_and_drops(
    graph: Graph, raw: Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    [alice] = await people(graph, "alice")
    first, second, third = await failed_posts(graph, raw, alice, "1", "2", "3")

    assert await show(graph, None)
    listed = capsys.readouterr().out
    assert await drop(graph, [entry_id(second)])
    dropped = capsys.readouterr().err
    assert await retry(graph, None)
    retried = capsys.readouterr().err

    assert [line.split("  ")[0] for line in listed.splitlines()] == [
        f"entry={entry_id(number)}" for number in (first, second, third)
    ]
    assert "1 event or task dropped." in dropped
    assert "2 events or tasks processed." in retried
    assert await home(graph, alice) == [third, first]


async def test_damaged_bytes_are_shown_escaped(graph: Graph, raw: Redis, capsys: pytest.CaptureFixture[str]) -> None:
    fields: dict[Any, Any] = {"kind": b"Follow\xffed", "body": b"\x95"}
    await raw.xadd(keys.LOG, fields)
    await graph.worker(SOON).drain()

    assert await show(graph, None)

    assert "\\udc95" in capsys.readouterr().out.encode().decode()


async def test_the_command_lists_chosen_entries(graph: Graph, raw: Redis, capsys: pytest.CaptureFixture[str]) -> None:
    [alice] = await people(graph, "alice")
    _, second, _ = await failed_posts(graph, raw, alice, "1", "2", "3")

    assert await show(graph, [entry_id(second)])

    listed, said = capsys.readouterr()
    assert [line.split("  ")[0] for line in listed.splitlines()] == [f"entry={entry_id(second)}"]
    assert "1 event or task could not be processed." in said


async def test_a_dead_letter_that_fails_again_is_reported(
    graph: Graph, raw: Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    [alice] = await people(graph, "alice")
    [number] = await failed_posts(graph, raw, alice, "1")
    await raw.set(f"posts:{{{alice}}}", "not a sorted set")

    assert not await retry(graph, [entry_id(number)])

    said = capsys.readouterr().err
    assert f"{entry_id(number)}: ResponseError: WRONGTYPE" in said
    assert "0 events or tasks processed, 1 failed again." in said


@pytest.mark.parametrize("action", [retry, drop])
async def test_an_entry_that_is_no_dead_letter_is_reported(
    graph: Graph, raw: Redis, capsys: pytest.CaptureFixture[str], action: Any
) -> None:
    """The other entries are still processed."""
    [alice] = await people(graph, "alice")
    [number] = await failed_posts(graph, raw, alice, "1")

    assert not await action(graph, ["1-1", entry_id(number)])

    said = " ".join(capsys.readouterr().err.split())
    assert "1 event or task" in said
    assert "There is no dead letter for the entry 1-1." in said
    assert entry_id(number) not in said


@pytest.mark.parametrize(
    ("action", "entries", "everything", "message"),
    [
        ("drop", [], False, "Name the entries to drop, or use --all."),
        ("retry", ["1-1"], True, "Name the entries to retry, or use --all."),
        ("bury", [], True, "'bury' is not an action; the actions are: list, retry, drop."),
    ],
)
def test_unclear_commands_are_refused(action: str, entries: list[str], everything: bool, message: str) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        handle(action, entries, everything)
