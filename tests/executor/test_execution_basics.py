"""What a selection of fields gives: values, arguments, what resolvers are told, the order of keys, and operations."""

from types import SimpleNamespace
from typing import Any

import pytest
from graphql import (
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLFloat,
    GraphQLID,
    GraphQLInt,
    GraphQLList,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLString,
    build_schema,
    parse,
    print_ast,
)

from executor import Executor
from tests.executor.tiny import ask, ask_both, in_batches, messages, numbered, resolved, schema_of

PEOPLE = build_schema("""
  type Person { name: String  friend: Person  friends: [Person]  greeting(to: String = "you"): String }
  type Query { person: Person  count: Int }
""")


async def test_default_resolution_reads_mappings_attributes_and_calls_methods() -> None:
    """Keys of a mapping, attributes of an object; what can be called is, with `info` and the arguments."""

    class Person:
        def __init__(self) -> None:
            self.name = "Ada"
            self.friend = {"name": "Bob", "friend": None, "greeting": lambda info, to: f"{info.field_name} {to}"}

        def greeting(self, info: GraphQLResolveInfo, to: str) -> str:
            return f"Hello, {to}"

    document = '{ person { name greeting friends { name } friend { name friend { name } greeting(to: "me") } } count }'
    result = await ask_both(PEOPLE, document, root_value={"person": Person()})
    assert result.data == {
        "person": {
            "name": "Ada",
            "greeting": "Hello, you",
            "friends": None,
            "friend": {"name": "Bob", "friend": None, "greeting": "greeting me"},
        },
        "count": None,
    }


async def test_no_root_value_is_no_error() -> None:
    """What nobody has is null."""
    assert (await ask_both(PEOPLE, "{ person { name } count }")).data == {"person": None, "count": None}


async def test_keys_come_in_the_order_of_the_document() -> None:
    """Whoever is there first."""

    async def late(*_: Any) -> str:
        return "late"

    fields = {
        "a": resolved(GraphQLString, late),
        "b": resolved(GraphQLString, lambda *_: "now"),
        "c": in_batches(GraphQLString, lambda parents, context: ["batch" for _ in parents]),
        "d": resolved(GraphQLString),
    }
    result = await ask(schema_of(fields), "{ d a c again: b b a: a }", root_value=SimpleNamespace(d=4))
    assert list(result.data or {}) == ["d", "a", "c", "again", "b"]
    assert result.data == {"d": "4", "a": "late", "c": "batch", "again": "now", "b": "now"}


async def test_selections_that_meet_under_one_key_are_merged() -> None:
    """From fragments and from repeated fields; a key stands where it was met first."""
    document = """
      query { person { ...Named friend { name } } ... { person { friend { friend { name } } name } count } }
      fragment Named on Person { friend { ...Plain } name }
      fragment Plain on Person { __typename }
    """
    friend = {"name": "Bob", "friend": {"name": "Cy"}}
    result = await ask_both(PEOPLE, document, root_value={"person": {"name": "Ada", "friend": friend}, "count": 1})
    assert result.data == {
        "person": {"friend": {"__typename": "Person", "name": "Bob", "friend": {"name": "Cy"}}, "name": "Ada"},
        "count": 1,
    }
    assert list((result.data or {})["person"]) == ["friend", "name"]
    assert list((result.data or {})["person"]["friend"]) == ["__typename", "name", "friend"]


async def test_the_type_name_can_be_asked_for_anywhere() -> None:
    """At the root as well, and under any key."""
    result = await ask_both(PEOPLE, "{ __typename person { kind: __typename } }", root_value={"person": {}})
    assert result.data == {"__typename": "Query", "person": {"kind": "Person"}}


