"""Hostile sizes that multiply in conversation operations: aliases, ids, lists and pages."""

from typing import Any

import orjson
import pytest
from graphql import parse

from graph.people.lists import MAX_LISTS
from resolvers import ids
from schema import schema
from server.operations.cost import MAX_WRITES, CostAnalysis, OperationCost
from server.operations.weights import LIST_PAGE, Weights
from tests.server.conftest import Api

WEIGHTS = Weights(schema._schema)
STRANGERS = ids.encode_all(ids.Kind.USER, range(1, 101))
ERRORS = "{ userErrors { code field message params { name value } } }"
SEARCH = 'searchPosts(filter: {keywords: ["a"]}) { ...Page }'
USERS = 'searchUsers(text: "a", first: $n) { nodes { id } }'
POSTS = "posts(first: $n) { nodes { id } }"
ENTRIES = "entries(first: $n) { nodes { id } }"


def demand(document: str, /, **variables: Any) -> OperationCost:
    return CostAnalysis(WEIGHTS, parse(document), variables).of(None)


def aliased(times: int, field: str) -> str:
    """Return a field under many aliases. In the field, `$n` is the number of the alias, from 1."""
    return " ".join(f"a{n}: {field.replace('$n', str(n))}" for n in range(1, times + 1))


@pytest.mark.parametrize(
    "change",
    [
        'createList(input: {name: "x", userIds: $ids})',
        'updateList(input: {listId: "x", addUserIds: $ids})',
        'updateList(input: {listId: "x", removeUserIds: $ids})',
        'updateList(input: {listId: "x", addUserIds: $ids, removeUserIds: $ids})',
    ],
)
async def test_each_member_of_a_list_counts_as_a_write(api: Api, change: str) -> None:
    """A hundred aliases must not change ten thousand members: each one is looked up and written to the log."""
    document = f"mutation ($ids: [ID!]!) {{ a: {change} {{ __typename }} %s }}"
    assert demand(document % "", ids=STRANGERS).writes == MAX_WRITES
    assert demand(document % f"b: {change} {{ __typename }}", ids=STRANGERS).writes == 2 * MAX_WRITES
    token = await api.token("alice")
    assert "errors" not in (await api.ask(document % "", token, ids=STRANGERS)).json()
    refused = await api.ask(document % f"b: {change} {{ __typename }}", token, ids=STRANGERS)
    assert [each["extensions"]["code"] for each in refused.json()["errors"]] == ["COST_LIMIT"]
    given = "mutation ($input: UpdateListInput!) { updateList(input: $input) { __typename } }"
    assert demand(given, input={"listId": "x", "addUserIds": ["a"] * 3, "removeUserIds": ["b"] * 7}).writes == 7


async def test_a_page_of_each_list_costs_a_merge_for_each(api: Api) -> None:
    """The home timeline differs: all its parents share a page. Pages of other sizes need additional merges."""
    every = "{ viewer { lists { timeline { %s } } } }"
    one, two, three = (demand(every % aliased(n, ENTRIES)).points for n in (1, 2, 3))
    assert two - one == pytest.approx(three - two, rel=0.1)
    assert two - one > MAX_LISTS * LIST_PAGE
    token = await api.token("alice")
    assert "errors" not in (await api.ask(every % aliased(2, ENTRIES), token)).json()
    refused = await api.ask(every % aliased(4, ENTRIES), token)
    assert [each["extensions"]["code"] for each in refused.json()["errors"]] == ["COST_LIMIT"]
    by_id = "query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Timeline { entries(first: 1) { nodes { id } } } } }"
    ten, twenty = (demand(by_id, ids=["x"] * n).points for n in (10, 20))
    assert twenty - ten > 10 * LIST_PAGE


def test_small_pages_of_notifications_are_not_cheap() -> None:
    """A page may read all of the thousand notifications if none of their actors is visible."""
    pages = aliased(100, "entries(first: 1) { pageInfo { endCursor } }")
    assert (
        demand(f"{{ viewer {{ notifications {{ {pages} }} }} }}").points
        > 100 * demand("{ viewer { notifications { unreadCount } } }").points
    )


HOSTILE = {
    "searches": (
        f"{{ {aliased(100, SEARCH)} }} fragment Page on PostSearch {{ posts(first: 1) {{ nodes {{ id }} }} }}"
    ),
    "pages": f'{{ searchPosts(filter: {{keywords: ["a"]}}) {{ {aliased(100, POSTS)} }} }}',
    "users": f"{{ {aliased(100, USERS)} }}",
    "mentions": (
        "{ publicTimeline { entries(first: 100) { nodes { ... on Post { entities { ... on MentionEntity { user { "
        "timeline { entries(first: 9) { nodes { id } } } } } } } } } } }"
    ),
    "actors": (
        "{ viewer { notifications { entries(first: 100) { nodes { actors(limit: 10) { timeline { entries(first: 9) { "
        "nodes { id } } } } } } } } }"
    ),
    "followers you know": (
        "{ viewer { user { followers(first: 90) { nodes { followersYouKnow(first: 100) { nodes { id } } } } } } }"
    ),
    "likes": (
        "{ publicTimeline { entries(first: 100) { nodes { ... on Post { likes(first: 100) { nodes { login } } } } } } }"
    ),
    "ancestors": "{ publicTimeline { entries(first: 100) { nodes { ... on Post { ancestors { text } } } } } }",
}


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
async def test_sizes_that_multiply_are_refused(api: Api, document: str) -> None:
    """They are refused before anything is read."""
    before = api.app.state.graph.store.round_trips
    token = await api.token("alice")
    error = (await api.ask(document, token)).json()["errors"][0]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert api.app.state.graph.store.round_trips - before <= 1, "the session is checked at most"


BAD_FILE = {"kind": "IMAGE", "url": "x", "previewUrl": "", "width": 0, "alt": "\x00"}
BAD_POST = {
    "text": "\x00 " + "#a " * 600,
    "platform": "x\n" * 30,
    "location": {"latitude": 99, "longitude": 999},
    "attachments": [BAD_FILE] * 4,
    "idempotencyKey": "",
}
BAD_LIST = {"name": "\t", "userIds": STRANGERS}
BAD_CHANGE = {"listId": ids.encode(ids.Kind.LIST, 1), "addUserIds": STRANGERS, "removeUserIds": STRANGERS}


@pytest.mark.parametrize(
    ("mutation", "given", "mistakes"),
    [
        ("createList", BAD_LIST, 101),
        ("updateList", BAD_CHANGE | {"name": "x" * 51}, 201),
        ("publishPost", BAD_POST, 27),
    ],
)
async def test_no_list_of_errors_exceeds_its_computed_size(
    api: Api, mutation: str, given: dict[str, Any], mistakes: int
) -> None:
    """The input contains as many mistakes as possible."""
    type_ = mutation[0].upper() + mutation[1:] + "Input!"
    document = f"mutation ($input: {type_}) {{ {mutation}(input: $input) {ERRORS} }}"
    data = (await api.ask(document, await api.token("alice"), input=given)).json()["data"]
    assert len(data[mutation]["userErrors"]) == mistakes
    assert len(orjson.dumps(data)) <= demand(document, input=given).size
