"""The pages are correct: settings, commands, links, paths and decision records."""

import re
from pathlib import Path

import pytest
import typer.main
from pydantic_core import PydanticUndefined
from typer.core import TyperGroup

from scripts.docs.__main__ import PARTS, outdated
from server.cli.main import cli
from server.settings import PREFIX, Settings
from tests.docs.blocks import PAGES as WITH_BLOCKS
from tests.docs.blocks import ROOT, blocks_of

TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text("utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text("utf-8")
COMMANDS = (ROOT / "docs" / "cli.md").read_text("utf-8")


def test_the_generated_parts_are_current() -> None:
    """Settings, commands, errors, limits and the API reference: `python -m scripts.docs` would change nothing."""
    assert [page.name for page in outdated()] == []


def test_every_generated_part_is_on_a_page() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    assert {f"<!-- generated: {name} -->" for name in PARTS} <= set(re.findall("<!-- generated: .+ -->", text))


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    """The page shows the default in a clean environment, or words where it depends on other settings."""
    [row] = re.findall(rf"^\| <a id=.+</a>`{PREFIX}{name.upper()}` \| (.+?) \| .+ \|$", CONFIGURATION, re.M)
    value = re.fullmatch(r"`(.+)`", row)
    default = Settings.model_fields[name].default
    assert value is not None or default in (None, (), PydanticUndefined)
    if value:
        loaded = Settings.load({PREFIX + name.upper(): value[1]})
        assert getattr(loaded, name) == default


def commands() -> dict[str, set[str]]:
    """Return the commands of the command line with their options."""
    group = typer.main.get_command(cli)
    assert isinstance(group, TyperGroup)
    return {
        name: {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
        for name, command in group.commands.items()
    }


def mentions() -> list[tuple[str, str, str]]:
    """Return the mentions of commands in the pages: page, command, and the rest of the line or code span."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        spans = re.findall(r"`([^`\n]+)`", text) + [
            line.partition("#")[0] for block in blocks_of(page) for line in block.text.splitlines()
        ]
        for span in spans:
            for command, rest in re.findall(r"(?:^|run |exec api )fanline ([a-z][a-z-]*)\b(.*)", span):
                found.append((page.name, command, rest))
    return found


def test_every_command_that_is_mentioned_exists_with_its_options() -> None:
    known = commands()
    assert len(mentions()) > 10
    for page, command, rest in mentions():
        assert command in known, f"{page}: fanline {command}"
        assert set(re.findall(r"--[a-z-]+", rest)) <= known[command], f"{page}: fanline {command}{rest}"


def test_every_command_is_documented() -> None:
    """Each command has a section in cli.md with all its options."""
    sections = dict(re.findall(r"^## fanline ([\w-]+)\n(.*?)(?=^## )", COMMANDS, re.M | re.S))
    assert set(sections) == set(commands())
    for command, options in commands().items():
        assert options <= set(re.findall(r"--[a-z-]+", sections[command])), command


def test_every_example_is_listed() -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text("utf-8")
    listed = set(re.findall(r"\]\(\.\./examples/(.+?\.graphql)\)", page))
    assert listed == {path.name for path in (ROOT / "examples").glob("*.graphql")}


def test_the_two_commands_are_the_ones_promised() -> None:
    assert "python3 -m pip install -q uv && python3 -m uv run fanline demo " in README
    assert "python3 -m pip install -q uv && python3 -m uv run pytest " in README
    assert "python3 -m pip install -q uv && python3 -m uv run pytest " in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("page", sorted({*PAGES, *WITH_BLOCKS}), ids=lambda page: page.relative_to(ROOT).as_posix())
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
            anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading in anchors.union(re.findall('<a id="(.+?)">', there.read_text("utf-8"))), target


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
    """Each term has one row."""
    terms = [term.lower() for term in re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY, re.M)]
    assert len(terms) > 50
    assert terms == sorted(set(terms))


RECORDS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
RECORD = r"""# (\d{4}): (.+)

Status: ((?:Proposed|Accepted|Superseded by \[ADR )[^#]*)

Date: (\d{4}-\d\d-\d\d)

## Context
"""


def test_every_decision_record_has_a_number_of_its_own() -> None:
    assert len({record.name[:4] for record in RECORDS}) == len(RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name[:4])
def test_a_decision_record_has_a_status_a_date_and_three_sections(record: Path) -> None:
    """The index has a row with its number, title, file name and date."""
    text = record.read_text("utf-8")
    head = re.match(RECORD, text)
    assert head, record.name
    number, title, _, date = head.groups()
    assert number == record.name[:4]
    assert re.findall("^## (.+)$", text, re.M) == ["Context", "Decision", "Consequences"]
    index = (record.parent / "README.md").read_text("utf-8")
    assert re.search(rf"^\| {number} \| \[{re.escape(title)}\]\({record.name}\) \| .+ \| {date} \|$", index, re.M)
