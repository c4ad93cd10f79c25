"""Points that are charged after an operation, for what it has read; and the root fields that read the archive."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from graph import Graph
from graph.archive.usage import BUDGET, USAGE
from graph.log.events import PostPublished
from server.auth import Tokens
from server.operations.cost import MAX_ARCHIVE_ROOTS
from server.settings import Settings
from tests.server.conftest import KEY, Api, serving, until
from tests.support.graph_worlds import archive_log, people

PAGE = "posts(first: 1) { nodes { text } pageInfo { hasNextPage } }"
ENTRIES = "entries(first: 1) { nodes { ... on Post { text } } pageInfo { hasNextPage } }"
SEARCH = f'{{ searchPosts(filter: {{keywords: ["北京大"]}}) {{ {PAGE} }} }}'
FALSE = "京大 北京"


@pytest.fixture
async def strict(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application with rates that refill slowly."""
    changed = {"rate_limits": True, "points_per_minute": 1, "explain": True}
    async with serving(settings.model_copy(update=changed), graph) as api:
        yield api


def left(response: httpx.Response) -> int:
    """Return the points that are left according to the headers."""
    return int(response.headers["ratelimit"].split("r=")[1].split(";")[0])


async def fill(graph: Graph, candidates: int) -> None:
    [author] = await people(graph, "author")
    for start in range(0, candidates, 500):
        await graph.commit([PostPublished(author, FALSE) for _ in range(start, min(candidates, start + 500))])
    await graph.worker().drain()
    await archive_log(graph)


async def test_false_candidates_of_a_search_are_paid_for(strict: Api, graph: Graph) -> None:
    """They are charged after the operation, which does not wait. A search without them costs the usual price."""
    await fill(graph, 300)
    before = left(await strict.ask("{ __typename }"))
    explained = await strict.client.post("/graphql", json={"query": SEARCH, "extensions": {"explain": True}})
    cost = explained.json()["extensions"]["explain"]["cost"]
    after = left(await strict.ask("{ __typename }"))
    assert cost["late"] > 300 * 18
    assert before - after >= cost["points"] + cost["late"]


async def test_a_debt_delays_the_next_operations(settings: Settings, graph: Graph) -> None:
    """An operation that reads more than is left is answered; the next one is refused."""
    await fill(graph, 300)
    changed = {"rate_limits": True, "points_per_minute": 60, "max_cost": 3_600, "max_depth": 20}
    async with serving(settings.model_copy(update=changed), graph) as api:
        first = await api.ask(SEARCH)
        second = await api.ask("{ __typename }")
    assert first.status_code == 200
    assert second.status_code == 429
    assert int(second.headers["retry-after"]) > 60


async def test_a_search_stops_at_the_budget_of_its_operation(strict: Api, graph: Graph) -> None:
    """Aliases do not raise the budget: the first page ends early and can be continued, the others are refused."""
    await fill(graph, 1_800)
    aliases = " ".join(
        f'a{at}: searchPosts(filter: {{keywords: ["北京大", "none{at}"]}}) {{ {PAGE} }}'
        for at in range(MAX_ARCHIVE_ROOTS)
    )
    query = f"{{ {aliases} }}"
    answer = (await strict.client.post("/graphql", json={"query": query, "extensions": {"explain": True}})).json()
    late = answer["extensions"]["explain"]["cost"]["late"]
    assert late < 1.5 * BUDGET
    assert {error["extensions"]["code"] for error in answer["errors"]} == {"COST_LIMIT"}
    assert "in a separate operation" in answer["errors"][0]["message"]


@pytest.mark.parametrize(
    "root",
    [
        f"publicTimeline {{ {ENTRIES} }}",
        f'searchPosts(filter: {{keywords: ["x"]}}) {{ {PAGE} }}',
        'searchUsers(text: "x", first: 1) { nodes { login } }',
    ],
)
@pytest.mark.parametrize(
    "frame", ["{{ {} }}", "{{ ...F }} fragment F on Query {{ {} }}", "{{ ... on Query {{ {} }} }}"]
)
async def test_few_root_fields_read_the_archive(api: Api, root: str, frame: str) -> None:
    """Fragments count too. The error names the limit."""
    allowed = frame.format(" ".join(f"a{at}: {root}" for at in range(MAX_ARCHIVE_ROOTS)))
    refused = frame.format(" ".join(f"a{at}: {root}" for at in range(MAX_ARCHIVE_ROOTS + 1)))
    assert "errors" not in (await api.ask(allowed)).json()
    [error] = (await api.ask(refused)).json()["errors"]
    assert error["extensions"]["code"] == "COST_LIMIT"
    assert "6 root fields" in error["message"]
    assert "limit is 5" in error["message"]


async def test_a_caller_whose_searches_hang_does_not_delay_others(
    strict: Api, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another viewer, an anonymous client and the archiver still get connections."""
    await fill(graph, 3)
    busy, other = await strict.session("busy"), await strict.token("other")
    token, holder = Tokens([KEY]).issue(busy), f"user:{busy.user}"
    database = strict.app.state.graph.archive.database
    transact, go_on = database._transact, asyncio.Event()

    async def hang(work: Any) -> Any:
        usage = USAGE.get()
        if usage is not None and usage.caller == holder:
            await go_on.wait()
        return await transact(work)

    monkeypatch.setattr(database, "_transact", hang)
    users = '{ searchUsers(text: "author", first: 1) { nodes { login } } }'
    hanging = [asyncio.create_task(strict.ask(users, token)) for _ in range(4)]
    await until(lambda: database.gate.waiting == 2)
    for response in (await strict.ask(SEARCH, other), await strict.ask(SEARCH)):
        assert "errors" not in response.json()
    await strict.app.state.graph.archive.state()
    go_on.set()
    for response in await asyncio.gather(*hanging):
        assert "errors" not in response.json()
