"""Basics of execution: values, arguments, `info`, order of keys, errors and operations."""

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
    GraphQLSchema,
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


async def test_the_default_resolver_reads_mappings_and_attributes_and_calls_methods() -> None:
    """The default resolver reads mapping keys and attributes, and calls methods with `info` and the arguments."""

    class Person:
        def __init__(self) -> None:
            self.name = "Ada"
            self.friend = {"name": "Bob", "friend": None, "greeting": lambda info, to: f"{info.field_name} {to}"}

        def greeting(self, info: GraphQLResolveInfo[Any], to: str) -> str:
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


async def test_a_missing_root_value_is_not_an_error() -> None:
    """Fields of a missing root value are null."""
    assert (await ask_both(PEOPLE, "{ person { name } count }")).data == {"person": None, "count": None}


async def test_keys_have_the_order_of_the_document() -> None:
    """The order does not depend on which value is available first."""

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


async def test_selections_with_the_same_key_are_merged() -> None:
    """Fields of fragments and repeated fields are merged; a key has the position of its first occurrence."""
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


async def test_typename_can_be_selected_anywhere() -> None:
    """`__typename` works at the root as well, and under any key."""
    result = await ask_both(PEOPLE, "{ __typename person { kind: __typename } }", root_value={"person": {}})
    assert result.data == {"__typename": "Query", "person": {"kind": "Person"}}


async def test_a_resolver_receives_info() -> None:
    """`info` has names, types, nodes, path, operation, fragments, variables, root value and context."""
    infos: list[GraphQLResolveInfo[Any]] = []

    def look(source: Any, info: GraphQLResolveInfo[Any], **_: Any) -> str:
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
    assert info.path.prev
    assert info.path.prev.prev
    assert (info.path.typename, info.path.prev.prev.typename) == ("Item", "Query")
    assert [node.alias.value for node in info.field_nodes if node.alias] == ["it", "it"]
    assert (info.root_value, info.context, info.schema) == ("root", "context", schema)
    assert print_ast(info.operation).startswith("query Look(")
    assert list(info.fragments) == ["Part"]
    assert info.variable_values.coerced == {"n": 2}


async def test_leaf_values_are_coerced_according_to_the_specification() -> None:
    """Leaf values are converted where the specification allows; otherwise the error names the value."""
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


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, -(2**31), -(2**31) - 1])
async def test_whole_numbers_have_32_bits(number: int) -> None:
    """This also holds for a column that contains only whole numbers."""
    schema = schema_of({"numbers": resolved(GraphQLList(GraphQLInt))})

    result = await ask_both(schema, "{ numbers }", root_value={"numbers": [1, number]})

    fits = -(2**31) <= number < 2**31
    assert result.data == {"numbers": [1, number if fits else None]}
    assert len(result.errors or []) == int(not fits)


async def test_arguments_and_their_defaults_reach_the_resolver() -> None:
    """Batch resolvers get arguments as keywords, once for all parents."""
    calls: list[dict[str, Any]] = []

    def describe_each(parents: Any, context: Any, **arguments: Any) -> list[str]:
        calls.append(arguments)
        return [f"{parent} {arguments}" for parent in parents]

    def describe(source: Any, info: Any, **arguments: Any) -> str:
        return str(arguments)

    arguments = {"n": GraphQLInt, "words": GraphQLList(GraphQLString)}
    schema = numbered(
        {
            "all": in_batches(GraphQLString, describe_each, **arguments),
            "one": resolved(GraphQLString, describe, **arguments),
        }
    )
    result = await ask(schema, '{ items(count: 2) { all(words: "one", n: null) one(n: 3) } }')
    arguments_told = {"n": None, "words": ["one"]}
    assert result.data == {
        "items": [{"all": f"{parent} {arguments_told}", "one": "{'n': 3}"} for parent in range(2)],
    }
    assert calls == [arguments_told]


async def test_the_named_operation_is_run() -> None:
    """Other operations of the document are not executed."""
    document = "query A { count } query B { other: count }"
    result = await ask_both(PEOPLE, document, root_value={"count": 3}, operation_name="B")
    assert result.data == {"other": 3}


async def test_each_operation_of_a_document_has_its_own_plan() -> None:
    """One executor can run the operations of a document in any order."""
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
async def test_an_unknown_operation_is_a_request_error(document: str, name: str | None, message: str) -> None:
    """The result has no data, and the error has no path."""
    result = await Executor(PEOPLE).execute(parse(document), operation_name=name)
    assert result.data is None
    assert [error.message.startswith(message) and error.path for error in result.errors or ()] == [None]


async def test_unknown_fields_are_omitted() -> None:
    """graphql-core does the same with documents that were not validated."""
    result = await Executor(PEOPLE).execute(parse("{ count nothing }"), root_value={"count": 1, "nothing": 2})
    assert (result.data, result.errors) == ({"count": 1}, None)


async def test_a_failed_resolver_does_not_affect_other_fields() -> None:
    """Resolvers can raise or return an exception, synchronously or not; each error has its path."""

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


async def test_an_error_in_a_batch_fails_its_parent_only() -> None:
    """Each error has its own path."""

    async def odd_fail(parents: Any, context: Any) -> list[Any]:
        return [LookupError(f"not {parent}") if parent % 2 else parent for parent in parents]

    result = await ask(numbered({"even": in_batches(GraphQLInt, odd_fail)}), "{ items(count: 4) { even } }")
    assert result.data == {"items": [{"even": 0}, {"even": None}, {"even": 2}, {"even": None}]}
    assert messages(result) == [(("items", 1, "even"), "not 1"), (("items", 3, "even"), "not 3")]


async def test_a_wrong_number_of_values_fails_the_field_for_all_parents() -> None:
    """If a batch resolver returns a wrong number of values, the field fails for all parents."""
    schema = numbered({"short": in_batches(GraphQLInt, lambda parents, context: [1])})
    result = await ask(schema, "{ items { short } }")
    assert result.data == {"items": [{"short": None}] * 3}
    assert len(result.errors or []) == 3


async def test_objects_can_be_nested_and_recursive() -> None:
    """Objects are resolved as deep as the document selects."""
    person: dict[str, Any] = {"name": "Ada"}
    person["friend"], person["friends"] = person, [person, None]
    depth = 40
    document = "{ person { " + "friend { " * depth + "name friends { name }" + " }" * depth + " } }"
    data: Any = (await ask_both(PEOPLE, document, root_value={"person": person})).data
    for _ in range(depth):
        data = data.get("person") or data["friend"]
    assert data["friend"] == {"name": "Ada", "friends": [{"name": "Ada"}, None]}


async def test_an_object_without_selected_fields_is_empty() -> None:
    """If all fields of an object are skipped, the object is empty."""
    leaf = GraphQLObjectType("Leaf", {"n": resolved(GraphQLInt)})
    schema = schema_of({"leaf": resolved(leaf), "leaves": resolved(GraphQLList(leaf))})
    document = "{ leaf { n @skip(if: true) } leaves { n @include(if: false) } }"
    result = await ask_both(schema, document, root_value={"leaf": {}, "leaves": [{}, None]})
    assert result.data == {"leaf": {}, "leaves": [{}, None]}


def test_an_invalid_schema_is_refused() -> None:
    with pytest.raises(TypeError, match="Query root type must be provided"):
        Executor(GraphQLSchema())