async def test_a_resolver_is_told_where_it_stands() -> None:
    """All that `info` holds: names, types, nodes, path, operation, fragments, variables, root and context."""
    infos: list[GraphQLResolveInfo] = []

    def look(source: Any, info: GraphQLResolveInfo, **_: Any) -> str:
        infos.append(info)
        return "seen"

    schema = numbered({"seen": resolved(GraphQLString, look, n=GraphQLInt)})
    document = """
      query Look($n: Int = 2) { all: items(count: 2) { it: seen(n: $n) ...Part } }
      fragment Part on Item { it: seen(n: $n) }
    """
    await ask(schema, document, root_value="root", context_value="context")
    info = infos[1]
    assert (info.field_name, str(info.return_type), str(info.parent_type)) == ("seen", "String", "Item")
    assert info.path.as_list() == ["all", 1, "it"]
    assert (info.path.typename, info.path.prev.prev.typename) == ("Item", "Query")  # type: ignore[union-attr]  # it has
    assert [node.alias.value for node in info.field_nodes if node.alias] == ["it", "it"]
    assert (info.root_value, info.context, info.schema) == ("root", "context", schema)
    assert print_ast(info.operation).startswith("query Look(")
    assert list(info.fragments) == ["Part"]
    assert info.variable_values.coerced == {"n": 2}


async def test_leaves_are_coerced_as_the_specification_says() -> None:
    """Numbers from strings and truth values, strings from numbers; what cannot be is an error that names it."""
    shade = GraphQLEnumType("Shade", {"DARK": 1, "PALE": 2})
    types = {
        "int": GraphQLInt,
        "float": GraphQLFloat,
        "string": GraphQLString,
        "boolean": GraphQLBoolean,
        "id": GraphQLID,
        "shade": shade,
    }
    schema = schema_of({name: resolved(GraphQLList(type_)) for name, type_ in types.items()})
    root = {
        "int": [True, "7", 3.0, 2**31, 1.5, "x", float("nan")],
        "float": [1, "2.5", True, float("inf"), 10**400, ""],
        "string": [1, True, 2.5, [], b"x"],
        "boolean": [1, 0.0, "yes"],
        "id": [4, 4.0, True],
        "shade": [1, 2, 3, [], None],
    }
    result = await ask_both(schema, "{ int float string boolean id shade }", root_value=root)
    assert result.data == {
        "int": [1, 7, 3, None, None, None, None],
        "float": [1.0, 2.5, 1.0, None, None, None],
        "string": ["1", "true", "2.5", None, None],
        "boolean": [True, False, None],
        "id": ["4", "4", None],
        "shade": ["DARK", "PALE", None, None, None],
    }
    assert len(result.errors or []) == 4 + 3 + 2 + 1 + 1 + 2


async def test_arguments_and_their_defaults_reach_the_resolver() -> None:
    """Batch resolvers take them as keywords as well, once for all parents."""
    calls: list[dict[str, Any]] = []

    def all_told(parents: Any, context: Any, **arguments: Any) -> list[str]:
        calls.append(arguments)
        return [f"{parent} {arguments}" for parent in parents]

    def told(source: Any, info: Any, **arguments: Any) -> str:
        return str(arguments)

    arguments = {"n": GraphQLInt, "words": GraphQLList(GraphQLString)}
    schema = numbered(
        {"all": in_batches(GraphQLString, all_told, **arguments), "one": resolved(GraphQLString, told, **arguments)}
    )
    result = await ask(schema, '{ items(count: 2) { all(words: "one", n: null) one(n: 3) } }')
    arguments_told = {"n": None, "words": ["one"]}
    assert result.data == {
        "items": [{"all": f"{parent} {arguments_told}", "one": "{'n': 3}"} for parent in range(2)],
    }
    assert calls == [arguments_told]


async def test_the_named_operation_is_run() -> None:
    """And only it."""
    document = "query A { count } query B { other: count }"
    result = await ask_both(PEOPLE, document, root_value={"count": 3}, operation_name="B")
    assert result.data == {"other": 3}


async def test_each_operation_of_a_document_has_its_own_plan() -> None:
    """In whatever order they are asked for, by one executor."""
    executor = Executor(PEOPLE)
    document = parse("query A { count } query B { person { name } }")
    root = {"count": 3, "person": {"name": "Ada"}}
    for name in "ABAB":
        result = await executor.execute(document, root_value=root, operation_name=name)
        assert result.data == ({"count": 3} if name == "A" else {"person": {"name": "Ada"}})
    assert executor.planned == 4


