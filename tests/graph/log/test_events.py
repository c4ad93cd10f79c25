"""The encoding of events in the store."""

import pytest

from graph import Graph
from graph.log.account_events import UserDeleted, UserErased
from graph.log.encoding import KINDS, Encoded, UnknownKind, decode, decode_entry, encode, encoded_entry, unknown_kind
from graph.log.events import (
    Blocked,
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
from graph.log.moderation_events import Reported, ReportsClosed, StoreRepaired, UserSuspended, UserUnsuspended
from graph.log.numbers import entry_id
from graph.log.pair_events import Bookmarked, BookmarkRemoved, Muted, Unmuted
from graph.model import MAX_NUMBER
from tests.support.graph_worlds import append_events

ATTACHMENT = {"url": "https://example.org/a.png", "alt": "è", "size": [640, 480], "sensitive": False}
ENCODINGS: list[tuple[EventBody, Encoded]] = [
    (
        UserCreated("wei", "伟", "n", "你好"),
        Encoded("UserCreated", None, None, '{"login":"wei","name":"伟","nonce":"n","bio":"你好"}'),
    ),
    (ProfileChanged(1, None, ""), Encoded("ProfileChanged", 1, None, '{"bio":""}')),
    (
        ProfileChanged(1, avatar_url="", website_url="https://example.org"),
        Encoded("ProfileChanged", 1, None, '{"avatar_url":"","website_url":"https://example.org"}'),
    ),
    (PermissionGranted(1, "firehose"), Encoded("PermissionGranted", 1, None, '{"permission":"firehose"}')),
    (PermissionRevoked(1, "firehose"), Encoded("PermissionRevoked", 1, None, '{"permission":"firehose"}')),
    (
        PasswordChanged(1, "wei", "n"),
        Encoded("PasswordChanged", 1, None, '{"login":"wei","nonce":"n"}'),
    ),
    (UserSuspended(1), Encoded("UserSuspended", 1, None, "{}")),
    (UserUnsuspended(1), Encoded("UserUnsuspended", 1, None, "{}")),
    (UserDeleted(1, "ab"), Encoded("UserDeleted", 1, None, '{"login_hash":"ab"}')),
    (UserErased(1), Encoded("UserErased", 1, None, "{}")),
    (
        Reported(1, 2, "SPAM", "", 3),
        Encoded("Reported", 1, 2, '{"reason":"SPAM","comment":"","author":3}'),
    ),
    (Reported(1, 2, "OTHER", "why"), Encoded("Reported", 1, 2, '{"reason":"OTHER","comment":"why"}')),
    (ReportsClosed(2), Encoded("ReportsClosed", None, 2, "{}")),
    (StoreRepaired(), Encoded("StoreRepaired", None, None, "{}")),
    (
        PostDeleted(1, 2, by_operator=True),
        Encoded("PostDeleted", 1, 2, '{"by_operator":true}'),
    ),
    (SessionsEnded(1, ["a", "b"]), Encoded("SessionsEnded", 1, None, '{"sessions":["a","b"]}')),
    (SessionsEnded(1, []), Encoded("SessionsEnded", 1, None, '{"sessions":[]}')),
    (
        PostPublished(1, '"\n\t\u0000𝒳', None, -0.5, 1e-7),
        Encoded("PostPublished", 1, None, r'{"text":"\"\n\t\u0000𝒳","latitude":-0.5,"longitude":1e-7}'),
    ),
    (
        PostPublished(1, "", "web", None, None, 2, 3, 4, (5, 6), (ATTACHMENT,)),
        Encoded(
            "PostPublished",
            1,
            None,
            '{"text":"","platform":"web","reply_to":2,"root":3,"repost_of":4,"mentions":[5,6],"attachments":'
            '[{"url":"https://example.org/a.png","alt":"è","size":[640,480],"sensitive":false}]}',
        ),
    ),
    (
        PostPublished(1, "hi", None, None, None, 4, 2, None, (), (), (2, 3), 5, 6, 7, listed=False),
        Encoded(
            "PostPublished",
            1,
            None,
            '{"text":"hi","reply_to":4,"root":2,"ancestors":[2,3],"reply_to_author":5,"root_author":6,'
            '"repost_of_author":7,"listed":false}',
        ),
    ),
    (PostDeleted(1, MAX_NUMBER), Encoded("PostDeleted", 1, MAX_NUMBER, "{}")),
    (PostDeleted(1, MAX_NUMBER, ""), Encoded("PostDeleted", 1, MAX_NUMBER, '{"terms":""}')),
    (PostDeleted(1, 2, notified=(3, 4)), Encoded("PostDeleted", 1, 2, '{"notified":[3,4]}')),
    (
        PostDeleted(1, 2, None, 3, 4, 5, listed=False),
        Encoded("PostDeleted", 1, 2, '{"reply_to":3,"root":4,"repost_of":5,"listed":false}'),
    ),
    (Reposted(1, 2, 3), Encoded("Reposted", 1, 2, '{"author":3}')),
    (Reposted(1, 2, 3, renewed=True), Encoded("Reposted", 1, 2, '{"author":3,"renewed":true}')),
    (Unreposted(1, 2, 3), Encoded("Unreposted", 1, 2, '{"repost":3}')),
    (Unreposted(1, 2, 3, 4), Encoded("Unreposted", 1, 2, '{"repost":3,"author":4}')),
    (Followed(1, 2), Encoded("Followed", 1, 2, "{}")),
    (Followed(1, 2, renewed=True), Encoded("Followed", 1, 2, '{"renewed":true}')),
    (Unfollowed(1, 2), Encoded("Unfollowed", 1, 2, "{}")),
    (Liked(1, 2, 3), Encoded("Liked", 1, 2, '{"author":3}')),
    (Liked(1, 2, 3, renewed=True), Encoded("Liked", 1, 2, '{"author":3,"renewed":true}')),
    (Unliked(1, 2, 3), Encoded("Unliked", 1, 2, '{"author":3}')),
    (Muted(1, 2), Encoded("Muted", 1, 2, "{}")),
    (Unmuted(1, 2), Encoded("Unmuted", 1, 2, "{}")),
    (Bookmarked(1, 2), Encoded("Bookmarked", 1, 2, "{}")),
    (BookmarkRemoved(1, 2), Encoded("BookmarkRemoved", 1, 2, "{}")),
    (Blocked(1, 2), Encoded("Blocked", 1, 2, "{}")),
    (Unblocked(1, 2), Encoded("Unblocked", 1, 2, "{}")),
    (NotificationsRead(1, MAX_NUMBER), Encoded("NotificationsRead", 1, None, f'{{"upto":{MAX_NUMBER}}}')),
    (ListCreated(1, "伟"), Encoded("ListCreated", 1, None, '{"name":"伟"}')),
    (ListCreated(1, "x", (2, 3)), Encoded("ListCreated", 1, None, '{"name":"x","members":[2,3]}')),
    (ListCreated(1, "x", request="r"), Encoded("ListCreated", 1, None, '{"name":"x","request":"r"}')),
    (ListChanged(1, 5, "y", (2,), (3,)), Encoded("ListChanged", 1, 5, '{"name":"y","added":[2],"removed":[3]}')),
    (ListChanged(1, 5, added=(2,)), Encoded("ListChanged", 1, 5, '{"added":[2]}')),
    (ListDeleted(1, 5), Encoded("ListDeleted", 1, 5, "{}")),
]


def test_every_kind_of_event_is_listed_here() -> None:
    assert {encoded.kind for _, encoded in ENCODINGS} == set(KINDS)


@pytest.mark.parametrize(("body", "encoded"), ENCODINGS)
def test_events_are_encoded_and_decoded(body: EventBody, encoded: Encoded) -> None:
    assert encode(body) == encoded
    assert decode(7, *encoded).body == body


async def test_entries_of_the_log_hold_the_encoded_fields(graph: Graph) -> None:
    """Decoding the fields returns an equal event."""
    bodies = [body for body, _ in ENCODINGS]

    events = await append_events(graph, bodies)

    entries = await graph.store.run("XRANGE", "{log}", "-", "+")
    assert [encoded_entry(entry) for entry in entries] == [encoded for _, encoded in ENCODINGS]
    assert list(map(decode_entry, entries)) == events
    assert [event.body for event in events] == bodies


async def test_an_entry_has_only_the_fields_that_its_event_has(graph: Graph) -> None:
    await append_events(graph, [UserCreated("wei", "Wei", "n"), ProfileChanged(1, "Wei"), Followed(1, 2)])

    entries = await graph.store.run("XRANGE", "{log}", "-", "+")

    assert [fields[::2] for _, fields in entries] == [
        ["kind", "body"],
        ["kind", "actor", "body"],
        ["kind", "actor", "subject", "body"],
    ]


def test_unknown_fields_are_ignored() -> None:
    """A later version may add fields to a body and to an entry."""
    body = '{"text":"hi","language":"en","author":99}'
    fields = ["kind", "PostPublished", "place", "x", "actor", "1", "subject", "5", "body", body]

    event = decode_entry((entry_id(7), fields))

    assert event is not None
    assert event.number == 7
    assert event.body == PostPublished(1, "hi")


def test_the_actor_of_a_new_user_is_ignored() -> None:
    """Rows of the archive have one: the event's own number."""
    event = decode(7, "UserCreated", 7, None, '{"login":"wei","name":"Wei","nonce":"n"}')

    assert event.body == UserCreated("wei", "Wei", "n")


def test_an_unknown_kind_is_reported_with_its_name() -> None:
    """The name is reported whatever the fields are."""
    with pytest.raises(UnknownKind, match="PostPinned") as raised:
        decode(7, "PostPinned", None, None, None)

    assert raised.value.kind == "PostPinned"


@pytest.mark.parametrize(
    ("kind", "actor", "subject", "body"),
    [
        ("Followed", 1, 2, None),
        ("Followed", 1, 2, ""),
        ("Followed", 1, 2, "{"),
        ("Followed", 1, 2, "[]"),
        ("Followed", 1, 2, "null"),
        ("Followed", 1, None, "{}"),
        ("Followed", None, 2, "{}"),
        ("PostPublished", 1, None, "{}"),
        ("PostPublished", 1, None, '{"text":"hi","mentions":3}'),
    ],
)
def test_a_damaged_event_raises_value_error(kind: str, actor: int | None, subject: int | None, body: str) -> None:
    """A damaged event is not mistaken for one of an unknown kind."""
    with pytest.raises(ValueError, match=r"Event 7 of kind .* is damaged") as raised:
        decode(7, kind, actor, subject, body)

    assert not isinstance(raised.value, UnknownKind)


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        ["kind"],
        ["kind", "Followed", "actor", "1", "subject", "2"],
        ["actor", "1", "subject", "2", "body", "{}"],
        ["kind", "Followed", "actor", "x", "subject", "2", "body", "{}"],
        ["kind", "Followed", "actor", "1", "subject", "2", "body", "{"],
        ["event", "x"],
        ["kind", "Follow\udc95d", "actor", "1", "subject", "2", "body", "{}"],
        ["kind", "", "body", "{}"],
    ],
)
def test_removed_and_damaged_entries_are_skipped(fields: list[str] | None) -> None:
    """Their kind does not count as unknown: waiting for a later version would not help."""
    entry = (entry_id(7), fields)

    assert decode_entry(entry) is None
    assert unknown_kind(entry) is None


def test_entries_of_unknown_kinds_are_skipped() -> None:
    """Their kind can be read whatever the other fields are."""
    entry = (entry_id(7), ["later", "x", "kind", "PostPinned"])

    assert decode_entry(entry) is None
    assert unknown_kind(entry) == "PostPinned"
    assert unknown_kind((entry_id(7), ["kind", "Followed", "body", "{"])) is None
