"""The operations in the documentation, and the commands that send some of them, return what the pages show."""

import asyncio
import json
import re
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from graphql import OperationDefinitionNode, OperationType, parse, validate

from graph import Graph, keys
from resolvers.context import Context, Viewer
from schema import schema
from server.cli.token import issue_token
from server.demo.world import World
from server.settings import Settings
from tests.conftest import need
from tests.docs.blocks import Block, claim
from tests.server.conftest import Api, serving, settings
from tests.support.graph_worlds import PATIENCE
from tests.support.snapshots import small_world

__all__ = ["settings", "small_world"]

OPERATIONS = claim(__name__, "graphql")
GETTING_STARTED = claim(__name__, "sh", page="docs/getting-started.md", containing="curl ")
[VARIABLE] = claim(__name__, "sh", page="docs/getting-started.md", containing="TOKEN=")
[STREAM] = claim(__name__, "sh", page="docs/subscriptions.md", containing="curl ")
[TOKEN] = claim(__name__, "json", page="docs/getting-started.md")
[ADDED] = claim(__name__, "text", page="docs/getting-started.md")
ANSWERS = {page: claim(__name__, "json", page=page)[0] for page in ("README.md", "docs/errors.md")}
[WARNING] = claim(__name__, "json", page="docs/operations.md", containing='"warnings"')
PASSWORDS = {"password": "a guess", "currentPassword": "a password", "newPassword": "another password"}
VARIABLES = {"text": "Hello!", "idempotencyKey": "a-key", "upTo": "log-00000000000001", "postId": "x", **PASSWORDS}


@pytest.fixture
async def api(settings: Settings, small_world: World, graph: Graph) -> AsyncIterator[Api]:
    """Serve a small demo world."""
    async with serving(settings, graph) as api:
        yield api


async def start(command: str, api: Api, token: str) -> Process:
    """Start a command that sends an operation to the demo."""
    need(bool(shutil.which("curl")), "curl")
    here = f"{VARIABLE.text}exec {command}".replace("http://localhost:8000", api.url).replace("<token>", token)
    return await asyncio.create_subprocess_exec("bash", "-c", here, stdout=PIPE)


async def answer(command: str, api: Api, token: str) -> dict[str, Any]:
    """Run a command and return the data of the response that it prints."""
    process = await start(command, api, token)
    response = json.loads((await process.communicate())[0])
    assert "errors" not in response
    data: dict[str, Any] = response["data"]
    return data


async def event(process: Process, type_: str) -> str:
    """Return the first event of one type that a command prints."""
    assert process.stdout
    async with asyncio.timeout(PATIENCE):
        while True:
            printed = (await process.stdout.readuntil(b"\n\n")).decode()
            if f'"__typename":"{type_}"' in printed:
                return printed


def matches(shown: str, printed: str) -> bool:
    """Return True if an output is the one that a page shows, which abbreviates with …."""
    return bool(re.fullmatch(".+?".join(map(re.escape, shown.split("…"))), printed))


async def executed(text: str, graph: Graph, alice: int) -> Any:
    """Execute an operation as alice, and return its result; for a subscription, the first event."""
    [operation] = parse(text).definitions
    assert isinstance(operation, OperationDefinitionNode)
    session = await graph.sessions.start(alice)
    context = Context(graph, Viewer(session.user, session.id, session.expires_at), lambda session: "")
    if operation.operation is OperationType.SUBSCRIPTION:
        async with aclosing(await schema.subscribe(text, {}, context)) as results:
            return await anext(results)
    asked = {each.variable.name.value for each in operation.variable_definitions or ()}
    return await schema.execute(text, {name: VARIABLES[name] for name in asked & VARIABLES.keys()}, context)


@pytest.mark.parametrize("block", OPERATIONS, ids=str)
async def test_an_operation_runs_as_it_is_shown(small_world: World, graph: Graph, block: Block) -> None:
    """The operation runs as alice, without errors, and returns the data shown below it."""
    assert validate(schema._schema, parse(block.text)) == []
    if block.page in ("docs/errors.md", "docs/client-kit.md"):
        return  # it is refused, see below; and tests/clients runs the operations of the client kit
    result = await executed(block.text, graph, small_world.people()["alice"])
    assert result.errors is None
    assert result.data
    if block.page in ANSWERS:
        assert {"data": result.data} == json.loads(ANSWERS[block.page].text)


async def test_the_error_that_is_shown(api: Api) -> None:
    """The operation in errors.md is refused with the response below it."""
    [query] = [block.text for block in OPERATIONS if block.page == "docs/errors.md"]
    response = (await api.ask(query)).json()
    response["errors"][0]["extensions"]["requestId"] = "…"
    assert response == json.loads(ANSWERS["docs/errors.md"].text)


@pytest.mark.external
async def test_getting_started(api: Api) -> None:
    """Alice logs in, reads a page and subscribes; her post arrives at the subscription."""
    log_in, read, subscribe, publish = (block.text for block in GETTING_STARTED)
    token = (await answer(log_in, api, ""))["logIn"]["credentials"]["token"]
    payload = {"credentials": {"token": token}, "userErrors": []}
    assert matches(TOKEN.text.strip(), json.dumps({"data": {"logIn": payload}}))
    page = (await answer(read, api, token))["viewer"]["homeTimeline"]["entries"]["nodes"]
    assert len(page) == 3
    process = await start(subscribe, api, token)
    assert await event(process, "Checkpoint")
    assert (await answer(publish, api, token))["publishPost"]["post"]["id"]
    assert matches(ADDED.text.strip(), (await event(process, "PostAdded")).strip())
    process.kill()
    await process.wait()


@pytest.mark.external
async def test_a_stream_with_curl(api: Api, settings: Settings, graph: Graph) -> None:
    process = await start(STREAM.text, api, await issue_token(graph, settings, "alice"))
    assert '"cursor":"' in await event(process, "Checkpoint")
    process.kill()
    await process.wait()


async def test_the_warning_that_is_shown(api: Api) -> None:
    """`/health/ready` returns what operations.md shows while the archiver is stopped."""
    shown = json.loads(WARNING.text)
    [warning] = shown["warnings"]
    await api.graph.store.run("SET", keys.ALARM, warning.removeprefix("The archiver has stopped: "))
    assert (await api.client.get("/health/ready")).json() == shown
