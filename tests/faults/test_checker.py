"""The black-box checker detects everything that is lost, repeated, left over or inconsistent."""

from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest

from graph.log.events import PostPublished
from resolvers.ids import Kind, encode
from tests.faults.checker.acknowledged import Acknowledged
from tests.faults.checker.comparison import compare_all, compare_feed, compare_home, compare_stream
from tests.faults.checker.listeners import EventsListener, HomeListener, NotificationsListener
from tests.faults.checker.person import Person
from tests.faults.checker.reading import Notice, Reading, Shown
from tests.support.world import ListOfUsers

ALICE, BOB = 1, 2
ONE, TWO, GONE, REPLY, REPOST, LIST = 11, 21, 23, 24, 25, 31
NOTHING = (0, 0, 0), (False, False, False)

BY_ALICE = {ONE: Shown(ALICE, "one", None, None, None, (0, 1, 1), (False, False, False))}
BY_BOB = {
    REPOST: Shown(BOB, "", None, ONE, ALICE, (0, 0, 0), (False, False, False)),
    TWO: Shown(BOB, "two", None, None, None, (1, 0, 0), (False, False, False)),
}
REPLIES = {REPLY: Shown(BOB, "reply", ONE, None, None, *NOTHING)}
OF_ALICE = Reading(
    timeline=dict(BY_ALICE),
    replies={},
    home=BY_BOB | BY_ALICE,
    neighbour=dict(BY_BOB),
    followers=set(),
    following={BOB},
    muted=set(),
    blocked=set(),
    liked={TWO},
    bookmarked=set(),
    likers={ONE: set()},
    lists={},
    sizes={},
    list_timelines={},
    notices={"b": Notice("REPOST", ONE, frozenset({BOB}), 1), "a": Notice("REPLY", REPLY, frozenset({BOB}), 1)},
    unread={"b"},
    unread_count=1,
    counts=(1, 0, 1),
    entries=2,
    existing=set(),
)
OF_BOB = Reading(
    timeline=dict(BY_BOB),
    replies=dict(REPLIES),
    home=dict(BY_BOB),
    neighbour=dict(BY_ALICE),
    followers={ALICE},
    following=set(),
    muted=set(),
    blocked=set(),
    liked=set(),
    bookmarked={ONE},
    likers={TWO: {ALICE}, REPLY: set(), REPOST: set()},
    lists={LIST: ListOfUsers(BOB, "friends", frozenset({ALICE}))},
    sizes={LIST: 1},
    list_timelines={LIST: dict(BY_ALICE)},
    notices={
        "d": Notice("LIKE", TWO, frozenset({ALICE}), 1),
        "c": Notice("FOLLOW", 0, frozenset({ALICE}), 1),
    },
    unread={"d", "c"},
    unread_count=2,
    counts=(2, 1, 0),
    entries=2,
    existing=set(),
)


@dataclass
class Outcome:
    """Two users, what they read, and their streams.

    alice has a post, follows bob and likes his post. bob replied to her post, reposted and bookmarked it, has her in a
    list, and deleted a post.
    """

    known: Acknowledged
    people: list[Person]
    readings: dict[int, Reading]
    stream: EventsListener
    home: HomeListener
    feed: NotificationsListener

    @property
    def alice(self) -> Reading:
        """What alice reads."""
        return self.readings[ALICE]

    @property
    def bob(self) -> Reading:
        """What bob reads."""
        return self.readings[BOB]

    def found(self, *, lossy: bool = False, gaps: bool = False) -> list[str]:
        """Return the differences that the checker finds."""
        announced = lossy and bool(self.stream.gaps)
        return [
            *compare_all(self.people, self.readings, lossy=announced),
            *compare_stream(self.people, self.stream, lossy=lossy, gaps=gaps),
            *compare_home(self.home, self.readings, lossy=lossy or gaps),
            *compare_feed(self.feed, self.readings, lossy=lossy or gaps),
        ]


def acknowledged() -> Acknowledged:
    """Return what was acknowledged to alice and bob."""
    known = Acknowledged(seen={ALICE: "a"}, deleted={GONE}, authors={GONE: BOB}, bookmarks={(BOB, ONE)})
    known.publish(ONE, PostPublished(ALICE, "one"))
    known.publish(TWO, PostPublished(BOB, "two"))
    known.publish(REPLY, PostPublished(BOB, "reply", reply_to=ONE, reply_to_author=ALICE, listed=False))
    known.repost(BOB, ONE, REPOST)
    known.world.follows.add((ALICE, BOB))
    known.world.likes[ALICE, TWO] = 1
    known.world.lists[LIST] = ListOfUsers(BOB, "friends", frozenset({ALICE}))
    return known


