"""Which calls an explorer interrupts: all of them with `--long`, otherwise a sample."""

import random
from collections.abc import Iterable, Iterator
from itertools import chain, count

import pytest

STRIDE, FIRST = 8, 4


def also_at_length(quick: Iterable[object], others: Iterable[object]) -> list[object]:
    """Return values for a test parameter: `quick` for every run, `others` only for runs with `--long`."""
    return [*quick, *(pytest.param(other, marks=pytest.mark.long) for other in others)]


@pytest.fixture
def calls(request: pytest.FixtureRequest, long_profile: bool) -> Iterator[int]:
    """Return the numbers of the calls to interrupt: all with `--long`, otherwise a sample.

    The sample is one of the first four, because some work takes few calls, and every eighth of the others, from a
    random start. It depends on the seed of the run and on the test, so runs differ, and failures can be repeated.
    """
    if long_profile:
        return count()
    seed = request.config.getoption("randomly_seed", None)
    rng = random.Random(f"{seed} {request.node.nodeid}")  # noqa: S311 - a sample
    return chain([rng.randrange(FIRST)], count(FIRST + rng.randrange(STRIDE), STRIDE))
