"""Random histories of a small graph, as the events that its log would hold."""

from dataclasses import replace

from hypothesis import strategies as st

from graph.log.account_events import UserDeleted, UserErased, login_hash
from graph.log.events import (
    Blocked,
    Event,
    EventBody,
    Followed,
    Liked,
    ListChanged,
    ListCreated,
    ListDeleted,
    NotificationsRead,
    PasswordChanged,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    PostPublished,
    ProfileChanged,
    Reposted,
    SessionsEnded,
    Unblocked,
    Unfollowed,
    Unliked,
    Unreposted,
    UserCreated,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.model import Permission, Post
from graph.posts.posts import deletion_of
from graph.posts.publication import as_reply
from graph.records import published_post
from graph.relations.pair_sets import PairSet, stored_member
from graph.relations.register import PAIRS
from tests.support.erasures import ends_of

USERS = 4
STEP = 1 << 12
NAMES = st.sampled_from(["", "a", "é", "name with spaces", "0"])


def user_id(place: int) -> int:
    """Return the id of the user at this index."""
    return (place + 1) * STEP


@st.composite
def histories(draw: st.DrawFn, limit: int = 30) -> list[Event]:
    """Return sign-ups of four users and up to `limit` of their events, in the order of their numbers.

    A post may be deleted more than once. The sign-up of the last user is void: its login is not claimed. At the end,
    some users may be deleted and perhaps erased.
    """
    events = [
        Event(user_id(place), UserCreated(f"user{place}", draw(NAMES), f"nonce{place}", draw(NAMES)))
        for place in range(USERS)
    ]
    posts: list[Event] = []
    reposts = Reposts()
    for _ in range(draw(st.integers(0, limit))):
        number = user_id(len(events)) + draw(st.integers(0, 3))
        for body in reposts.completed(draw(_bodies(posts)), number):
            events.append(Event(max(number, user_id(len(events))), body))
            reposts.apply(events[-1])
            if isinstance(body, PostPublished):
                posts.append(events[-1])
    for place in draw(st.sets(st.integers(0, USERS - 1), max_size=2)):
        events.append(Event(user_id(len(events)), UserDeleted(user_id(place), login_hash(f"user{place}"))))
        if draw(st.booleans()):
            for body in (*ends_of(user_id(place), events), UserErased(user_id(place))):
                events.append(Event(user_id(len(events)), body))
    return events


class Reposts:
    """The plain reposts of a history, by user and original, and the deleted posts."""

    def __init__(self) -> None:
        self.held: dict[tuple[int, int], int] = {}
        self.deleted: set[int] = set()

    def completed(self, body: EventBody, number: int) -> list[EventBody]:
        """Return an event with the events that follow it in a log. `number` is the number of the event.

        A user has one repost of a post; another repost takes it back. A worker ends the reposts of deleted posts.
        """
        if isinstance(body, Reposted):
            held = self.held.get((body.user, body.post))
            if held is not None:
                return [Unreposted(body.user, body.post, held)]
            return [body, *([Unreposted(body.user, body.post, number)] if body.post in self.deleted else [])]
        if isinstance(body, PostDeleted):
            ends = [Unreposted(user, post, held) for (user, post), held in self.held.items() if post == body.post]
            return [body, *ends]
        return [body]

    def apply(self, event: Event) -> None:
        """Apply an event."""
        match event.body:
            case Reposted(user, post):
                self.held[user, post] = event.number
            case Unreposted(user, post):
                self.held.pop((user, post))
            case PostDeleted(post=post):
                self.deleted.add(post)


@st.composite
def _bodies(draw: st.DrawFn, posts: list[Event]) -> EventBody:
    user, other = user_id(draw(st.integers(0, USERS - 1))), user_id(draw(st.integers(0, USERS - 1)))
    kinds = ["profile", "grant", "revoke", "password", "sessions", "post", "post", "follow", "follow", "unfollow"]
    kinds += ["pair", "pair", "block", "block", "read", "list", "list", "suspend"]
    kinds += ["delete", "delete", "like", "like", "unlike", "repost", "repost"] * bool(posts)
    kind = draw(st.sampled_from(kinds))
    if kind == "profile":
        name = draw(st.none() | NAMES)
        return ProfileChanged(user, name, draw(NAMES if name is None else st.none() | NAMES))
    if kind == "grant":
        return PermissionGranted(user, Permission.FIREHOSE.value)
    if kind == "password":
        return PasswordChanged(user, f"user{user // STEP - 1}", "nonce")
    if kind == "revoke":
        return PermissionRevoked(user, Permission.FIREHOSE.value)
    if kind == "suspend":
        return (UserSuspended if draw(st.booleans()) else UserUnsuspended)(user)
    if kind == "sessions":
        return SessionsEnded(user, [f"session{draw(st.integers(0, 2))}"])
    if kind == "post":
        located = draw(st.booleans())
        latitude, longitude = (draw(st.sampled_from([0.0, -12.25, 89.9999])), 1e-07) if located else (None, None)
        mentions = tuple(draw(st.lists(st.just(other), max_size=1)))
        body = PostPublished(user, draw(NAMES), draw(st.none() | NAMES), latitude, longitude, mentions=mentions)
        if len(posts) > 0 and draw(st.booleans()):
            original = draw(st.sampled_from(posts)).number
            body = replace(body, repost_of=original, text=body.text or "quote")
        return as_reply(body, post_in(draw(st.sampled_from(posts)))) if len(posts) > 0 and draw(st.booleans()) else body
    if kind in ("like", "unlike"):
        liked = draw(st.sampled_from(posts))
        pair = (user, liked.number, post_in(liked).author)
        return Liked(*pair, renewed=draw(st.booleans())) if kind == "like" else Unliked(*pair)
    if kind == "repost":
        reposted = draw(st.sampled_from(posts))
        return Reposted(user, reposted.number, post_in(reposted).author, renewed=draw(st.booleans()))
    if kind == "read":
        return NotificationsRead(user, draw(st.integers(1, user_id(2 * USERS))))
    if kind == "delete":
        return deletion_of(post_in(draw(st.sampled_from(posts))))
    if kind == "pair":
        pair_set = draw(st.sampled_from(PAIRS.pair_sets))
        return pair_set.body_of(user, draw(members_of(pair_set)), begins=draw(st.booleans()))
    if kind == "block":
        return Blocked(user, other) if draw(st.booleans()) else Unblocked(user, other)
    if kind == "list":
        return draw(_list_events(user, other))
    return Followed(user, other, renewed=draw(st.booleans())) if kind == "follow" else Unfollowed(user, other)


def members_of(pair_set: PairSet) -> st.SearchStrategy[str]:
    """Return a few members of a set as the store holds them: texts, or ids of anything."""
    ids: list[int | str] = [user_id(place) for place in range(USERS)]
    texts: list[int | str] = ["f", "", "伟", "a b"]
    return st.sampled_from(ids if pair_set.begun.SUBJECT else texts).map(stored_member)


@st.composite
def _list_events(draw: st.DrawFn, user: int, other: int) -> EventBody:
    """Return an event about a list: mostly a created one, sometimes an unknown or deleted one."""
    name, list_id = draw(NAMES) or "list", draw(st.sampled_from([user_id(place) for place in range(USERS, 4 * USERS)]))
    match draw(st.sampled_from(["create", "create", "change", "change", "delete"])):
        case "create":
            return ListCreated(user, name, (other,) * draw(st.booleans()))
        case "change":
            added, removed = draw(st.sampled_from([((other,), ()), ((), (other,)), ((user,), (other,)), ((), ())]))
            return ListChanged(user, list_id, draw(st.none() | st.just(name)), added, removed)
        case _:
            return ListDeleted(user, list_id)


def post_in(event: Event) -> Post:
    """Return the post that an event publishes."""
    assert isinstance(event.body, PostPublished)
    return published_post(event.number, event.body)


@st.composite
def shuffled(draw: st.DrawFn, events: list[Event]) -> list[list[Event]]:
    """Return the events in a random order, some twice, split into batches."""
    twice = draw(st.lists(st.sampled_from(events), max_size=len(events)))
    order = draw(st.permutations([*events, *twice]))
    batches: list[list[Event]] = [[]]
    for event in order:
        if draw(st.booleans()):
            batches.append([])
        batches[-1].append(event)
    return batches
