"""The documentation is correct: settings, commands, links and example responses."""

import json
import re
from datetime import timedelta
from enum import Enum
from pathlib import Path

import pytest
import typer.main
from pydantic_core import PydanticUndefined
from typer.core import TyperGroup

from graph import Graph
from resolvers.context import Context, Viewer
from schema import schema
from server.cli.main import cli
from server.settings import PREFIX, Settings
from tests.support.worlds import settle_small_world

ROOT = Path(__file__).parents[1]
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text("utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")


def rows(page: str) -> dict[str, str]:
    """Read the settings table: name → default."""
    return dict(re.findall(rf"^\| `{PREFIX}(\w+)` \| (.+?) \|", page, re.MULTILINE))


def as_written(default: object) -> str | None:
    """Return a default as the page shows it; None if the page describes it in words."""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, Enum):
        return f"`{default.value}`"
    if isinstance(default, timedelta):
        hours = default // timedelta(hours=1)
        if not hours:
            minutes = default // timedelta(minutes=1)
            return f"`{minutes}m`" if minutes else f"`{default // timedelta(seconds=1)}s`"
        return f"`{hours}h`" if hours <= 24 else f"`{default.days}d`"
    return f"`{default}`" if isinstance(default, int | float) else None


def test_every_setting_is_documented() -> None:
    assert set(rows(OPERATIONS)) == {name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_has_the_default_that_is_documented(name: str) -> None:
    field = Settings.model_fields[name]
    default = as_written(field.default) if field.default is not PydanticUndefined else None
    shown = rows(OPERATIONS)[name.upper()]
    assert shown == default if default else "`" not in shown


def commands() -> dict[str, set[str]]:
    """Return the commands of the command line with their options."""
    group = typer.main.get_command(cli)
    assert isinstance(group, TyperGroup)
    return {
        name: {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
        for name, command in group.commands.items()
    }


def mentions() -> list[tuple[str, str, str]]:
    """Yield the mentions of commands in the pages: page, command, and the rest of the line or code span."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        spans = re.findall(r"`([^`\n]+)`", text) + [
            line.partition("#")[0]
            for block in re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)
            for line in block.splitlines()
        ]
        for span in spans:
            for command, rest in re.findall(r"(?:^|run )fanline ([a-z][a-z-]*)\b(.*)", span):
                found.append((page.name, command, rest))
    return found


def test_every_command_that_is_mentioned_exists_with_its_options() -> None:
    known = commands()
    assert len(mentions()) > 10
    for page, command, rest in mentions():
        assert command in known, f"{page}: fanline {command}"
        assert set(re.findall(r"--[a-z-]+", rest)) <= known[command], f"{page}: fanline {command}{rest}"


def test_every_command_is_documented() -> None:
    """With all its options, in the table of operations.md."""
    table = {row.split()[1]: row for row in re.findall(r"^\| `(fanline [^`]+)`", OPERATIONS, re.M)}
    assert set(table) == set(commands())
    for command, options in commands().items():
        assert options <= set(re.findall(r"--[a-z-]+", table[command])), command


def test_the_two_commands_are_the_ones_promised() -> None:
    assert "python3 -m pip install -q uv && python3 -m uv run fanline demo " in README
    assert "python3 -m pip install -q uv && python3 -m uv run pytest " in README
    assert "python3 -m pip install -q uv && python3 -m uv run pytest\n" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_within_the_project_resolve(page: Path) -> None:
    """They lead to existing files, folders and headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", there.read_text("utf-8"), re.M)
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, target


def test_paths_that_are_mentioned_exist() -> None:
    """Code spans that look like a path of the project name an existing file or folder.

    Superseded decision records keep the paths of their time.
    """
    for page in PAGES:
        if re.search(r"^Status: .*superseded", page.read_text("utf-8"), re.I | re.M):
            continue
        for span in re.findall(r"`([\w./-]+/[\w./-]*)`", page.read_text("utf-8")):
            if not span.startswith("/"):
                assert (ROOT / span).exists(), f"{page.name}: {span}"


def test_the_glossary_is_in_alphabetical_order() -> None:
    """With every term in one row."""
    terms = [term.lower() for term in re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY, re.M)]
    assert len(terms) > 50
    assert terms == sorted(set(terms))


RECORDS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
RECORD = r"""# (\d{4}): (.+)

Status: ((?:Accepted|Superseded by \[ADR )[^#]*)

Date: (\d{4}-\d\d-\d\d)

## Context
"""


def test_every_decision_record_has_a_number_of_its_own() -> None:
    assert len({record.name[:4] for record in RECORDS}) == len(RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name[:4])
def test_a_decision_record_has_a_status_a_date_and_three_sections(record: Path) -> None:
    """And a row with its number, title, file name and date in the index."""
    text = record.read_text("utf-8")
    head = re.match(RECORD, text)
    assert head, record.name
    number, title, _, date = head.groups()
    assert number == record.name[:4]
    assert re.findall("^## (.+)$", text, re.M) == ["Context", "Decision", "Consequences"]
    index = (record.parent / "README.md").read_text("utf-8")
    assert re.search(rf"^\| {number} \| \[{re.escape(title)}\]\({record.name}\) \| .+ \| {date} \|$", index, re.M)


async def test_the_readme_shows_what_the_demo_answers(graph: Graph) -> None:
    """Its first query, executed as alice, returns exactly the response shown below it."""
    world = await settle_small_world(graph)
    session = await graph.sessions.start(world.people()["alice"])
    [query] = re.findall(r"```graphql\n(.*?)```", README, re.S)
    [answer] = re.findall(r"```json\n(.*?)```", README, re.S)
    viewer = Viewer(session.user, session.id, session.expires_at)
    result = await schema.execute(query, {}, Context(graph, viewer, lambda session: ""))
    assert {"data": result.data} == json.loads(answer)
