"""A check on the tests: break the code on purpose, in one place at a time, and see that a test falls.

    uv run python -m tests.mutation [--only NAME ...] [--examples N] [--machine] [--jobs N] [--list]

Each mutation of `tests/mutations/*.toml` names a file, a text that stands in it once, and the text that replaces it;
what it `breaks`; and the `tests` that should notice. It is applied to a copy of the project in a temporary folder,
whose packages are the ones imported. Its tests run first, then, if they all pass, the property machine of
`tests/properties` with so many examples (0 for none); with `--machine` it runs alone. Exits with 1 if a mutation
survives both. `tests/mutations/test_runner.py` sees to it, in every run, that all of them still fit the code.

Not among them, because nobody could tell the difference but by the time it takes:

- A deletion that unlists before it buries. Nobody has been told of it yet, whoever repeats it does both, and whatever
  comes in between is checked against either tombstone.
- A post that is listed before it is written. Readers drop what has no record, and the fan-out comes after both.
- A follow number at the edge of two tasks or chunks that both serve: insertions are repeated anyway.
- A slice that looks below its cache's floor, or a page that merges the others from above it: insertion and settling
  leave nothing below the floor, and what comes twice is shown once.
- Of two deletions that race, the later number in the author's tombstones: it is trimmed later, and says no more.
- Numbers compared by `>=` instead of `>`: no two events have the same, and a repeated one changes nothing.
- A refill that asks for more posts than are missing, or for fewer: it goes on until it knows.
- A promotion that begins although the mode has changed: it marks every cache before it finishes, in any case.
- A trim that compares how many posts are hot, but not which: below the new floor they become fewer, never others.

This module is also the pytest plugin of the runs it starts.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import Phase, stateful

ROOT = Path(__file__).parents[2]
PARTS = ("executor", "graph", "resolvers", "schema", "server", "tests", "pyproject.toml", "schema.graphql")
MACHINE = "tests/properties/test_interleavings.py"
EXAMPLES = "FANLINE_MUTATION_EXAMPLES"
EXAMPLES_AT_ONCE = 400
SECONDS = 3600


class DoesNotFit(Exception):
    """The text that a mutation replaces does not stand in its file exactly once."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One place to break: `old` becomes `new` in `file`. With `machine` off, the property machine is not asked."""

    name: str
    file: str
    breaks: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    machine: bool = True

    def apply(self, root: Path) -> None:
        """Break the code below `root`. Raises DoesNotFit."""
        path = root / self.file
        source = path.read_text("utf-8")
        if source.count(self.old) != 1:
            raise DoesNotFit(f"{self.name}: the old text stands {source.count(self.old)} times in {self.file}")
        path.write_text(source.replace(self.old, self.new), "utf-8")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Which test fell first, and why; nothing if none did."""

    mutation: Mutation
    test: str
    reason: str
    seconds: float


def mutations() -> list[Mutation]:
    """Read all mutations."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "tests" / "mutations").glob("*.toml"))]
    entries = [entry for text in texts for entry in tomllib.loads(text)["mutation"]]
    return [Mutation(**entry | {"tests": tuple(entry.get("tests", ()))}) for entry in entries]


@contextmanager
def copied() -> Iterator[Path]:
    """Give a copy of the project in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="fanline-mutation-") as folder:
        root = Path(folder)
        for name in PARTS:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "node_modules", ".*")
                shutil.copytree(ROOT / name, root / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, root / name)
        yield root


def run(root: Path, tests: Sequence[str], examples: int = 0) -> tuple[str, str]:
    """Run tests on a copy until one falls; tell which and why, or nothing.

    Raises RuntimeError if they could not be run at all.
    """
    options = (
        "-x",
        "-q",
        "-rf",
        "--tb=short",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "-p",
        "tests.mutations.runner",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={root}", *tests],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", EXAMPLES: str(examples)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return "", ""
    summary = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - (.*))?$", done.stdout, re.MULTILINE)
    if done.returncode != 1 or summary is None:
        raise RuntimeError(f"The tests could not be run:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    fell = re.search(r"^(in example \d+)$", done.stdout, re.MULTILINE)
    test = f"the machine {fell[1]}" if fell else summary[1].rpartition("/")[2]
    return test, summary[2] or ""


def check(mutation: Mutation, examples: int, *, machine: bool) -> Outcome:
    """Break a copy, and see which test falls."""
    started = time.monotonic()
    with copied() as root:
        mutation.apply(root)
        test, reason = run(root, mutation.tests) if mutation.tests and not machine else ("", "")
        if not test and examples and (mutation.machine or machine):
            test, reason = run(root, [MACHINE], examples)
    return Outcome(mutation, test, reason, time.monotonic() - started)


def main(words: Sequence[str]) -> int:
    """Check the mutations that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Break the code; see tests fall.")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="mutations, by name or its beginning")
    parser.add_argument("--examples", type=int, default=EXAMPLES_AT_ONCE, help="examples of the property machine")
    parser.add_argument("--machine", action="store_true", help="ask only the property machine")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at once")
    parser.add_argument("--list", action="store_true", help="list the mutations and what they break")
    options = parser.parse_args(words)
    chosen = [m for m in mutations() if not options.only or m.name.startswith(tuple(options.only))]
    if not chosen:
        parser.error("there is no such mutation")
    if options.list:
        for mutation in chosen:
            print(f"{mutation.name:<34} {mutation.breaks}")
        return 0
    tests = sorted({test for mutation in chosen for test in mutation.tests})
    if tests and not options.machine:
        with copied() as root:
            test, reason = run(root, tests)
        if test:
            raise RuntimeError(f"Nothing is broken yet, and {test} falls: {reason}")
    survivors = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(partial(check, examples=options.examples, machine=options.machine), chosen):
            survivors += not outcome.test
            show(outcome)
    return 1 if survivors else 0


def show(outcome: Outcome) -> None:
    """Print a row of the table."""
    fate = outcome.test or "SURVIVED"
    print(f"{outcome.mutation.name:<34} {outcome.seconds:6.1f} s  {fate}  {outcome.reason[:100]}", flush=True)


def pytest_configure() -> None:
    """Make sure that the copy is tested, and bound the property machine."""
    import graph

    assert Path(graph.__file__ or "").is_relative_to(Path.cwd()), f"{graph.__file__} is not of the copy"
    stateful.run_state_machine_as_test = bounded(stateful.run_state_machine_as_test)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the property machine all the time it needs, and run it in one part."""
    for item in [item for item in items if item.nodeid.startswith(MACHINE)]:
        item.add_marker(pytest.mark.timeout(SECONDS), append=False)
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and item.callspec.params.get("part"):
            items.remove(item)


def bounded(run_machine: Callable[..., None]) -> Callable[..., None]:
    """Let a property machine only generate examples, so many, and tell in which one it falls."""

    def run(factory: Callable[[], Any], *, settings: hypothesis.settings) -> None:
        examples = 0

        def counted() -> Any:
            nonlocal examples
            examples += 1
            return factory()

        most = int(os.environ[EXAMPLES])
        settings = hypothesis.settings(settings, max_examples=most, phases=(Phase.generate,), database=None)
        try:
            run_machine(counted, settings=settings)
        except BaseException:
            fallen.append(examples - 1)  # the last one repeats the fall
            raise

    return run


fallen: list[int] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell in which example the property machine fell."""
    for example in fallen:
        terminalreporter.write_line(f"in example {example}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