@pytest.mark.parametrize(
    ("document", "name", "message"),
    [
        ("query A { count } query B { count }", None, "Must provide operation name if query contains"),
        ("query A { count }", "C", "Unknown operation named 'C'."),
        ("fragment Part on Person { name }", None, "Must provide an operation."),
        ("mutation { count }", None, "Schema is not configured to execute mutation operation."),
    ],
)
async def test_an_operation_that_is_not_there_is_an_error_of_the_request(
    document: str, name: str | None, message: str
) -> None:
    """There is no data then, and no path."""
    result = await Executor(PEOPLE).execute(parse(document), operation_name=name)
    assert result.data is None
    assert [error.message.startswith(message) and error.path for error in result.errors or ()] == [None]


async def test_fields_that_the_schema_does_not_have_are_left_out() -> None:
    """As graphql-core does with documents that nobody has validated."""
    result = await Executor(PEOPLE).execute(parse("{ count nothing }"), root_value={"count": 1, "nothing": 2})
    assert (result.data, result.errors) == ({"count": 1}, None)


async def test_a_resolver_that_fails_leaves_its_neighbours_alone() -> None:
    """Whether it raises, gives an exception, or is awaited; each error says where it belongs."""

    def fail(*_: Any) -> str:
        raise LookupError("raised")

    async def fail_later(*_: Any) -> str:
        raise LookupError("raised later")

    def fail_all(parents: Any, context: Any) -> list[str]:
        raise LookupError("raised for all")

    fields = {
        "raised": resolved(GraphQLString, fail),
        "given": resolved(GraphQLString, lambda *_: LookupError("given")),
        "later": resolved(GraphQLString, fail_later),
        "batch": in_batches(GraphQLString, lambda parents, context: [LookupError("in a batch") for _ in parents]),
        "all": in_batches(GraphQLString, fail_all),
        "right": resolved(GraphQLString, lambda *_: "right"),
    }
    result = await ask(schema_of(fields), "{ raised given\n later batch all right }")
    assert result.data == dict.fromkeys(("raised", "given", "later", "batch", "all")) | {"right": "right"}
    assert messages(result) == [
        (("raised",), "raised"),
        (("given",), "given"),
        (("later",), "raised later"),
        (("batch",), "in a batch"),
        (("all",), "raised for all"),
    ]
    assert [error.locations[0].line for error in result.errors or () if error.locations] == [1, 1, 2, 2, 2]


async def test_an_error_in_a_batch_fails_its_parent_alone() -> None:
    """Each at its own place."""

    async def odd_fail(parents: Any, context: Any) -> list[Any]:
        return [LookupError(f"not {parent}") if parent % 2 else parent for parent in parents]

    result = await ask(numbered({"even": in_batches(GraphQLInt, odd_fail)}), "{ items(count: 4) { even } }")
    assert result.data == {"items": [{"even": 0}, {"even": None}, {"even": 2}, {"even": None}]}
    assert messages(result) == [(("items", 1, "even"), "not 1"), (("items", 3, "even"), "not 3")]


async def test_a_batch_resolver_that_miscounts_is_found_out() -> None:
    """No value may reach the wrong parent: all of its fields fail."""
    schema = numbered({"short": in_batches(GraphQLInt, lambda parents, context: [1])})
    result = await ask(schema, "{ items { short } }")
    assert result.data == {"items": [{"short": None}] * 3}
    assert len(result.errors or []) == 3


async def test_objects_may_be_nested_deeply_and_refer_to_themselves() -> None:
    """Only as deep as the document goes."""
    person: dict[str, Any] = {"name": "Ada"}
    person["friend"], person["friends"] = person, [person, None]
    depth = 40
    document = "{ person { " + "friend { " * depth + "name friends { name }" + " }" * depth + " } }"
    data: Any = (await ask_both(PEOPLE, document, root_value={"person": person})).data
    for _ in range(depth):
        data = data.get("person") or data["friend"]
    assert data["friend"] == {"name": "Ada", "friends": [{"name": "Ada"}, None]}


async def test_resolving_by_a_type_without_fields_asked_for_gives_empty_objects() -> None:
    """Everything skipped leaves an object with nothing in it."""
    leaf = GraphQLObjectType("Leaf", {"n": resolved(GraphQLInt)})
    schema = schema_of({"leaf": resolved(leaf), "leaves": resolved(GraphQLList(leaf))})
    document = "{ leaf { n @skip(if: true) } leaves { n @include(if: false) } }"
    result = await ask_both(schema, document, root_value={"leaf": {}, "leaves": [{}, None]})
    assert result.data == {"leaf": {}, "leaves": [{}, None]}
