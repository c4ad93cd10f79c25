"""The mutations still fit the code."""

import pytest

from tests.mutations.runner import ROOT, Mutation, mutations

ALL = mutations()


def exists(test: str) -> bool:
    """Return True if a file or folder of tests exists and defines the function, if the id has one."""
    file, _, name = test.partition("::")
    function = name.partition("[")[0].rpartition("::")[2]
    return (ROOT / file).exists() and (not name or f"def {function}(" in (ROOT / file).read_text("utf-8"))


@pytest.mark.long
@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_the_code(mutation: Mutation) -> None:
    """The text that it replaces occurs in its file exactly once, and its tests exist."""
    source = (ROOT / mutation.file).read_text("utf-8")

    assert source.count(mutation.old) == 1
    assert mutation.new != mutation.old
    assert all(exists(test) for test in mutation.tests)


def test_mutations_have_unique_names_and_descriptions() -> None:
    assert len({mutation.name for mutation in ALL}) == len(ALL) > 50
    assert all(mutation.breaks for mutation in ALL)
