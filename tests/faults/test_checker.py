"""The black-box checker detects everything that is lost, repeated, left over or in disagreement."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.checker.comparison import compare, compare_home, compare_stream
from tests.faults.checker.listeners import EventsListener, HomeListener
from tests.faults.checker.person import Person
from tests.faults.checker.reading import Reading


@dataclass
class Outcome:
    """Two users, their readings, and their streams. alice follows bob and has a post; bob has two and deleted one."""

    people: list[Person]
    readings: dict[str, Reading]
    stream: EventsListener
    home: HomeListener

    def found(self, *, lossy: bool = False) -> list[str]:
        """Return the differences that the checker finds."""
        return [
            *(error for person in self.people for error in compare(person, self.readings, lossy=lossy)),
            *compare_stream(self.people, self.stream, lossy=lossy),
            *compare_home(self.home, self.readings, lossy=lossy),
        ]


@pytest.fixture
async def outcome() -> AsyncIterator[Outcome]:
    """Return an outcome without faults."""
    alice = Person("alice", "http://nowhere", "A", posts={"1": "one"}, following={"B"})
    bob = Person("bob", "http://nowhere", "B", posts={"2": "two", "4": "four"}, deleted={"3"})
    stream = EventsListener(alice, ["A", "B"])
    stream.published.update(["1", "2", "3", "4"])
    stream.deleted.update(["3"])
    stream.by_author = {"A": ["1"], "B": ["2", "3", "4"]}
    stream.follows = {("A", "B")}
    listener = HomeListener(alice)
    listener.held = {"4": "B", "2": "B", "1": "A"}
    readings = {
        "A": Reading({"1": "one"}, {"4": "B", "2": "B", "1": "A"}, set(), {"B"}, (1, 0, 1), 2, set()),
        "B": Reading({"4": "four", "2": "two"}, {"4": "B", "2": "B"}, {"A"}, set(), (2, 1, 0), 3, set()),
    }
    yield Outcome([alice, bob], readings, stream, listener)
    await alice.close()
    await bob.close()


def test_an_outcome_without_faults_has_no_differences(outcome: Outcome) -> None:
    assert outcome.found() == []
    assert outcome.found(lossy=True) == []


LOSSES: dict[str, Callable[[Outcome], object]] = {
    "a post": lambda outcome: outcome.people[1].posts.update({"5": "five"}),
    "a deletion": lambda outcome: outcome.readings["B"].existing.add("3"),
    "a follow": lambda outcome: outcome.people[1].following.add("A"),
    "an unfollow": lambda outcome: outcome.people[0].following.clear(),
}
FAULTS: dict[str, Callable[[Outcome], object]] = {
    "another text": lambda outcome: outcome.readings["A"].posts.update({"1": "uno"}),
    "a follower lacks": lambda outcome: outcome.readings["B"].followers.clear(),
    "a post lacks in a home": lambda outcome: outcome.readings["A"].home.pop("4"),
    "a home has a post too many": lambda outcome: outcome.readings["B"].home.update({"1": "A"}),
    "a wrong count": lambda outcome: setattr(outcome.readings["B"], "counts", (3, 1, 0)),
    "a post listed twice": lambda outcome: setattr(outcome.readings["B"], "listed", 4),
    "a post sent twice": lambda outcome: outcome.stream.published.update(["1"]),
    "a deletion sent twice": lambda outcome: outcome.stream.deleted.update(["3"]),
    "a stale live home": lambda outcome: outcome.home.held.pop("1"),
}
UNHEARD: dict[str, Callable[[Outcome], object]] = {
    "a post": lambda outcome: outcome.stream.by_author["B"].remove("2"),
    "an unknown post": lambda outcome: outcome.stream.by_author["B"].append("9"),
    "the order of posts": lambda outcome: outcome.stream.by_author["B"].reverse(),
    "a deletion": lambda outcome: outcome.stream.deleted.clear(),
    "a follow": lambda outcome: outcome.stream.follows.clear(),
}
BESIDE: dict[str, Callable[[Outcome], object]] = {
    "a post that only a refetch showed": lambda outcome: outcome.home.due.update({"2": "B"}),
    "a gap": lambda outcome: outcome.home.gaps.append("RETENTION"),
}


@pytest.mark.parametrize("what", LOSSES)
def test_a_loss_is_found_unless_it_may_happen_and_was_announced(outcome: Outcome, what: str) -> None:
    LOSSES[what](outcome)
    assert outcome.found()
    outcome.stream.gaps.append("RETENTION")
    assert outcome.found()
    assert outcome.found(lossy=True) == []


@pytest.mark.parametrize("what", FAULTS)
def test_a_disagreement_is_found_in_any_case(outcome: Outcome, what: str) -> None:
    FAULTS[what](outcome)
    outcome.stream.gaps.append("RETENTION")
    assert outcome.found(lossy=True)


@pytest.mark.parametrize("what", UNHEARD)
def test_a_stream_may_lack_events_only_after_a_gap(outcome: Outcome, what: str) -> None:
    UNHEARD[what](outcome)
    assert outcome.found(lossy=True)
    outcome.stream.gaps.append("RETENTION")
    assert outcome.found(lossy=True) == []
    assert outcome.found()


@pytest.mark.parametrize("what", BESIDE)
def test_a_live_home_may_lack_events_only_if_the_log_may(outcome: Outcome, what: str) -> None:
    BESIDE[what](outcome)
    assert outcome.found()
    assert outcome.found(lossy=True) == []


def added(post: str, author: str) -> Any:
    return {"__typename": "PostAdded", "edge": {"node": {"id": post, "author": {"id": author}}}}


async def test_a_live_home_that_is_empty_takes_posts(outcome: Outcome) -> None:
    outcome.home.held = {}
    await outcome.home.take(added("4", "B"))
    assert outcome.home.held == {"4": "B"}


@pytest.mark.parametrize(
    "later",
    [
        added("4", "B"),
        {"__typename": "PostRemoved", "postId": "4"},
        {"__typename": "AuthorRemoved", "user": {"id": "B"}},
        {"__typename": "Gap", "reason": "RETENTION"},
    ],
    ids=lambda event: event["__typename"],
)
async def test_a_refetch_does_not_hide_what_the_stream_has_lost(outcome: Outcome, later: Any) -> None:
    """A post that a fetched page shows early, because of a new author, must be sent later or be gone."""
    home = Refetching(outcome.home.person, {"4": "B", "5": "C"})
    await home.take({"__typename": "AuthorAdded", "user": {"id": "C"}})
    assert home.due == {"4": "B"}
    await home.take(later)
    assert home.due == {}


class Refetching(HomeListener):
    """A listener to whom the server shows these posts."""

    def __init__(self, person: Person, shown: dict[str, str]) -> None:
        super().__init__(person)
        self._shown = shown

    async def _refetched(self) -> dict[str, str]:
        return dict(self._shown)


async def test_errors_that_no_outage_explains_are_found() -> None:
    person = Person("alice", "http://nowhere", answers={"INTERNAL": 1, "STORE_UNAVAILABLE": 2, "no answer": 3})
    assert person.unexpected() == {"INTERNAL": 1}
    await person.close()
