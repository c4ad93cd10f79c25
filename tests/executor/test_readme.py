"""The README's example for the executor runs as it stands there, and prints what is shown below it."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECTION = "## The executor, for any Strawberry schema"
MOST_LINES = 20


def blocks() -> tuple[str, str]:
    """Find the example and its output in their section."""
    section = (ROOT / "README.md").read_text("utf-8").partition(SECTION)[2].partition("\n## ")[0]
    [example] = re.findall(r"^```python\n(.*?)^```", section, re.S | re.M)
    [output] = re.findall(r"^```text\n(.*?)^```", section, re.S | re.M)
    return example, output


def test_the_example_prints_what_the_readme_shows() -> None:
    """In a process of its own, with warnings as errors."""
    example, output = blocks()
    command = [sys.executable, "-W", "error", "-c", example]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (output, "")


def test_the_example_is_short_and_knows_nothing_of_fanline() -> None:
    """Twenty lines of code at most, on a schema of its own."""
    example, _ = blocks()
    assert len([line for line in example.splitlines() if line.strip()]) <= MOST_LINES
    assert set(re.findall(r"^(?:from|import) (\w+)", example, re.M)) == {"asyncio", "executor", "strawberry"}
