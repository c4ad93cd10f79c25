"""Cost analysis: the maximum cost of an operation is computed before execution."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from graphql import GraphQLInterfaceType, GraphQLObjectType, build_schema, get_named_type, parse

from graph import Graph
from graph.log.events import ProfileChanged
from graph.model import Location
from schema import schema
from server.operations.cost import CostAnalysis, OperationCost, OperationLimits
from server.operations.execution import Execution
from server.operations.parsing import DocumentLimits
from server.operations.weights import BYTES, EXTRA, HOME_PAGE, LEAF, LISTS, PER_ITEM, USUAL, Weights
from server.settings import Settings
from tests.server.conftest import Api, serving

URL = "https://example.org/" + "x" * 480
WEIGHTS = Weights(schema._schema)


def demand(document: str, /, **variables: Any) -> OperationCost:
    return CostAnalysis(WEIGHTS, parse(document), variables).of(None)


def points(document: str, /, **variables: Any) -> int:
    return demand(document, **variables).points


def page(size: str, of: str = "id", argument: str = "first") -> str:
    return f"{{ viewer {{ user {{ followers({argument}: {size}) {{ nodes {{ {of} }} }} }} }} }}"


def test_cost_grows_with_the_page_size() -> None:
    """This holds from either end, for a literal, a variable, or the default of a variable."""
    one, ten, twenty = points(page("1")), points(page("10")), points(page("20"))
    assert (twenty - ten) == pytest.approx((ten - one) / 9 * 10, abs=1)
    assert points(page("10", argument="last")) == ten
    assert points(f"query ($n: Int!) {page('$n')}", n=10) == ten
    assert points(f"query ($n: Int = 10) {page('$n')}") == ten


def test_nested_pages_multiply() -> None:
    """A hundred followers of a hundred followers are ten thousand users."""
    inner = "followers(first: 100) { nodes { id } }"
    assert points(page("100", inner)) > 100 * points(page("1", inner)) * 0.9 > 10_000


def test_a_page_without_selections_costs_its_reads() -> None:
    """The entries are read anyway."""
    bare = '{ user(by: {login: "a"}) { timeline { entries(first: %d) { pageInfo { hasNextPage } } } } }'
    assert points(bare % 100) - points(bare % 1) == pytest.approx(99 * PER_ITEM["Timeline.entries"], abs=1)


def test_points_count_the_usual_length_of_a_list_and_bytes_its_maximum() -> None:
    one, two = (demand(f'{{ post(id: "x") {{ entities {{ {fields} }} }} }}') for fields in ("start", "start end"))
    assert two.points - one.points == pytest.approx(USUAL["Post.entities"] * LEAF, abs=1)
    assert two.size - one.size > LISTS["Post.entities"] * len('"end":0,')


@pytest.mark.parametrize("size", ["100000", "9" * 5000])
def test_page_sizes_beyond_the_maximum_count_as_the_maximum(size: str) -> None:
    """Execution refuses them. A number with thousands of digits is never converted."""
    assert points(page(size)) == points(page("100"))


def test_negative_page_sizes_cost_nothing() -> None:
    """Execution refuses them."""
    assert points(page("-5")) == points(page("0"))


def test_each_id_of_nodes_counts() -> None:
    """`nodes` requests as many objects as it has ids, at most a hundred."""
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { ... on User { followers(first: 2) { nodes { id } } } } }"
    one, many = points(document, ids=["a"]), points(document, ids=["a"] * 50)
    assert many == pytest.approx(50 * one, abs=50)
    assert points(document, ids=["a"] * 5000) == points(document, ids=["a"] * 100)


def test_a_single_id_counts_like_a_list_of_one() -> None:
    """GraphQL coerces a value to a list, in the document and in variables."""
    page = "entries(first: 100) { nodes { ... on Post { text } } }"
    document = f"query ($ids: [ID!]!) {{ nodes(ids: %s) {{ ... on Timeline {{ {page} }} }} }}"
    one = demand(document % "$ids", ids=["a"])
    assert one.points > 500
    assert demand(document % '"a"', ids=[]) == demand(document % "$ids", ids="a") == one


def test_fragments_count_at_each_spread() -> None:
    """Named and inline fragments, on the type itself or on one of its interfaces."""
    plain = points(page("4"))
    assert points("{ viewer { user { ...F } } } fragment F on User { followers(first: 4) { nodes { id } } }") == plain
    assert points("{ viewer { user { ... { followers(first: 4) { nodes { ... on Node { id } } } } } } }") == plain


def test_only_the_executed_operation_counts() -> None:
    """Without a name, the request is refused, and the most expensive operation counts."""
    document = parse(f"query A {{ viewer {{ id }} }} query B {page('9')}")
    cost = CostAnalysis(WEIGHTS, document, {})
    assert cost.of("A").points < cost.of("B").points
    assert cost.of(None) == cost.of("B")
    assert cost.of("C") == OperationCost(0, 0)


def test_home_pages_count_once_per_field() -> None:
    """All parents share one home timeline, which may have to be merged."""
    users = 'user(by: {login: "a"}) { timeline { entries(first: 1) { nodes { id } } } }'
    home = "viewer { homeTimeline { entries(first: 1) { nodes { id } } } }"
    more = HOME_PAGE - EXTRA["Query.user"]
    assert points(f"{{ {home} }}") - points(f"{{ {users} }}") == pytest.approx(more, abs=1)


def test_the_response_size_counts_keys_and_maximum_values() -> None:
    """A text of a thousand characters has up to four thousand bytes, for each alias."""
    aliased = " ".join(f"a{n}: text" for n in range(10))
    post = '{ post(id: "x") { %s } }'
    assert demand(post % aliased).size > 10 * demand(post % "text").size * 0.9 > 36_000
    long = "l" * 200
    assert demand(f"{{ {long}: __typename }}").size == demand("{ __typename }").size + 200 - len("__typename")


@pytest.fixture
async def picturing(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application that shows users' pictures."""
    async with serving(settings.model_copy(update={"media_hosts": ("example.org",)}), graph) as api:
        yield api


