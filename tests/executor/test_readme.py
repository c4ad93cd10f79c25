"""The example of the executor's README: it runs and prints the output shown below it."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "executor" / "README.md"
MAX_LINES = 20


def example_and_output() -> tuple[str, str]:
    """Return the example, and the output that the README shows for it."""
    text = README.read_text("utf-8")
    [example] = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    [output] = re.findall(r"^```text\n(.*?)^```", text, re.S | re.M)
    return example, output


def test_the_example_prints_what_the_readme_shows() -> None:
    """The example runs in a separate process, with warnings as errors. Here the package is called `executor`."""
    example, output = example_and_output()
    command = [sys.executable, "-W", "error", "-c", example.replace("from breadth_first ", "from executor ")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (output, "")


def test_the_example_is_short_and_independent_of_fanline() -> None:
    """The example has at most twenty lines and imports only the package and Strawberry."""
    example, _ = example_and_output()
    assert len([line for line in example.splitlines() if line.strip()]) <= MAX_LINES
    assert set(re.findall(r"^(?:from|import) (\w+)", example, re.M)) == {"asyncio", "breadth_first", "strawberry"}
