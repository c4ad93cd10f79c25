"""Architecture rules: small files and functions, clear names, and imports in one direction."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from graph.store.commands import PRELUDE

ROOT = Path(__file__).parents[1]
PACKAGES = ("executor", "graph", "resolvers", "schema", "server")
SOURCES = (".py", ".lua", ".js", ".mjs", ".css", ".html", ".graphql")
GENERATED = ("schema.graphql",)
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "service", "services"}
MAX_FILE = 400
MAX_FUNCTION = 40


def files(*tops: str) -> Iterator[Path]:
    """Yield the project's own files below some folders, or below all."""
    for top in tops or (".",):
        for folder, names, found in os.walk(ROOT / top):
            names[:] = [
                name
                for name in names
                if not name.startswith(".") and name not in ("node_modules", "__pycache__", "dist")
            ]
            yield from (Path(folder) / name for name in found)


def shown(path: Path) -> str:
    """Return the path of a file relative to the project."""
    return path.relative_to(ROOT).as_posix()


def test_every_top_level_entry_has_a_reason() -> None:
    """It is listed in the table of ADR 0033. Files that Git ignores are exempt."""
    [record] = (ROOT / "docs" / "adr").glob("0033-*.md")
    allowed = re.findall(r"^\| `([^`]+)` \|", record.read_text("utf-8"), re.M)
    ignored = [".git", *(line.rstrip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines())]
    present = {path.name for path in ROOT.iterdir() if not any(fnmatch(path.name, each) for each in ignored)}
    assert present == set(allowed)


def test_no_file_is_too_long() -> None:
    """Files should have about 250 lines and must not exceed 400. Generated files are exempt."""
    lengths = {
        shown(path): len(path.read_text("utf-8").splitlines())
        for path in files()
        if path.suffix in SOURCES and path.name not in GENERATED
    }
    assert {name: length for name, length in lengths.items() if length > MAX_FILE} == {}
    assert len(lengths) > 50


def test_no_function_is_too_long() -> None:
    """Functions should have about 10 lines and must not exceed 40, without the docstring."""
    long = {}
    for path in files(*PACKAGES):
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    body = node.body[1:] if ast.get_docstring(node) else node.body
                    length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                    if length > MAX_FUNCTION:
                        long[f"{shown(path)}: {node.name}"] = length
    assert long == {}


def test_no_name_hides_what_is_inside() -> None:
    """A module is named after its subject."""
    assert [shown(path) for path in files() if path.suffix == ".py" and path.stem in VAGUE] == []


def test_every_package_and_test_folder_has_an_init() -> None:
    """This gives each module exactly one import name."""
    folders = {path.parent for path in files(*PACKAGES, "tests") if path.suffix == ".py"}
    assert [shown(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_module_says_what_it_is_for() -> None:
    undocumented = [
        shown(path)
        for path in files(*PACKAGES, "tests", "benchmarks")
        if path.suffix == ".py" and not re.match(r'(#.*\n)*"""[^"\s]', path.read_text("utf-8"))
    ]
    assert undocumented == []


def test_no_installed_distribution_owns_one_of_our_names() -> None:
    """Our top-level names are common words, and the first one on the path would shadow the other (ADR 0001)."""
    owners = packages_distributions()
    foreign = {name: set(owners.get(name, ())) - {"fanline"} for name in (*PACKAGES, "tests")}
    assert {name: owning for name, owning in foreign.items() if owning} == {}


def test_every_script_says_what_its_keys_and_arguments_are() -> None:
    """Lua scripts declare their engine, so that undeclared keys fail everywhere, and document KEYS and ARGV."""
    for path in files("graph/scripts"):
        if path.suffix == ".lua" and path.stem != PRELUDE:
            source = path.read_text("utf-8")
            assert re.match(r"#!lua( flags=(no-writes(,allow-cross-slot-keys)?|allow-oom))?\n-- ", source), shown(path)
            assert "-- KEYS: " in source, shown(path)


def test_keys_are_spelled_in_one_place() -> None:
    """Only `graph/keys.py` contains the names of the store's keys."""
    prefixes = (
        "following:{",
        "followers:{",
        "posts:{",
        "home:{",
        "session:{",
        "login:{",
        "delivery:{",
        "cold:{",
        '"{log}:',
    )
    spelling = [
        shown(path)
        for path in files(*PACKAGES)
        if path.suffix == ".py" and path != ROOT / "graph" / "keys.py"
        for prefix in prefixes
        if f'"{prefix}' in (source := path.read_text("utf-8")) or f"'{prefix}" in source or f'f"{prefix}' in source
    ]
    assert spelling == []


def test_imports_only_go_down() -> None:
    """The contracts of pyproject.toml hold: server, schema, resolvers, then graph or executor; layers within graph."""
    beside = Path(sys.executable).with_name("lint-imports")
    command = str(beside) if beside.is_file() else shutil.which("lint-imports")
    if command is None:
        pytest.skip("import-linter is not installed: uv run --group lint pytest; .ci/run checks it in any case")
    done = subprocess.run([command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
