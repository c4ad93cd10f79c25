"""Documents over Fanline's schema and a small data set: the executor returns what graphql-core returns."""

import random
from collections import Counter
from dataclasses import dataclass
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    OperationType,
    execute,
    get_operation_ast,
    parse,
    validate,
)

from executor import Executor
from graph import Graph
from graph.model import User
from resolvers import ids
from schema import schema
from tests.executor.differential.comparison import differences
from tests.executor.differential.documents import DocumentWriter, GeneratedDocument
from tests.executor.differential.tapes import Tape
from tests.resolvers.conftest import World, post_id, repost_id, user_id

EXAMPLES = {path: parse(path.read_text("utf-8")) for path in (Path(__file__).parents[2] / "examples").glob("*.graphql")}
DOCUMENTS, LONG_DOCUMENTS = 80, 5_000
SCHEMA = schema._schema
WANTED = {"first": 90, "last": 6, "after": 15, "before": 6}
WRITTEN = ("edges", "relationship", "author", "...", "on Repost", "entries", "node(")
"""Words of which each is in some document."""
CURSORS = """
  query ($id: ID!) { node(id: $id) { ... on User {
    timeline { entries(first: 5) { edges { cursor } } } followers(first: 5) { edges { cursor } }
  } } }
"""


@dataclass
class Town:
    """A few users and posts, and the generator of queries about them."""

    world: World
    viewer: User
    ids: list[str]
    logins: list[str]
    cursors: list[str]

    def preferred(self, name: str, type_: Any, tape: Tape) -> Any:
        """Return an argument that matches the data, in most cases."""
        match name:
            case "id":
                return tape.pick([*self.ids, "nonsense"])
            case "ids" | "keys":
                return [tape.pick([*self.ids, "nonsense"]) for _ in range(1 + tape.below(3))]
            case "by":
                return tape.pick([{"login": tape.pick([*self.logins, "nobody"])}, {"id": tape.pick(self.ids)}])
            case "first" | "last":
                return 1 + tape.below(4)
            case "after" | "before":
                return tape.pick([*self.cursors, "nonsense"])
        return None

    def document(self, seed: int) -> GeneratedDocument:
        """Return a generated query."""
        tape = Tape(random.Random(seed).randbytes(400))  # noqa: S311 - a test's choices
        return DocumentWriter(SCHEMA, tape, self.preferred, depth=7, fields=24, free=False, wanted=WANTED).write()


@pytest.fixture
async def town(graph: Graph) -> Town:
    """Create four users who follow each other, publish posts and repost, one of them logged in."""
    world = World(graph)
    alice, bob, carol, _ = users = await world.users("alice", "bob", "carol", "dave")
    await world.follow(alice, bob, carol)
    await world.follow(bob, alice)
    await world.follow(carol, bob, alice)
    posts = [post for author in (bob, alice, bob, carol) for post in await world.post(author, f"by {author.login}")]
    await graph.posts.delete(bob.id, posts[0].id)
    posts.append(await graph.posts.publish(bob.id, "quote", quote_of=posts[3].id))
    reposts = [await graph.reposts.repost(graph.visibility.of(user.id), user.id, posts[1].id) for user in (bob, carol)]
    found = [
        *(ids.encode(ids.Kind.USER_TIMELINE, user.id) for user in users[:2]),
        ids.encode(ids.Kind.HOME_TIMELINE, alice.id),
        ids.encode(ids.Kind.RELATIONSHIP, alice.id, bob.id),
        ids.encode(ids.Kind.USER, 10**9),
    ]
    known = await schema.execute(
        CURSORS, context_value=await world.context(alice), variable_values={"id": user_id(bob)}
    )
    assert known.data is not None
    pages = known.data["node"]["timeline"]["entries"], known.data["node"]["followers"]
    cursors = [edge["cursor"] for page in pages for edge in page["edges"]]
    everything = [*map(user_id, users), *map(post_id, posts), *map(repost_id, reposts), *found]
    return Town(world, alice, everything, [user.login for user in users], cursors)


async def run_by_both(
    town: Town, executor: Executor, document: DocumentNode, by: User | None, **options: Any
) -> tuple[ExecutionResult, ExecutionResult]:
    """Execute a document with graphql-core and with the executor, each with its own context."""
    expected = execute(SCHEMA, document, context_value=await town.world.context(by), **options)
    if isawaitable(expected):
        expected = await expected
    return expected, await executor.execute(document, context_value=await town.world.context(by), **options)


def in_order(result: ExecutionResult) -> ExecutionResult:
    """Return the result with errors sorted by path, because graphql-core's order depends on timing."""
    errors: list[GraphQLError] = sorted(result.errors or (), key=lambda error: [str(step) for step in error.path or ()])
    return ExecutionResult(result.data, errors or None)


async def test_generated_queries_over_fanlines_schema(town: Town, long_profile: bool) -> None:
    """Data, order of keys and errors are equal for a user and an anonymous viewer, and no query falls back."""
    executor = Executor(SCHEMA)
    met: Counter[str] = Counter()
    for seed in range(LONG_DOCUMENTS if long_profile else DOCUMENTS):
        written = town.document(seed)
        document = parse(written.text)
        assert validate(SCHEMA, document) == [], written.text
        for by in (town.viewer, None):
            expected, actual = await run_by_both(
                town, executor, document, by, variable_values=written.variables, operation_name=written.operation_name
            )
            found = differences(in_order(expected), in_order(actual))
            assert not found, "\n".join([*found, f"seed {seed}, variables {written.variables}", written.text])
            met["errors"] += bool(expected.errors)
            met["data"] += bool(expected.data)
        met.update(name for name in WRITTEN if name in written.text)
    print(dict(met), executor.planned, executor.slow)
    assert executor.fallen_back == 0
    assert min(met[name] for name in ("errors", "data", *WRITTEN)) > 0


def queries() -> list[Path]:
    """Return the examples that are queries."""
    operations = {path: get_operation_ast(document) for path, document in EXAMPLES.items()}
    return sorted(path for path, each in operations.items() if each and each.operation is OperationType.QUERY)


@pytest.mark.parametrize("path", queries(), ids=lambda path: path.stem)
async def test_example_queries_are_planned_and_equal_graphql_core(town: Town, path: Path) -> None:
    """The examples never fall back, for any viewer."""
    executor = Executor(SCHEMA)
    document = EXAMPLES[path]
    variables = {"login": "bob", "id": user_id(town.viewer), "ids": [user_id(town.viewer)], "first": 3}
    for by in (town.viewer, None):
        expected, actual = await run_by_both(town, executor, document, by, variable_values=variables)
        assert differences(in_order(expected), in_order(actual)) == []
    assert (executor.planned, executor.fallen_back) == (2, 0)
