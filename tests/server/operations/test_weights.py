"""Weights of fields whose arguments look like page sizes, and of the fields of interfaces."""

from typing import Any

import pytest
from graphql import GraphQLInterfaceType, GraphQLObjectType, parse

from graph.log.notification_groups import DEFAULT_ACTORS, MAX_ACTORS
from graph.posts.publication import MAX_ANCESTORS
from schema import schema
from server.operations.cost import CostAnalysis, OperationCost
from server.operations.weights import BYTES, EXTRA, HOME_PAGE, LEAF, LIST_PAGE, Weights

WEIGHTS = Weights(schema._schema)
HOME = "{ viewer { homeTimeline { %s } } }"
LISTS = "{ viewer { lists { timeline { %s } } } }"
FEED = "{ viewer { notifications { %s } } }"
NODES = 'query ($n: Int) { nodes(ids: ["a", "b"]) { ... on Timeline { %s } } }'
THREAD = '{ post(id: "x") { %s } }'
SEARCH = '{ searchPosts(filter: {keywords: ["a"]}) { %s } }'
PAGES = {SEARCH: "posts", THREAD: "replies"}


def demand(document: str, /, **variables: Any) -> OperationCost:
    return CostAnalysis(WEIGHTS, parse(document), variables).of(None)


@pytest.mark.parametrize(
    "list_", [HOME, LISTS, FEED, NODES, SEARCH, THREAD], ids=["home", "lists", "feed", "nodes", "search", "thread"]
)
@pytest.mark.parametrize("paging", ["(first: 30)", '(last: 100, before: "x")', "(first: $n)"])
def test_a_live_cursor_is_no_page(list_: str, paging: str) -> None:
    """It has the arguments of the page next to it but reads none, so one document serves all pages."""
    assert demand(list_ % f"liveCursor{paging}", n=100) == demand(list_ % "liveCursor")
    page = f"{PAGES.get(list_, 'entries')}(first: 3) {{ nodes {{ id }} }}"
    alone, both = (demand(list_ % f"{page} {more}", n=100) for more in ("", f"liveCursor{paging}"))
    assert both.points - alone.points <= 1 + 50 * LEAF < min(HOME_PAGE, LIST_PAGE)


@pytest.mark.parametrize(
    ("event", "read"),
    [
        ('thread(postId: "x") { ... on PostChanged { post { %s } } }', EXTRA["PostChanged.post"]),
        ('thread(postId: "x") { ... on ReplyAdded { reply { %s } } }', 0),
        ('timeline(timelineId: "x") { ... on PostAdded { post { %s } } }', 0),
        ("homeTimeline { ... on PostAdded { post { %s } } }", 0),
    ],
)
def test_an_event_pays_for_what_it_reads(event: str, read: float) -> None:
    """Most events come with their post. Below the post, a field costs as much as elsewhere."""
    bare, full = (demand(f"subscription {{ {event % fields} }}") for fields in ("id", "id author { login }"))
    assert read < bare.points <= read + 3
    assert full.points - bare.points == pytest.approx(EXTRA["TimelineItem.author"] + 1, abs=1)


def test_the_viewer_costs_only_what_is_selected() -> None:
    """The viewer is known from the token; the viewer's user is read."""
    assert demand("{ viewer { id } }").points == 2
    assert demand("{ viewer { user { id } } }").points == pytest.approx(2 + EXTRA["Viewer.user"] + 1, abs=1)
    assert demand("{ viewer { homeTimeline { id kind } } }").points <= 3


def test_a_chosen_kind_costs_like_all() -> None:
    """The same list is read to find its notifications."""
    page = "entries(first: 30%s) { nodes { id } }"
    assert demand(FEED % page % ", kinds: [FOLLOW, LIKE]").points == demand(FEED % page % "").points


@pytest.mark.parametrize(
    ("document", "default", "maximum"),
    [
        (FEED % "entries(first: 2) { nodes { actors%s { name } } }", DEFAULT_ACTORS, MAX_ACTORS),
        (FEED % "entries(first: 2) { nodes { ... on LikeNotification { actors%s { name } } } }", 3, 10),
        ('{ post(id: "x") { ancestors%s { text } } }', MAX_ANCESTORS, MAX_ANCESTORS),
    ],
)
def test_a_limit_is_the_length_of_a_list(document: str, default: int, maximum: int) -> None:
    """It is a literal, a variable, or the default of the argument if the variable is omitted."""
    document = f"query ($n: Int) {document}"
    one, three, five = (demand(document % f"(limit: {n})") for n in (1, 3, 5))
    assert five.points - one.points == pytest.approx(2 * (three.points - one.points), abs=2)
    assert five.size - one.size == 2 * (three.size - one.size) > 0
    assert demand(document % "(limit: $n)", n=5).points == five.points
    assert demand(document % "(limit: $n)").points == demand(document % f"(limit: {default})").points
    assert demand(document % "").points >= demand(document % f"(limit: {default})").points
    assert demand(document % "").size == demand(document % f"(limit: {maximum})").size


def test_fields_of_an_interface_weigh_the_same_in_its_types() -> None:
    """Clients select them on the interface or in fragments on the types."""
    types = schema._schema.type_map.values()
    for interface in (each for each in types if isinstance(each, GraphQLInterfaceType) and each.name != "Node"):
        for type_ in schema._schema.get_possible_types(interface):
            assert isinstance(type_, GraphQLObjectType)
            for field in set(interface.fields) - {"id"}:
                assert WEIGHTS.of(type_.name, field) == WEIGHTS.of(interface.name, field), f"{type_.name}.{field}"


def test_both_fields_about_unread_notifications_pay_for_counting() -> None:
    least = EXTRA["NotificationFeed.unreadCount"]
    assert demand(FEED % "unreadCount").points == demand(FEED % "hasMoreUnread").points > least


def test_credentials_have_room_for_a_token() -> None:
    document = 'mutation { logIn(input: {login: "a", password: "b"}) { credentials { %s } } }'
    assert demand(document % "token expiresAt").size - demand(document % "expiresAt").size > BYTES["Credentials.token"]
