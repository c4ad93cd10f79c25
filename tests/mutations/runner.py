"""Mutation testing of scripts and guards: break the code in one place at a time, and check that a test fails.

    uv run python -m tests.mutations.runner [--only NAME ...] [--examples N] [--machine] [--jobs N] [--list]

Each mutation in `tests/mutations/*.toml` names a file, a text that occurs in the file exactly once, its replacement,
what it `breaks`, and the `tests` that should fail. The mutation is applied to a copy of the project in a temporary
folder, and its tests run on the copy. If they pass, the property machine of `tests/properties` runs with N examples (0
for none), except for mutations with `machine = false`. With `--machine` only the property machine runs. The exit code
is 1 if a mutation survives.

`tests/mutations/test_runner.py` checks with `--long` that all mutations still fit the code.

These mutations are not listed, because only the running time shows a difference:

- A deletion that removes the post from the timeline before it writes the tombstone. The request has not returned yet, a
  retry does both, and other projections check both tombstones.
- A post that is listed before its record is written. Reads drop posts without a record, and fan-out follows both steps.
- A follow number at the boundary of two tasks or chunks that is in both. Insertions are idempotent.
- A slice that reads below its cache's floor, or a page that merges other authors above the floor. There are no posts
  below the floor, and duplicates are removed.
- An author's tombstone with the later number of two racing deletions. It is only trimmed later.
- Comparisons with `>=` instead of `>`. Numbers are unique, and repeated events change nothing.
- A page that reads more or fewer posts than are missing after deletions. It reads until it is full.
- A promotion that begins although the delivery mode has changed. It marks all caches before it finishes.

This module is also a pytest plugin that the runs it starts load.
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
DEFAULT_EXAMPLES = 400
SECONDS = 3600


class DoesNotFit(Exception):
    """The text that a mutation replaces does not occur exactly once in its file."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A replacement of `old` by `new` in `file`. With `machine` False, the property machine is not run."""

    name: str
    file: str
    breaks: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    machine: bool = True

    def apply(self, root: Path) -> None:
        """Apply the mutation to the copy in `root`. Raises DoesNotFit."""
        path = root / self.file
        source = path.read_text("utf-8")
        if source.count(self.old) != 1:
            raise DoesNotFit(f"{self.name}: the old text occurs {source.count(self.old)} times in {self.file}")
        path.write_text(source.replace(self.old, self.new), "utf-8")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first test that failed and the reason; both are empty if the mutation survived."""

    mutation: Mutation
    test: str
    reason: str
    seconds: float


def mutations() -> list[Mutation]:
    """Return all mutations."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "tests" / "mutations").glob("*.toml"))]
    entries = [entry for text in texts for entry in tomllib.loads(text)["mutation"]]
    return [Mutation(**entry | {"tests": tuple(entry.get("tests", ()))}) for entry in entries]


@contextmanager
def copied() -> Iterator[Path]:
    """Yield a copy of the project in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="fanline-mutation-") as folder:
        root = Path(folder)
        for name in PARTS:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("node_modules", ".*")
                shutil.copytree(ROOT / name, root / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, root / name)
        yield root


def run(root: Path, tests: Sequence[str], examples: int = 0) -> tuple[str, str]:
    """Run tests on a copy until one fails, and return its name and the reason; both are empty if all pass.

    Raises RuntimeError if the tests cannot be run.
    """
    options = (
        "-x",
        "-q",
        "-rf",
        "--tb=short",
        "-n0",
        "-m",
        "",  # the property machine is a slow test
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "--long",  # so that explorers interrupt every call
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
    failed = re.search(r"^(in example \d+)$", done.stdout, re.MULTILINE)
    test = f"the machine {failed[1]}" if failed else summary[1].rpartition("/")[2]
    return test, summary[2] or ""


def check(mutation: Mutation, examples: int, *, machine: bool) -> Outcome:
    """Apply a mutation to a copy, and return which test failed."""
    started = time.monotonic()
    with copied() as root:
        mutation.apply(root)
        test, reason = run(root, mutation.tests) if mutation.tests and not machine else ("", "")
        if not test and examples and (mutation.machine or machine):
            test, reason = run(root, [MACHINE], examples)
    return Outcome(mutation, test, reason, time.monotonic() - started)


def main(words: Sequence[str]) -> int:
    """Check the mutations named on the command line, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations.runner", description="Test the tests of scripts and guards."
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of mutations, or prefixes of names")
    parser.add_argument("--examples", type=int, default=DEFAULT_EXAMPLES, help="examples of the property machine")
    parser.add_argument("--machine", action="store_true", help="run only the property machine")
    parser.add_argument("--jobs", type=int, default=1, help="mutations to check concurrently")
    parser.add_argument("--list", action="store_true", help="list the mutations and what they break")
    options = parser.parse_args(words)
    chosen = [m for m in mutations() if not options.only or m.name.startswith(tuple(options.only))]
    if not chosen:
        parser.error("no mutation has such a name")
    if options.list:
        for mutation in chosen:
            print(f"{mutation.name:<34} {mutation.breaks}")
        return 0
    tests = sorted({test for mutation in chosen for test in mutation.tests})
    if tests and not options.machine:
        with copied() as root:
            test, reason = run(root, tests)
        if test:
            raise RuntimeError(f"{test} fails without a mutation: {reason}")
    survivors = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(partial(check, examples=options.examples, machine=options.machine), chosen):
            survivors += not outcome.test
            show(outcome)
    return 1 if survivors else 0


def show(outcome: Outcome) -> None:
    """Print the result of one mutation."""
    fate = outcome.test or "SURVIVED"
    print(f"{outcome.mutation.name:<34} {outcome.seconds:6.1f} s  {fate}  {outcome.reason[:100]}", flush=True)


def pytest_configure() -> None:
    """Check that the copy is imported, and limit the property machine."""
    import graph

    assert Path(graph.__file__ or "").is_relative_to(Path.cwd()), f"{graph.__file__} is not of the copy"
    stateful.run_state_machine_as_test = bounded(stateful.run_state_machine_as_test)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raise the time limit of the property machine, and run it in one part."""
    for item in [item for item in items if item.nodeid.startswith(MACHINE)]:
        item.add_marker(pytest.mark.timeout(SECONDS), append=False)
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and item.callspec.params.get("part"):
            items.remove(item)


def bounded(run_machine: Callable[..., None]) -> Callable[..., None]:
    """Return a function that runs a property machine without shrinking and records the failing example."""

    def run(factory: Callable[[], Any], *, settings: hypothesis.settings) -> None:
        examples = 0

        def counted() -> Any:
            nonlocal examples
            examples += 1
            return factory()

        limit = int(os.environ[EXAMPLES])
        settings = hypothesis.settings(settings, max_examples=limit, phases=(Phase.generate,), database=None)
        try:
            run_machine(counted, settings=settings)
        except BaseException:
            failures.append(examples - 1)  # the last example repeats the failure
            raise

    return run


failures: list[int] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the example in which the property machine failed."""
    for example in failures:
        terminalreporter.write_line(f"in example {example}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
