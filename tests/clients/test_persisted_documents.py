"""Relay, GraphQL Code Generator, Apollo Client and urql send document ids from manifests that their tools wrote."""

import asyncio
import hashlib
import json
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from graph import Graph
from server.cli.token import issue_token
from server.demo.world import World
from server.setting_values import Env, TrustedDocumentsMode
from server.settings import Settings
from tests.clients.programs import FOLDER, run
from tests.server.conftest import Api, serving

pytestmark = pytest.mark.slow

ROOT = FOLDER.parents[1]
CONFIGS = ("relay.config.json", "codegen.json", "persisted-query-manifest.config.json")
ALLOW, ONLY = TrustedDocumentsMode.ALLOW, TrustedDocumentsMode.ONLY

Served: TypeAlias = Callable[[str, TrustedDocumentsMode], AbstractAsyncContextManager[tuple[Api, str]]]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Return the folder of a front end without sources."""
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").symlink_to(FOLDER / "node_modules")
    (tmp_path / "trusted").mkdir()
    for file in (ROOT / "schema.graphql", *(FOLDER / config for config in CONFIGS)):
        shutil.copy(file, tmp_path)
    return tmp_path


@pytest.fixture
async def served(settings: Settings, small_world: World, graph: Graph, app: Path) -> Served:
    """Return a function that serves a small world in production mode with a manifest, and yields a token."""

    @asynccontextmanager
    async def serve(manifest: str, mode: TrustedDocumentsMode) -> AsyncIterator[tuple[Api, str]]:
        changed = {"env": Env.PRODUCTION, "trusted_documents": app / manifest, "trusted_documents_mode": mode}
        async with serving(settings.model_copy(update=changed), graph) as api:
            yield api, await issue_token(graph, settings, "alice")

    return serve


async def run_tool(app: Path, *command: str) -> None:
    """Run a command in the folder of the front end."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=app, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()


def manifest_of(app: Path, name: str) -> dict[str, Any]:
    """Return a manifest that a tool has written."""
    manifest: dict[str, Any] = json.loads((app / name).read_text())
    return manifest


async def compile_relay(node: str, app: Path) -> dict[str, Any]:
    """Compile the screen of this folder and return the manifest."""
    shutil.copytree(FOLDER / "relay", app / "src")
    (app / "trusted" / "relay.json").write_text("{}")
    await run_tool(app, node, "node_modules/relay-compiler/cli.js", "relay.config.json")
    return manifest_of(app, "trusted/relay.json")


async def test_a_relay_screen_of_forty_fragments(node: str, app: Path, served: Served) -> None:
    """The compiled query, its next page and its subscription stay within all limits of production."""
    manifest = await compile_relay(node, app)
    assert len(manifest) == 3
    async with served("trusted/relay.json", ONLY) as (api, token):
        seen = await run(node, "relay.mjs", f"{api.url}/graphql", token, str(app))
    text = manifest[seen["id"]]
    assert len(re.findall(r"^fragment ", text, re.M)) >= 40
    assert seen["text"] is None
    assert "errors" not in seen["answer"]
    assert len(seen["answer"]["data"]["viewer"]["homeTimeline"]["entries"]["edges"]) == 10
    assert seen["entries"] >= 10
    assert seen["event"] == "Checkpoint"


async def test_documents_of_graphql_code_generator(node: str, app: Path, served: Served) -> None:
    """The ids of the client preset work with fetch, and with urql over GET."""
    shutil.copytree(FOLDER / "persisted", app / "src")
    await run_tool(app, node, "node_modules/@graphql-codegen/cli/esm/bin.js", "--config", "codegen.json")
    async with served("gql/persisted-documents.json", ONLY) as (api, token):
        seen = await run(node, "codegen.mjs", f"{api.url}/graphql", token, str(app))
    assert list(manifest_of(app, "gql/persisted-documents.json")) == [seen["id"]]
    assert seen["id"].startswith("sha256:")
    assert len(seen["fetch"]["data"]["viewer"]["homeTimeline"]["entries"]["nodes"]) == 3
    assert seen["urql"] == {"data": seen["fetch"]["data"]}


async def test_apollo_sends_ids(node: str, app: Path, served: Served) -> None:
    """In the mode `only`, the client never sends the text of a document, even after an unknown hash is rejected.

    In the mode `allow`, a listed document takes one request, and an unlisted one takes two each time.
    """
    shutil.copytree(FOLDER / "persisted", app / "src")
    await run_tool(app, node, "node_modules/@apollo/generate-persisted-query-manifest/cli.js")
    [operation] = manifest_of(app, "trusted/apollo.json")["operations"]
    assert operation["id"] == hashlib.sha256(operation["body"].encode()).hexdigest()
    async with served("trusted", ONLY) as (api, token):
        for manifest, codes in (
            ([str(app / "trusted" / "apollo.json")], [[], []]),
            ([], [[], ["PERSISTED_QUERY_NOT_IN_LIST"], []]),
        ):
            page, unlisted, again, sent = await pages_of_apollo(node, api, token, *manifest)
            assert "error" in unlisted
            assert again == page
            assert [request["codes"] for request in sent] == codes
            assert not any(request["text"] for request in sent)
    async with served("trusted", ALLOW) as (api, token):
        page, unlisted, again, sent = await pages_of_apollo(node, api, token)
    assert unlisted["data"]["viewer"]["user"]["login"] == "alice"
    assert again == page
    by_hash = {"method": "GET", "status": 200, "text": False, "codes": []}
    assert sent == [
        by_hash,
        by_hash | {"codes": ["PERSISTED_QUERY_NOT_FOUND"]},
        {"method": "POST", "status": 200, "text": True, "codes": []},
        by_hash,
    ]


async def pages_of_apollo(
    node: str, api: Api, token: str, *manifest: str
) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
    """Ask for a listed page, an unlisted operation and the page again. Return the results, and what was sent."""
    seen = await run(node, "apollo-persisted.mjs", f"{api.url}/graphql", token, *manifest)
    page, unlisted, again = seen["results"]
    assert len(page["data"]["viewer"]["homeTimeline"]["entries"]["nodes"]) == 3
    return page, unlisted, again, seen["sent"]
