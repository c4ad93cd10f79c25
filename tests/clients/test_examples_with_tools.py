"""The tools that front ends use accept the schema and all examples."""

import json
import re
import shutil
from pathlib import Path

import pytest

from server.playground.examples import EXAMPLES, examples
from tests.clients.programs import FOLDER, run
from tests.clients.test_persisted_documents import ROOT, app, run_tool

pytestmark = pytest.mark.slow

__all__ = ["app"]

SCHEMA = ROOT / "schema.graphql"
FILES = sorted(EXAMPLES.glob("*.graphql"))


async def test_graphql_eslint_has_nothing_to_say(node: str) -> None:
    """Its recommended rules for schemas, Relay and operations hold, apart from the exceptions in lint.mjs."""
    report = await run(node, "lint.mjs", str(SCHEMA), str(EXAMPLES))
    assert report == {"files": len(FILES) + 1, "messages": []}


async def test_the_examples_cover_the_schema(node: str) -> None:
    """GraphQL Inspector finds every root field, and all but a few fields of other types, in an example."""
    report = await run(node, "coverage.mjs", str(SCHEMA), str(EXAMPLES))
    assert report["sources"] == len(FILES)
    roots = {type_: report["unused"].pop(type_) for type_ in ("Query", "Mutation", "Subscription")}
    assert roots == {"Query": [], "Mutation": [], "Subscription": []}


async def test_graphql_code_generator_knows_all_scalars(node: str, app: Path) -> None:
    """Strict scalars work with the configuration in docs/clients.md. Enums allow for values of later versions."""
    (app / "src").mkdir()
    for file in FILES:
        shutil.copy(file, app / "src")
    shutil.copy(FOLDER / "codegen-types.json", app)
    await run_tool(app, node, "node_modules/@graphql-codegen/cli/esm/bin.js", "--config", "codegen-types.json")
    types = (app / "gql" / "graphql.ts").read_text()
    assert all(f"{example.operation}Document" in types for example in examples())
    assert "createdAt: string" in types
    assert "'%future added value'" in types
    assert not re.search(r": any\b|unknown scalar", types)


async def test_the_relay_compiler_accepts_the_examples(node: str, app: Path) -> None:
    """The only change is Relay's own: the name of an operation ends with its kind."""
    (app / "src").mkdir()
    for example in examples():
        kind, name = re.findall(r"^(query|mutation|subscription) (\w+)", example.query, re.M)[0]
        text = example.query.replace(f"{kind} {name}", f"{kind} {name}{kind.title()}", 1).replace("`", "")
        module = f'import {{ graphql }} from "relay-runtime";\nexport const operation = graphql`\n{text}`;\n'
        (app / "src" / f"{name}.js").write_text(module)
    (app / "trusted" / "relay.json").write_text("{}")
    await run_tool(app, node, "node_modules/relay-compiler/cli.js", "relay.config.json")
    assert len(json.loads((app / "trusted" / "relay.json").read_text())) == len(FILES)
