"""Nested pages multiply, and long values are repeated: what an operation may take is counted before it runs."""

import time
from typing import Any

import orjson
import pytest
from graphql import GraphQLInterfaceType, GraphQLObjectType, build_schema, get_named_type, parse

from graph import Graph
from graph.model import Location
from schema import schema
from server.operations.cost import CostAnalysis, OperationCost
from server.operations.document_size import DocumentLimits
from server.operations.execution import Execution
from server.operations.preparation import OperationLimits
from server.operations.weights import BYTES, EXTRA, HOME_PAGE, LISTS, PER_ITEM, Weights
from tests.server.conftest import Api

WEIGHTS = Weights(schema._schema)


def demand(document: str, /, **variables: Any) -> OperationCost:
    return CostAnalysis(WEIGHTS, parse(document), variables).of(None)


def points(document: str, /, **variables: Any) -> int:
    return demand(document, **variables).points


def page(size: str, of: str = "id", argument: str = "first") -> str:
    return f"{{ viewer {{ followers({argument}: {size}) {{ nodes {{ {of} }} }} }} }}"


def test_a_page_counts_as_often_as_it_is_long() -> None:
    """The same from either end; by a literal, a variable, or the variable's default."""
    one, ten, twenty = points(page("1")), points(page("10")), points(page("20"))
    assert (twenty - ten) == pytest.approx((ten - one) / 9 * 10, abs=1)
    assert points(page("10", argument="last")) == ten
    assert points(f"query ($n: Int!) {page('$n')}", n=10) == ten
    assert points(f"query ($n: Int = 10) {page('$n')}") == ten


def test_nested_pages_multiply() -> None:
    """A hundred followers of a hundred followers are ten thousand users."""
    inner = "followers(first: 100) { nodes { id } }"
    assert points(page("100", inner)) > 100 * points(page("1", inner)) * 0.9 > 10_000


def test_a_page_costs_what_it_reads_even_if_nothing_of_it_is_selected() -> None:
    """The entries are looked up all the same."""
    bare = '{ user(by: {login: "a"}) { timeline { posts(first: %d) { pageInfo { hasNextPage } } } } }'
    assert points(bare % 100) - points(bare % 1) == pytest.approx(99 * PER_ITEM["Timeline.posts"], abs=1)


@pytest.mark.parametrize("size", ["100000", "9" * 5000])
def test_more_than_the_largest_page_counts_as_that(size: str) -> None:
    """It is refused when it is read; a number of thousands of digits is never converted."""
    assert points(page(size)) == points(page("100"))


def test_negative_sizes_count_nothing() -> None:
    """They are refused when they are read."""
    assert points(page("-5")) == points(page("0"))


def test_looked_up_ids_count_each() -> None:
    """`nodes` asks for as many objects as it has ids, at most a hundred."""
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { ... on User { followers(first: 2) { nodes { id } } } } }"
    one, many = points(document, ids=["a"]), points(document, ids=["a"] * 50)
    assert many == pytest.approx(50 * one, abs=50)
    assert points(document, ids=["a"] * 5000) == points(document, ids=["a"] * 100)


def test_a_lone_id_counts_like_a_list_of_one() -> None:
    """GraphQL takes a value for a list of it, written in the document or sent as a variable."""
    document = "query ($ids: [ID!]!) { nodes(ids: %s) { ... on Timeline { posts(first: 100) { nodes { text } } } } }"
    one = demand(document % "$ids", ids=["a"])
    assert one.points > 500
    assert demand(document % '"a"', ids=[]) == demand(document % "$ids", ids="a") == one


def test_fragments_count_wherever_they_are_spread() -> None:
    """Named and inline ones, on the type itself or an interface of it."""
    plain = points(page("4"))
    assert points("{ viewer { ...F } } fragment F on User { followers(first: 4) { nodes { id } } }") == plain
    assert points("{ viewer { ... { followers(first: 4) { nodes { ... on Node { id } } } } } }") == plain


def test_only_the_operation_that_runs_is_counted() -> None:
    """Of several without a name, which is refused anyway, the dearest counts."""
    document = parse(f"query A {{ viewer {{ id }} }} query B {page('9')}")
    cost = CostAnalysis(WEIGHTS, document, {})
    assert cost.of("A").points < cost.of("B").points
    assert cost.of(None) == cost.of("B")
    assert cost.of("C") == OperationCost(0, 0)