async def test_no_response_exceeds_its_computed_size(picturing: Api, graph: Graph) -> None:
    """Values of every kind have their maximum length."""
    api = picturing
    token = await api.token("a" * 30)
    viewer = (await graph.users.ids_of_logins(["a" * 30]))[0]
    assert viewer
    await graph.users.update_profile(viewer, name="\U0001f600" * 50, bio='"' * 300, website_url=URL)
    await graph.commit([ProfileChanged(viewer, avatar_url=URL)])
    for _ in range(3):
        await graph.posts.publish(
            viewer, '"\n"' * 333, platform="\U0001f600" * 30, location=Location(-1.2345678901234567, 1e-7)
        )
        await graph.posts.publish(viewer, "\U0001f600" * 1000)
    author = "id login name bio avatarUrl websiteUrl joinedAt "
    author += "followersCount followingCount postsCount relationship { id state following }"
    post = f"__typename id createdAt author {{ {author} }} "
    post += "... on Post { text platform location { latitude longitude } }"
    ends = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
    edges = f"edges {{ cursor node {{ {post} }} }}"
    nodes = "nodes { ... on Post { text } }"
    posts = f"timeline {{ id kind liveCursor entries(first: 6) {{ {edges} {nodes} {ends} }} }}"
    home = f"homeTimeline {{ id entries(last: 6) {{ {nodes} {ends} }} }}"
    document = f"{{ viewer {{ id user {{ {author} {posts} }} {home} }} }}"
    response = await api.ask(document, token)
    assert "errors" not in response.json()
    sent, counted = len(orjson.dumps(response.json()["data"])), demand(document).size
    assert sent <= counted <= 3 * sent


def test_every_string_field_has_a_maximum_length() -> None:
    """A schema with a string of unknown length is refused at startup, with the name of the field."""
    with pytest.raises(
        ValueError, match=r"server/operations/weights\.py must declare the maximum length of Query\.name"
    ):
        Weights(build_schema("type Query { name: String }"))


def test_every_weight_belongs_to_a_field() -> None:
    types = schema._schema.type_map
    for key in [*EXTRA, *PER_ITEM, *LISTS, *(key for key in BYTES if "." in key)]:
        parent, field = key.split(".")
        type_ = types[parent]
        assert isinstance(type_, GraphQLObjectType | GraphQLInterfaceType)
        assert field.startswith("__") or field in type_.fields, key


def test_every_connection_has_points_per_item() -> None:
    """A field with `first` costs what it reads."""
    for type_ in schema._schema.type_map.values():
        for name, field in getattr(type_, "fields", {}).items() if isinstance(type_, GraphQLObjectType) else ():
            if "first" in field.args and get_named_type(field.type).name.endswith("Connection"):
                assert f"{type_.name}.{name}" in PER_ITEM


def test_mutations_count_their_writes() -> None:
    """Each id of a user to follow is a write, as a literal or in variables."""
    follow = "mutation ($ids: [ID!]!, $input: FollowUsersInput!) { %s { userErrors { code } } }"
    assert demand(follow % "followUsers(input: {userIds: $ids})", ids=["a"] * 7).writes == 7
    assert demand(follow % "followUsers(input: $input)", input={"userIds": ["a"] * 8}).writes == 8
    assert demand(follow % 'followUsers(input: {userIds: ["a", "b"]})').writes == 2
    assert demand(follow % "followUsers(input: $input)", input={"userIds": ["a"] * 5000}).writes == 100
    publish = 'publishPost(input: {text: "a"}) { userErrors { code } }'
    assert demand(f"mutation {{ a: {publish} b: {publish} }}").writes == 2
    assert demand("{ viewer { id } }").writes == 0


