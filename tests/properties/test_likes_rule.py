"""The rule for likes below the floor holds in every interleaving, and each part of it is needed."""

from dataclasses import replace
from itertools import product

import pytest

from tests.properties.likes_explorer import Change, Explorer, Rule, Wrong


def histories(length: int, users: int) -> list[tuple[Change, ...]]:
    """Return all histories of a length in which the users first appear in order."""
    found = []
    for who in product(range(users), repeat=length):
        if all(user <= max(who[:place], default=-1) + 1 for place, user in enumerate(who)):
            found += [tuple(map(Change, who, kinds)) for kinds in product((True, False), repeat=length)]
    return found


def explore(all_histories: list[tuple[Change, ...]], rule: Rule) -> int:
    """Explore histories, and return the number of states."""
    return sum(Explorer(history, rule).run() for history in all_histories)


@pytest.mark.parametrize(("length", "users"), [(3, 3), (4, 1)])
def test_counts_and_pages_are_right_in_every_interleaving(length: int, users: int) -> None:
    states = explore(histories(length, users), Rule())
    assert states > 3_000, "the explorer does not reach what it is for"


@pytest.mark.long
@pytest.mark.parametrize(("length", "users", "least"), [(4, 2, 30_000), (5, 1, 30_000), (5, 3, 700_000)])
def test_counts_and_pages_are_right_for_longer_histories(length: int, users: int, least: int) -> None:
    states = explore(histories(length, users), Rule())
    assert states > least


@pytest.mark.parametrize(
    "parts",
    [
        ("asks",),
        ("rechecks",),
        ("asks_about_both_floors",),
        ("trims_only_archived",),
        ("stops_below_archive_floor",),
        ("cuts_only_archived", "compares_rows"),  # either is enough, unless the archive was restored from a backup
    ],
    ids="+".join,
)
def test_no_part_of_the_rule_can_be_left_out(parts: tuple[str, ...]) -> None:
    """The explorer finds a history that goes wrong without that part."""
    without = replace(Rule(), **dict.fromkeys(parts, False))
    with pytest.raises(Wrong):
        explore([history for length in (2, 3, 4) for history in histories(length, 2)], without)