def test_home_pages_count_once_for_each_place_in_the_document() -> None:
    """There is only one home timeline, so that it does not multiply; but it may have to be merged."""
    users = 'user(by: {login: "a"}) { timeline { posts(first: 1) { nodes { id } } } }'
    home = "viewer { homeTimeline { posts(first: 1) { nodes { id } } } }"
    assert points(f"{{ {home} }}") - points(f"{{ {users} }}") == pytest.approx(HOME_PAGE, abs=1)


def test_the_size_of_a_response_counts_keys_and_the_longest_values() -> None:
    """A text of a thousand characters has up to four thousand bytes, under each of its aliases."""
    aliased = " ".join(f"a{n}: text" for n in range(10))
    post = '{ post(id: "x") { %s } }'
    assert demand(post % aliased).size > 10 * demand(post % "text").size * 0.9 > 36_000
    long = "l" * 200
    assert demand(f"{{ {long}: __typename }}").size == demand("{ __typename }").size + 200 - len("__typename")


async def test_no_response_is_larger_than_was_counted(api: Api, graph: Graph) -> None:
    """The greatest values of every kind fit into the bound."""
    token = await api.token("a" * 30)
    viewer = (await graph.users.ids_of_logins(["a" * 30]))[0]
    assert viewer
    await graph.users.update_profile(viewer, name="\U0001f600" * 50, bio='"' * 300)
    for _ in range(3):
        await graph.posts.publish(
            viewer, '"\n"' * 333, platform="\U0001f600" * 30, location=Location(-1.2345678901234567, 1e-7)
        )
        await graph.posts.publish(viewer, "\U0001f600" * 1000)
    author = "id login name bio joinedAt followersCount followingCount postsCount relationship { id state following }"
    post = f"__typename id text createdAt platform location {{ latitude longitude }} author {{ {author} }}"
    ends = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
    edges = f"edges {{ cursor node {{ {post} }} }}"
    posts = f"timeline {{ id kind posts(first: 6) {{ liveCursor {edges} nodes {{ text }} {ends} }} }}"
    document = f"{{ viewer {{ {author} {posts} homeTimeline {{ id posts(last: 6) {{ nodes {{ text }} {ends} }} }} }} }}"
    response = await api.ask(document, token)
    assert "errors" not in response.json()
    sent, counted = len(orjson.dumps(response.json()["data"])), demand(document).size
    assert sent <= counted <= 3 * sent


def test_every_field_of_type_string_has_a_bound() -> None:
    """A schema with a string of unknown length is refused at the start, naming the field."""
    with pytest.raises(
        ValueError, match=r"server/operations/weights\.py must declare the maximum length of Query\.name"
    ):
        Weights(build_schema("type Query { name: String }"))


def test_every_weight_is_that_of_a_field() -> None:
    """What is no longer in the schema has no weight either."""
    types = schema._schema.type_map
    for key in [*EXTRA, *PER_ITEM, *LISTS, *(key for key in BYTES if "." in key)]:
        parent, field = key.split(".")
        type_ = types[parent]
        assert isinstance(type_, GraphQLObjectType | GraphQLInterfaceType)
        assert field.startswith("__") or field in type_.fields, key


def test_every_connection_has_a_price_for_its_items() -> None:
    """Whatever takes `first` is paid for by what it reads."""
    for type_ in schema._schema.type_map.values():
        for name, field in getattr(type_, "fields", {}).items() if isinstance(type_, GraphQLObjectType) else ():
            if "first" in field.args and get_named_type(field.type).name.endswith("Connection"):
                assert f"{type_.name}.{name}" in PER_ITEM