def test_password_fields_in_fragments_count() -> None:
    log_in = 'logIn(input: {login: "a", password: "b"}) { userErrors { code } }'
    found = demand(f"mutation {{ ...F ...F a: {log_in} }} fragment F on Mutation {{ b: {log_in} }}")
    assert (found.hashes, found.log_ins, found.sign_ups) == (3, 3, 0)


def test_the_cost_of_deeply_nested_fragments_is_computed() -> None:
    """The limits of documents bound the visited fields."""
    steps = " ".join(
        f"fragment F{n} on User {{ ...F{n + 1} followers(first: 99) {{ nodes {{ id }} }} }}" for n in range(160)
    )
    document = parse(f"{{ viewer {{ user {{ ...F0 }} }} }} {steps} fragment F160 on User {{ id }}")
    assert CostAnalysis(WEIGHTS, document, {}).of(None).points > 10_000


async def test_an_operation_beyond_the_cost_limit_is_refused(api: Api) -> None:
    """The message contains the cost, the limit and what to do."""
    nested = page("100", "followers(first: 100) { nodes { login } }")
    error = (await api.ask(nested)).json()["errors"][0]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert error["message"] == (
        f"The operation costs up to {points(nested):,} points; the limit is 20,000. "
        "Request smaller pages or fewer fields."
    )
    assert "errors" not in (await api.ask(nested.replace("100", "20"))).json()


async def test_an_operation_whose_response_could_be_too_large_is_refused(api: Api) -> None:
    """A small document that requests long texts under many aliases is not executed."""
    texts = " ".join(f"a{n}: text" for n in range(100))
    page = f"entries(first: 20) {{ nodes {{ ... on Post {{ {texts} }} }} }}"
    document = f'{{ user(by: {{login: "a"}}) {{ timeline {{ {page} }} }} }}'
    error = (await api.ask(document)).json()["errors"][0]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert "bytes; the limit is 5,000,000" in error["message"]


async def test_events_have_a_lower_limit(api: Api) -> None:
    """An event may go to a thousand streams of one viewer. A page of posts is allowed; a hundred texts are not."""
    document = 'subscription {{ events(filter: {{keywords: ["x"]}}) {{ ... on PostAdded {{ post {{ {0} }} }} }} }}'
    page = "id text author { login timeline { entries(first: 20) { nodes { id ... on Post { text } } } } }"
    execution = Execution(schema, DocumentLimits(), OperationLimits(), introspection=False)
    assert execution.pin(document.format(page)) == []
    many = document.format(" ".join(f"a{n}: text" for n in range(30)))
    stream = await api.client.post("/graphql", json={"query": many}, headers={"accept": "text/event-stream"})
    assert "bytes; the limit is 100,000" in stream.text


async def test_an_operation_writes_at_most_a_hundred_log_entries(api: Api) -> None:
    """The limit covers all its fields, because a rate can charge at most its burst."""
    follow = "mutation ($ids: [ID!]!) { a: followUsers(input: {userIds: $ids}) { __typename } %s }"
    token = await api.token("alice")
    assert "errors" not in (await api.ask(follow % "", token, ids=["VXNlcjox"] * 100)).json()
    refused = await api.ask(
        follow % "b: unfollowUsers(input: {userIds: $ids}) { __typename }", token, ids=["VXNlcjox"] * 100
    )
    [error] = refused.json()["errors"]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert error["message"] == (
        "The operation writes up to 200 log entries; the limit is 100. Split it into smaller operations."
    )


async def test_an_operation_checks_at_most_one_password(api: Api) -> None:
    """A hundred log-ins in one request would take as long as a hundred requests."""
    log_ins = " ".join(
        f'a{n}: logIn(input: {{login: "a", password: "b"}}) {{ userErrors {{ code }} }}' for n in range(2)
    )
    error = (await api.ask(f"mutation {{ {log_ins} }}")).json()["errors"][0]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert error["message"] == (
        "The operation has 2 fields that check or set a password; the limit is 1. Send them in separate operations."
    )


PAGE = "followers(first: %s) { nodes { %s } }"
DEEP = "{ viewer { user { " + PAGE % ("%s", PAGE % ("%s", PAGE % (100, "login"))) + " } } }"


@pytest.mark.parametrize(
    "body",
    [
        {"query": DEEP % (100, 100), "operationName": ""},
        {"query": "query D($n: Int!) " + DEEP % ("$n", "$n"), "variables": {"n": 100.0}},
    ],
    ids=["an empty operation name", "page sizes as floats"],
)
async def test_no_spelling_of_a_request_evades_the_cost_limit(api: Api, body: dict[str, Any]) -> None:
    """A request for two million objects is refused however it is written."""
    response = await api.client.post("/graphql", json=body)
    assert [error["extensions"]["code"] for error in response.json()["errors"]] == ["COST_LIMIT"]
