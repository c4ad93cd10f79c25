"""How later events change the standing of users with the viewer."""

import pytest

from graph.log.events import Blocked, Event, EventBody, Followed, Unblocked, Unfollowed
from graph.people.follows import Standing, after

ALICE, BOB, CAROL = 1, 2, 3
STRANGER = Standing(follows=False, blocked=False, known=False)
FOLLOWED = Standing(follows=True, blocked=False, known=True)


@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        (STRANGER, Followed(ALICE, BOB), FOLLOWED),
        (FOLLOWED, Unfollowed(ALICE, BOB), Standing(follows=False, blocked=False, known=True)),
        (FOLLOWED, Blocked(ALICE, BOB), Standing(follows=False, blocked=True, known=True)),
        (FOLLOWED, Blocked(BOB, ALICE), Standing(follows=False, blocked=True, known=True)),
        (Standing(follows=False, blocked=True, known=False), Unblocked(ALICE, BOB), STRANGER),
        (Standing(follows=False, blocked=True, known=False), Unblocked(BOB, ALICE), STRANGER),
        (FOLLOWED, Followed(BOB, ALICE), FOLLOWED),
        (FOLLOWED, Blocked(BOB, CAROL), FOLLOWED),
    ],
)
def test_follows_and_blocks_of_either_side_count(before: Standing, body: EventBody, expected: Standing) -> None:
    assert after(ALICE, {BOB: before}, Event(7, body)) == {BOB: expected}
