"""The rule for plain reposts holds in every interleaving, and each part of it is needed.

These tests are slow, but they explore a model, so only a change of the rule can break them.
"""

import pytest

from tests.properties.repost_explorer import Explorer, Rule, Wrong

pytestmark = pytest.mark.slow

REPOST, UNDO, DELETE = ("repost",), ("repost", "unrepost"), ("delete",)


@pytest.mark.parametrize(
    "explorer",
    [
        pytest.param(Explorer(REPOST, REPOST), id="two tabs"),
        pytest.param(Explorer(("repost", "unrepost", "repost")), id="again"),
        pytest.param(Explorer(REPOST, DELETE), id="a deletion"),
        pytest.param(Explorer(UNDO, late=1), id="a late repetition"),
    ],
)
def test_every_order_of_steps_and_crashes_ends_in_what_the_events_say(explorer: Explorer) -> None:
    assert explorer.run() > 100


@pytest.mark.long
@pytest.mark.parametrize(
    "explorer",
    [
        pytest.param(Explorer(REPOST, REPOST, expires=True), id="two tabs after their key has expired"),
        pytest.param(Explorer(UNDO, REPOST), id="one tab takes back what another one reposts"),
        pytest.param(Explorer(UNDO, DELETE), id="a deletion of what is taken back"),
        pytest.param(Explorer(REPOST, DELETE, workers=2), id="two workers"),
        pytest.param(Explorer(REPOST, DELETE, late=1, cold=True), id="a late repost of an archived post"),
        pytest.param(Explorer(REPOST, DELETE, late=1), id="a late repost of a hot post"),
    ],
)
def test_more_tabs_workers_and_late_events_change_nothing(explorer: Explorer) -> None:
    assert explorer.run() > 100


@pytest.mark.parametrize(
    ("rule", "explorer"),
    [
        pytest.param(Rule(begins_at_original=False), {"tabs": (REPOST, DELETE)}, id="the original comes last"),
        pytest.param(Rule(stops_at_tombstone=False), {"tabs": (REPOST, DELETE)}, id="a tombstone voids nothing"),
        pytest.param(Rule(undoes_void_reposts=False), {"tabs": (REPOST, DELETE)}, id="a void repost stays in the log"),
        pytest.param(
            Rule(buries_before_reading=False), {"tabs": (REPOST, DELETE), "workers": 2}, id="the list is read first"
        ),
        pytest.param(
            Rule(asks_about_absent_originals=False),
            {"tabs": (REPOST, DELETE), "late": 1, "cold": True},
            id="an absent original counts as archived",
        ),
        pytest.param(Rule(takes_back=False), {"tabs": (REPOST, REPOST), "expires": True}, id="nothing is taken back"),
        pytest.param(
            Rule(finishes_replacements=False), {"tabs": (REPOST, REPOST), "expires": True}, id="replaced ones stay"
        ),
        pytest.param(
            Rule(confirms_repetitions=False),
            {"tabs": (UNDO, REPOST)},
            id="repetitions are believed",
            marks=pytest.mark.long,
        ),
        pytest.param(
            Rule(versions_keys=False, confirms_repetitions=False),
            {"tabs": (("repost", "unrepost", "repost"),)},
            id="one key for all",
        ),
    ],
)
def test_each_part_of_the_rule_is_needed(rule: Rule, explorer: dict[str, object]) -> None:
    tabs = explorer.pop("tabs")
    with pytest.raises(Wrong):
        Explorer(*tabs, rule=rule, **explorer).run()  # type: ignore[misc, arg-type]
