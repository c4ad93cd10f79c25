"""The mutations still fit the code."""

import pytest

from tests.mutations.runner import ROOT, Mutation, mutations

ALL = mutations()


@pytest.mark.long
@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_the_code(mutation: Mutation) -> None:
    """The text that it replaces occurs in its file exactly once, and its tests exist."""
    source = (ROOT / mutation.file).read_text("utf-8")

    assert source.count(mutation.old) == 1
    assert mutation.new != mutation.old
    assert all((ROOT / test.partition("::")[0]).is_file() for test in mutation.tests)


def test_mutations_have_unique_names_and_descriptions() -> None:
    assert len({mutation.name for mutation in ALL}) == len(ALL) > 50
    assert all(mutation.breaks for mutation in ALL)