@pytest.fixture
async def outcome() -> AsyncIterator[Outcome]:
    """Return an outcome without faults."""
    known = acknowledged()
    alice, bob = Person("alice", "http://nowhere", known), Person("bob", "http://nowhere", known)
    alice.number, bob.number = ALICE, BOB
    stream = EventsListener(alice, [])
    stream.published.update([ONE, TWO, GONE, REPLY, REPOST])
    stream.deleted.update([GONE])
    stream.received, stream.removed = {ONE: ALICE, TWO: BOB, GONE: BOB, REPLY: BOB, REPOST: BOB}, {GONE}
    stream.by_author = {ALICE: [ONE], BOB: [TWO, GONE, REPLY, REPOST]}
    stream.follows = {(ALICE, BOB)}
    home, feed = HomeListener(alice), NotificationsListener(alice)
    home.held, feed.held = dict(OF_ALICE.home), dict(OF_ALICE.notices)
    readings = {ALICE: deepcopy(OF_ALICE), BOB: deepcopy(OF_BOB)}
    yield Outcome(known, [alice, bob], readings, stream, home, feed)
    await alice.close()
    await bob.close()


def changed(posts: dict[int, Shown], post: int, **values: Any) -> None:
    """Change a post that a user reads."""
    posts[post] = posts[post]._replace(**values)


def test_an_outcome_without_faults_has_no_differences(outcome: Outcome) -> None:
    assert outcome.found() == []
    outcome.stream.gaps.append("RETENTION")
    assert outcome.found(lossy=True) == []