def test_mutations_count_what_they_write() -> None:
    """Each id of a user to follow is a write; the ids may be written out or come in variables."""
    follow = "mutation ($ids: [ID!]!, $input: FollowInput!) { %s { userErrors { code } } }"
    assert demand(follow % "follow(input: {userIds: $ids})", ids=["a"] * 7).writes == 7
    assert demand(follow % "follow(input: $input)", input={"userIds": ["a"] * 8}).writes == 8
    assert demand(follow % 'follow(input: {userIds: ["a", "b"]})').writes == 2
    assert demand(follow % "follow(input: $input)", input={"userIds": ["a"] * 5000}).writes == 100
    publish = 'publishPost(input: {text: "a"}) { userErrors { code } }'
    assert demand(f"mutation {{ a: {publish} b: {publish} }}").writes == 2
    assert demand("{ viewer { id } }").writes == 0


def test_fields_that_hash_are_counted_in_fragments_too() -> None:
    """However they are written."""
    log_in = 'logIn(input: {login: "a", password: "b"}) { userErrors { code } }'
    found = demand(f"mutation {{ ...F ...F a: {log_in} }} fragment F on Mutation {{ b: {log_in} }}")
    assert (found.hashes, found.log_ins, found.sign_ups) == (3, 3, 0)


def test_nested_fragments_are_counted_in_time() -> None:
    """The limits of documents bound what is visited: a thousand selections take a few milliseconds."""
    steps = " ".join(
        f"fragment F{n} on User {{ ...F{n + 1} followers(first: 99) {{ nodes {{ id }} }} }}" for n in range(160)
    )
    document = parse(f"{{ viewer {{ ...F0 }} }} {steps} fragment F160 on User {{ id }}")
    start = time.process_time()
    assert CostAnalysis(WEIGHTS, document, {}).of(None).points > 10_000
    assert time.process_time() - start < 0.5


async def test_an_operation_that_asks_for_too_much_is_refused(api: Api) -> None:
    """The error says how much it was, the limit, and what to do."""
    nested = page("100", "followers(first: 100) { nodes { login } }")
    error = (await api.ask(nested)).json()["errors"][0]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert error["message"] == (
        f"The operation costs up to {points(nested):,} points; the limit is 20,000. "
        "Request smaller pages or fewer fields."
    )
    assert "errors" not in (await api.ask(nested.replace("100", "20"))).json()


async def test_an_operation_whose_response_could_be_too_large_is_refused(api: Api) -> None:
    """A small document that asks for long texts under many aliases never runs."""
    texts = " ".join(f"a{n}: text" for n in range(100))
    document = f'{{ user(by: {{login: "a"}}) {{ timeline {{ posts(first: 20) {{ nodes {{ {texts} }} }} }} }} }}'
    error = (await api.ask(document)).json()["errors"][0]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert "bytes; the limit is 5,000,000" in error["message"]


async def test_an_event_is_small(api: Api) -> None:
    """It may go to a thousand streams of one viewer: a page of posts has room, a text a hundred times has not."""
    document = 'subscription {{ events(filter: {{keywords: ["x"]}}) {{ ... on PostPublished {{ post {{ {0} }} }} }} }}'
    page = "id text author { login timeline { posts(first: 20) { nodes { id text } } } }"
    execution = Execution(schema, DocumentLimits(), OperationLimits(), introspection=False)
    assert execution.preparation.pin(document.format(page)) == []
    many = document.format(" ".join(f"a{n}: text" for n in range(30)))
    stream = await api.client.post("/graphql", json={"query": many}, headers={"accept": "text/event-stream"})
    assert "bytes; the limit is 100,000" in stream.text


async def test_a_mutation_writes_a_hundred_entries_at_most(api: Api) -> None:
    """Whatever the number of its fields: rates charge at most a burst."""
    follow = "mutation ($ids: [ID!]!) { a: follow(input: {userIds: $ids}) { __typename } %s }"
    token = await api.token("alice")
    assert "errors" not in (await api.ask(follow % "", token, ids=["VXNlcjox"] * 100)).json()
    refused = await api.ask(
        follow % "b: unfollow(input: {userIds: $ids}) { __typename }", token, ids=["VXNlcjox"] * 100
    )
    [error] = refused.json()["errors"]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert error["message"] == (
        "The operation writes up to 200 log entries; the limit is 100. Split it into smaller operations."
    )


async def test_one_password_is_checked_in_a_document(api: Api) -> None:
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
DEEP = "{ viewer { " + PAGE % ("%s", PAGE % ("%s", PAGE % (100, "login"))) + " } }"


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
