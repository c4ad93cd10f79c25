"""Every block of the documentation is run by a test."""

import re
from importlib import import_module
from pathlib import Path

from tests.docs.blocks import BLOCKS, CLAIMS, PAGES, ROOT, Block

MODULES = [import_module(f"tests.docs.{path.stem}") for path in sorted(Path(__file__).parent.glob("test_*.py"))]
DRAWINGS = {"README.md", "docs/architecture.md", "docs/concepts.md"}


def is_drawing(block: Block) -> bool:
    """Return True for a picture made of characters: the only kind of block that no test runs."""
    return block.language == "text" and block.page in DRAWINGS and bool(re.search("[│─▶]", block.text))


def test_every_block_has_a_language() -> None:
    """The language decides which test runs the block, and how the site highlights it."""
    assert [str(block) for block in BLOCKS if not block.language] == []
    for path in PAGES:
        fences = re.findall(r"^ *(?:```|~~~)", path.read_text("utf-8"), re.M)
        assert len(fences) == 2 * sum(block.page == path.relative_to(ROOT).as_posix() for block in BLOCKS), path


def test_every_block_is_run_by_one_test_module() -> None:
    wrong = {str(block): CLAIMS[block] for block in BLOCKS if not is_drawing(block) and len(CLAIMS[block]) != 1}
    assert wrong == {}