LOSSES: dict[str, Callable[[Outcome], object]] = {
    "a follower is not notified": lambda outcome: outcome.bob.notices.update(
        {"c": Notice("FOLLOW", 0, frozenset(), 0)}
    ),
    "a post": lambda outcome: outcome.known.publish(41, PostPublished(BOB, "lost")),
    "a reply": lambda outcome: outcome.known.publish(
        41, PostPublished(BOB, "lost", reply_to=TWO, reply_to_author=BOB, listed=False)
    ),
    "a deletion": lambda outcome: outcome.bob.existing.add(GONE),
    "a follow": lambda outcome: outcome.known.world.follows.add((BOB, ALICE)),
    "an unfollow": lambda outcome: outcome.known.world.follows.clear(),
    "a like": lambda outcome: outcome.known.world.likes.update({(BOB, ONE): 1}),
    "an unlike": lambda outcome: outcome.known.world.likes.clear(),
    "a repost": lambda outcome: outcome.known.repost(ALICE, TWO, 41),
    "an end of a repost": lambda outcome: outcome.known.unrepost(BOB, ONE),
    "a mute": lambda outcome: outcome.known.world.mutes.add((ALICE, 3)),
    "a block": lambda outcome: outcome.known.world.blocks.add((ALICE, 3)),
    "a bookmark": lambda outcome: outcome.known.bookmarks.add((ALICE, TWO)),
    "an end of a bookmark": lambda outcome: outcome.known.bookmarks.clear(),
    "a list": lambda outcome: outcome.known.world.lists.update({32: ListOfUsers(ALICE, "new", frozenset())}),
    "a deletion of a list": lambda outcome: outcome.known.world.lists.clear(),
    "a member of a list": lambda outcome: outcome.known.world.lists.update(
        {LIST: ListOfUsers(BOB, "friends", frozenset({ALICE, 3}))}
    ),
    "a mark of notifications as read": lambda outcome: outcome.known.seen.update({ALICE: "b"}),
    "a name of a list": lambda outcome: outcome.known.world.lists.update(
        {LIST: ListOfUsers(BOB, "people", frozenset({ALICE}))}
    ),
}
FAULTS: dict[str, Callable[[Outcome], object]] = {
    "another text": lambda outcome: changed(outcome.alice.timeline, ONE, text="uno"),
    "a follower is missing": lambda outcome: outcome.bob.followers.clear(),
    "a post is missing in a home": lambda outcome: outcome.alice.home.pop(TWO),
    "a home has a post too many": lambda outcome: outcome.bob.home.update(BY_ALICE),
    "a wrong number of posts": lambda outcome: setattr(outcome.readings[BOB], "counts", (3, 1, 0)),
    "a user listed twice": lambda outcome: setattr(outcome.readings[BOB], "entries", 3),
    "a post is missing for others": lambda outcome: outcome.alice.neighbour.pop(TWO),
    "a wrong number of likes": lambda outcome: changed(outcome.bob.timeline, TWO, counts=(2, 0, 0)),
    "a wrong number of replies": lambda outcome: changed(outcome.alice.timeline, ONE, counts=(0, 0, 1)),
    "a wrong number of reposts": lambda outcome: changed(outcome.alice.timeline, ONE, counts=(0, 1, 2)),
    "a like too many": lambda outcome: outcome.bob.likers[TWO].add(3),
    "a button shows a like": lambda outcome: changed(outcome.alice.timeline, ONE, mine=(True, False, False)),
    "a wrong size of a list": lambda outcome: outcome.bob.sizes.update({LIST: 2}),
    "a post is missing in a list": lambda outcome: outcome.bob.list_timelines[LIST].pop(ONE),
    "a notification is missing": lambda outcome: outcome.bob.notices.pop("d"),
    "a notification too many": lambda outcome: outcome.bob.notices.update(
        {"e": Notice("LIKE", ONE, frozenset({ALICE}), 1)}
    ),
    "a notification of another user": lambda outcome: outcome.bob.notices.update(
        {"d": Notice("LIKE", TWO, frozenset({3}), 1)}
    ),
    "an older notification is unread": lambda outcome: setattr(outcome.readings[ALICE], "unread", {"a"}),
    "a wrong number of unread notifications": lambda outcome: setattr(outcome.alice, "unread_count", 0),
    "a post sent twice": lambda outcome: outcome.stream.published.update([ONE]),
    "the order of posts": lambda outcome: outcome.stream.by_author[BOB].reverse(),
    "a deletion sent twice": lambda outcome: outcome.stream.deleted.update([GONE]),
    "a stale live home": lambda outcome: outcome.home.held.pop(ONE),
    "stale live notifications": lambda outcome: outcome.feed.held.pop("b"),
}
UNHEARD: dict[str, Callable[[Outcome], object]] = {
    "a post": lambda outcome: outcome.stream.received.pop(TWO),
    "a deletion": lambda outcome: outcome.stream.removed.clear(),
    "a follow": lambda outcome: outcome.stream.follows.clear(),
}
BESIDE: dict[str, Callable[[Outcome], object]] = {
    "a post that only a refetch showed": lambda outcome: outcome.home.due.update(BY_ALICE),
    "a gap": lambda outcome: outcome.home.gaps.append("RETENTION"),
    "a gap of notifications": lambda outcome: outcome.feed.gaps.append("RETENTION"),
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
    assert outcome.found(gaps=True)
    assert outcome.found()


def test_of_many_notifications_the_newest_are_not_missing(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.faults.checker.comparison.KEPT", 2)
    body = PostPublished(BOB, "lost", reply_to=TWO, reply_to_author=ALICE, listed=False)
    outcome.known.publish(REPLY - 1, body)
    assert not any("alice's notifications" in each for each in outcome.found())
    outcome.known.publish(REPLY + 9, body)
    assert any("alice's notifications" in each for each in outcome.found())


def test_a_stream_with_a_gap_may_have_sent_posts_that_were_lost(outcome: Outcome) -> None:
    outcome.stream.received[99] = BOB
    assert outcome.found()
    outcome.stream.gaps.append("RETENTION")
    assert outcome.found(gaps=True) == []


@pytest.mark.parametrize("what", BESIDE)
def test_live_lists_may_lack_events_only_if_the_log_may(outcome: Outcome, what: str) -> None:
    BESIDE[what](outcome)
    assert outcome.found()
    assert outcome.found(lossy=True) == []


def test_what_a_block_hides_is_not_missing(outcome: Outcome) -> None:
    """Alice blocks bob: neither sees anything of the other but the counts, and the follow has ended."""
    outcome.known.set_pair((ALICE, BOB), outcome.known.world.blocks, exists=True)
    outcome.readings[ALICE] = replace(
        outcome.alice,
        home=dict(BY_ALICE),
        neighbour={},
        following=set(),
        blocked={BOB},
        liked=set(),
        notices={},
        unread=set(),
        unread_count=0,
        counts=(1, 0, 0),
        entries=1,
    )
    outcome.readings[BOB] = replace(
        outcome.bob,
        timeline={TWO: BY_BOB[TWO]},
        home={TWO: BY_BOB[TWO]},
        neighbour={},
        followers=set(),
        bookmarked=set(),
        likers={TWO: set(), REPLY: set()},
        lists={LIST: ListOfUsers(BOB, "friends", frozenset())},
        list_timelines={LIST: {}},
        notices={},
        unread=set(),
        unread_count=0,
        counts=(2, 0, 0),
        entries=0,
    )
    outcome.home.held, outcome.feed.held = dict(BY_ALICE), {}
    assert outcome.found() == []


def post_added(post: int, author: int) -> Any:
    """Return the event of a post."""
    node: dict[str, Any] = {"id": encode(Kind.POST, post), "author": {"id": encode(Kind.USER, author)}, "text": "text"}
    node |= {"__typename": "Post", "replyToId": None, "quotedPostId": None, "quotedPost": None}
    return {"__typename": "PostAdded", "timelineEdge": {"node": node}}


TWO_AS_ADDED = Shown(BOB, "text", None, None, None, *NOTHING)


async def test_a_live_home_that_is_empty_takes_posts(outcome: Outcome) -> None:
    outcome.home.held = {}
    await outcome.home.take(post_added(TWO, BOB))
    assert outcome.home.held == {TWO: TWO_AS_ADDED}


async def test_a_live_home_leaves_older_posts_to_later_pages(outcome: Outcome) -> None:
    outcome.home.floor = TWO
    outcome.home.held = dict(BY_BOB)
    await outcome.home.take(post_added(ONE, ALICE))
    assert outcome.found() == []


@pytest.mark.parametrize("kind", ["AuthorRemoved", "AuthorHidden", "PostRemoved"])
async def test_a_live_home_drops_reposts_with_their_original(outcome: Outcome, kind: str) -> None:
    """All events but `AuthorRemoved`, which follows an unfollow, also remove reposts by other users."""
    event = {"__typename": kind, "userId": encode(Kind.USER, ALICE), "postId": encode(Kind.POST, ONE)}
    await outcome.home.take(event)
    assert set(outcome.home.held) == ({REPOST, TWO} if kind == "AuthorRemoved" else {TWO})


@pytest.mark.parametrize(
    "later",
    [
        post_added(TWO, BOB),
        {"__typename": "PostRemoved", "postId": encode(Kind.POST, TWO)},
        {"__typename": "AuthorRemoved", "userId": encode(Kind.USER, BOB)},
        {"__typename": "AuthorHidden", "userId": encode(Kind.USER, BOB)},
        {"__typename": "Gap", "reason": "RETENTION"},
    ],
    ids=lambda event: event["__typename"],
)
async def test_a_refetch_does_not_hide_what_the_stream_has_lost(outcome: Outcome, later: Any) -> None:
    """A post that a fetched page shows early, because of a new author, must be sent later or be gone."""
    carol = 3
    by_carol = Shown(carol, "text", None, None, None, *NOTHING)
    repost = Shown(BOB, "", None, 51, carol, *NOTHING)
    home = Refetching(outcome.people[0], {TWO: TWO_AS_ADDED, 51: by_carol, 52: repost})
    await home.take({"__typename": "AuthorAdded", "userId": encode(Kind.USER, carol)})
    assert home.due == {TWO: TWO_AS_ADDED}
    await home.take(later)
    assert home.due == {}


class Refetching(HomeListener):
    """A listener to whom the server shows these posts."""

    def __init__(self, person: Person, shown: dict[int, Shown]) -> None:
        super().__init__(person)
        self.shown = shown

    async def _refetched(self) -> tuple[dict[int, Shown], int]:
        return dict(self.shown), 0


async def test_errors_that_no_outage_explains_are_found() -> None:
    person = Person("alice", "http://nowhere")
    person.answers |= {"INTERNAL": 1, "STORE_UNAVAILABLE": 2, "no answer": 3}
    assert person.unexpected() == {"INTERNAL": 1}
    await person.close()
