"""Server-sent events, for clients that ask for them first: distinct connections, as graphql-sse has them."""

import json
from typing import Any

import httpx
import pytest

from server.auth import Tokens
from tests.server.conftest import KEY, Api

LIVE = "subscription { homeTimeline { __typename ... on PostAdded { edge { node { text } } } } }"


async def events(response: httpx.Response) -> Any:
    """Read the events of a stream: (name, data)."""
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
            yield name, json.loads(data) if data.strip() else None


async def test_a_subscription_streams_until_the_client_leaves(api: Api) -> None:
    """A Checkpoint, then what is published; lines end with LF."""
    session = await api.session("alice")
    headers = {"accept": "text/event-stream", "authorization": f"Bearer {Tokens([KEY]).issue(session)}"}
    async with api.client.stream("POST", "/graphql", json={"query": LIVE}, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        stream = events(response)
        name, first = await anext(stream)
        assert (name, first["data"]["homeTimeline"]["__typename"]) == ("next", "Checkpoint")
        await api.graph.posts.publish(session.user, "hello\nworld")
        _, event = await anext(stream)
        assert event["data"]["homeTimeline"]["edge"] == {"node": {"text": "hello\nworld"}}
        await api.graph.sessions.end(session.user, None)
        _, ended = await anext(stream)
        assert ended["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
        assert [name async for name, _ in stream] == ["complete"]


async def test_a_query_streams_one_event(api: Api) -> None:
    """Every operation can be streamed; the framing is the protocol's, byte for byte."""
    headers = {"accept": "text/event-stream"}
    response = await api.client.post("/graphql", json={"query": "{ __typename }"}, headers=headers)
    assert response.text == 'event: next\ndata: {"data":{"__typename":"Query"}}\n\nevent: complete\ndata: \n\n'


@pytest.mark.parametrize(
    "accept",
    [
        "application/graphql-response+json, application/json, text/event-stream, multipart/mixed",
        "application/json, text/event-stream",
        "*/*",
    ],
)
async def test_clients_that_also_take_streams_get_json(api: Api, accept: str) -> None:
    """Some clients list every type they know: a stream would break their plain queries."""
    response = await api.client.post("/graphql", json={"query": "{ __typename }"}, headers={"accept": accept})
    assert response.headers["content-type"].startswith("application/")
    assert response.json() == {"data": {"__typename": "Query"}}


async def test_a_mutation_is_not_streamed_by_get(api: Api) -> None:
    """GET never writes, whatever it accepts."""
    parameters = {"query": "mutation { logOut(input: {}) { userErrors { code } } }"}
    response = await api.client.get("/graphql", params=parameters, headers={"accept": "text/event-stream"})
    assert "BAD_USER_INPUT" in response.text
    assert '"data":{' not in response.text


async def test_a_bad_token_gets_no_stream(api: Api) -> None:
    """The status is 401, as everywhere."""
    headers = {"accept": "text/event-stream", "authorization": "Bearer x"}
    response = await api.client.post("/graphql", json={"query": LIVE}, headers=headers)
    assert response.status_code == 401
