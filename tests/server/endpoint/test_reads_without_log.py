"""Reads do not depend on the shard of the log: an operation that writes nothing waits for no command to it."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.server.conftest import Api
from tests.support.graph_worlds import posts

READ = """
query ($login: String!) {
  viewer {
    homeTimeline { liveCursor entries(first: 5) { nodes { author { login followersCount } ... on Post { text } } } }
  }
  user(by: {login: $login}) { name postsCount timeline { liveCursor
    entries(first: 5) { nodes { ... on Post { text } } } } }
}
"""


async def test_reads_do_not_wait_for_the_log(api: Api, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only watermark refreshes and load probes read from its shard, and no operation waits for them."""
    token = await api.token("alice")
    [alice] = await api.graph.users.ids_of_logins(["alice"])
    assert alice is not None
    await posts(api.graph, alice, "hi")
    answer = await api.ask(READ, token, login="alice")
    assert answer.json()["data"]["viewer"]["homeTimeline"]["entries"]["nodes"][0]["text"] == "hi", answer.json()
    monkeypatch.setattr("graph.log.log.REFRESH_SECONDS", 1e9)
    seen: list[str] = []

    async def watch(monitor: Any) -> None:
        while True:
            seen.append((await monitor.next_command())["command"])

    async with Redis.from_url(store_url, decode_responses=True) as raw, raw.monitor() as monitor:
        watching = asyncio.create_task(watch(monitor))
        for document in (READ, "{ __typename }", "{ viewer { id } }", "{ viewer { user { login } } }"):
            assert "errors" not in (await api.ask(document, token, login="alice")).json()
        await api.graph.store.run("GET", "the end")
        while "GET the end" not in seen:  # noqa: ASYNC110 - nothing signals the next command
            await asyncio.sleep(0.01)
        watching.cancel()

    assert len(seen) > 5
    assert [command for command in seen if "{log}" in command and command != "EXISTS {log}"] == []
