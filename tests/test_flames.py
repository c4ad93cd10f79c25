"""Flame graphs of profiles."""

from pathlib import Path

import pytest

from benchmarks.flames import boxes, label, read

STACKS = """main (serve.py:1);run (server/app.py:10);read (graph/log.py:7) 3
main (serve.py:1);run (server/app.py:12);read (graph/log.py:9) 1
main (serve.py:1);run (server/app.py:12);write (graph/log.py:30) 4
"""


def test_a_function_has_its_part_of_the_width(tmp_path: Path) -> None:
    """Lines of a function count together, and frames with which all stacks begin are left out."""
    file = tmp_path / "stacks"
    file.write_text(STACKS)
    root = read(file)
    shown = [(frame.name, left, width, layer) for frame, left, width, layer in boxes(root, 0.0, root.seen)]
    assert shown == [
        ("run (server/app.py)", 0.0, 1.0, 0),
        ("read (graph/log.py)", 0.0, 0.5, 1),
        ("write (graph/log.py)", 0.5, 0.5, 1),
    ]


def test_a_narrow_function_is_left_out_or_loses_its_file(tmp_path: Path) -> None:
    file = tmp_path / "stacks"
    file.write_text("a (x.py:1);b (x.py:2) 999\na (x.py:1);c (x.py:3) 1\n")
    root = read(file)
    assert [frame.name for frame, *_ in boxes(root, 0.0, root.seen)] == ["a (x.py)", "b (x.py)"]
    assert [label("complete (executor/run.py)", width) for width in (1.0, 0.06, 0.03, 0.01)] == [
        "complete (executor/run.py)",
        "complete",
        "comp",
        "",
    ]


def test_a_file_without_stacks_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "stacks"
    file.write_text("")
    with pytest.raises(ValueError, match="has no stacks"):
        read(file)
