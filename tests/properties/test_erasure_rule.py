"""Erasure leaves nothing of a user in every interleaving, and each part of its rule is needed."""

import pytest

from tests.properties.erasure_explorer import Explorer, Rule, Wrong
from tests.properties.erasure_states import BLOCK, BLOCKER, FOLLOW, FOLLOWER, LIKE, LIKE_OF_USER_FIRST, MUTER, Kind

ADD, UNDO, DELETE = ("add",), ("add", "remove"), ("delete",)
KINDS = {
    "a follow": FOLLOW,
    "a follower": FOLLOWER,
    "a like or post": LIKE,
    "a like, the user first": LIKE_OF_USER_FIRST,
    "a block": BLOCK,
    "a block by another": BLOCKER,
    "a mute by another": MUTER,
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@every_kind
def test_nothing_is_left_and_counts_are_exact_in_every_order(kind: Kind) -> None:
    assert Explorer(kind, ADD, DELETE, runs=1).run() > 100


@every_kind
def test_what_is_only_in_the_archive_is_erased_too(kind: Kind) -> None:
    assert Explorer(kind, DELETE, runs=1, archived=True).run() > 100


def test_a_tab_may_take_the_element_back_meanwhile() -> None:
    assert Explorer(FOLLOW, UNDO, DELETE, runs=1).run() > 100


def test_events_may_be_projected_again_later() -> None:
    assert Explorer(FOLLOWER, ADD, DELETE, runs=1, late=1).run() > 100


@pytest.mark.long
@pytest.mark.parametrize("kind", [FOLLOW, LIKE], ids=["a follow", "a like or post"])
def test_erasers_may_die_and_meet(kind: Kind) -> None:
    assert Explorer(kind, ADD, DELETE, runs=2).run() > 10_000


@pytest.mark.parametrize(
    ("rule", "late", "archived"),
    [
        pytest.param(Rule(refuses=False), 0, False, id="the log refuses nothing"),
        pytest.param(Rule(waits=False), 0, False, id="the eraser does not wait"),
        pytest.param(Rule(reads_archive=False), 0, True, id="the archive is not read"),
        pytest.param(Rule(keeps_floors=False), 1, False, id="no floor is kept"),
    ],
)
@pytest.mark.parametrize("kind", [FOLLOW, FOLLOWER, LIKE], ids=["a follow", "a follower", "a like or post"])
def test_each_part_of_the_rule_is_needed(rule: Rule, late: int, archived: bool, kind: Kind) -> None:
    with pytest.raises(Wrong, match=r"left|stands"):
        Explorer(kind, ADD, DELETE, rule=rule, late=late, runs=1, archived=archived).run()
