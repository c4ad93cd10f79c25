"""The append-only file of the embedded store is damaged while no server runs."""

import shutil
from pathlib import Path

import pytest

from server.append_only_file import last_file
from server.embedded import EmbeddedStore, EmbeddedStoreError
from tests.faults.damaged_file import KINDS, Written, copy_of, damage, lost, serving, write_store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prompt_archiver")]

SEED = 20_261_129


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder to copy."""
    return tmp_path_factory.mktemp("template")


@pytest.fixture
async def written(folder: Path) -> Written:
    """Fill the folder once, and return what was acknowledged."""
    if folder not in WRITTEN:
        WRITTEN[folder] = await write_store(folder)
    return WRITTEN[folder]


WRITTEN: dict[Path, Written] = {}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_store_with_a_damaged_end_loses_only_what_was_damaged(
    folder: Path, written: Written, tmp_path: Path, kind: str, long_profile: bool
) -> None:
    """Events, sessions and idempotency keys that the file or the archive still holds survive. Repair finds nothing."""
    for case in range(50 if long_profile else 1):
        copy = copy_of(folder, tmp_path / str(case))
        change = damage(written, f"{SEED} {kind} {case}", kind, copy)
        with EmbeddedStore(copy) as store:
            async with serving(store, copy) as graph:
                assert await lost(graph, written, change) == [], f"case {case}, {change}"
                if list(store.folder.glob("removed-*")):
                    report = await graph.repair().run(correct=False)
                    assert not report.found, (case, change, report.examples)
        shutil.rmtree(copy)


async def test_damage_far_from_the_end_is_refused(
    folder: Path, written: Written, tmp_path: Path, long_profile: bool
) -> None:
    """The message names the file, the place, and the command that fills a new store. The file is not changed."""
    for case in range(20 if long_profile else 2):
        copy = copy_of(folder, tmp_path / str(case))
        damage(written, f"{SEED} {case}", "zeroed", copy, at_end=False)
        store = EmbeddedStore(copy)
        file = last_file(store.folder)
        assert file is not None
        damaged = file.read_bytes()
        with pytest.raises(EmbeddedStoreError, match=r"is damaged at byte .* `fanline rebuild`") as refusal:
            store.start()
        assert str(file) in str(refusal.value)
        assert file.read_bytes() == damaged
        shutil.rmtree(copy)
