"""Server-sent events: distinct connections of GraphQL over SSE."""

import pytest

from graph import Graph
from graph.paging import CursorKind, encode_cursor
from server.auth import Tokens
from server.settings import Settings
from tests.server.conftest import KEY, Api, Streamed, events, serving

LIVE = """subscription Live($after: String) {
  homeTimeline(after: $after) { __typename cursor ... on PostAdded { post { text } } ... on Gap { reason } }
}"""
FILTERED = 'subscription { events(filter: {keywords: ["hello"]}) { __typename cursor } }'


def text(event: Streamed) -> str:
    """Return the text of an added post."""
    found: str = event.data["data"]["homeTimeline"]["post"]["text"]
    return found


async def test_a_subscription_streams_until_the_client_disconnects(api: Api) -> None:
    """A Checkpoint comes first, then new posts. The id of each event is its cursor."""
    session = await api.session("alice")
    async with api.stream(LIVE, Tokens([KEY]).issue(session)) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["cache-control"] == "no-cache, no-transform"
        streamed = events(response)
        first = await anext(streamed)
        assert first.name == "next"
        assert first.data["data"]["homeTimeline"] == {"__typename": "Checkpoint", "cursor": first.id}
        await api.graph.posts.publish(session.user, "hello\nworld")
        event = await anext(streamed)
        assert text(event) == "hello\nworld"
        assert event.data["data"]["homeTimeline"]["cursor"] == event.id != first.id


async def test_a_reconnecting_client_receives_missed_events(api: Api) -> None:
    """`Last-Event-ID` takes precedence over the older `after` of the document."""
    session = await api.session("alice")
    token = Tokens([KEY]).issue(session)
    async with api.stream(LIVE, token) as response:
        streamed = events(response)
        begin = (await anext(streamed)).id
        await api.graph.posts.publish(session.user, "seen")
        last = (await anext(streamed)).id
    await api.graph.posts.publish(session.user, "missed")
    assert begin
    assert last
    from_the_beginning = LIVE.replace("$after: String", f'$after: String = "{begin}"')
    for query, ids, expected in [
        (from_the_beginning, {}, ["seen", "missed"]),
        (from_the_beginning, {"last_event_id": last}, ["missed"]),
        (LIVE, {"last_event_id": last}, ["missed"]),
        (from_the_beginning, {"last_event_id": ""}, ["seen", "missed"]),
    ]:
        async with api.stream(query, token, **ids) as response:
            streamed = events(response)
            await anext(streamed)  # the checkpoint
            assert [text(await anext(streamed)) for _ in expected] == expected


async def test_an_event_has_an_id_even_if_its_cursor_is_not_selected(api: Api) -> None:
    session = await api.session("alice")
    await api.graph.posts.publish(session.user, "first")
    documents = ("subscription { homeTimeline { __typename } }", "subscription { homeTimeline { id: cursor } }")
    for document in documents:
        async with api.stream(document, Tokens([KEY]).issue(session)) as response:
            assert (await anext(events(response))).id


async def test_an_event_source_of_a_browser_resumes(api: Api) -> None:
    """It can only send GET requests, and reconnects with the id of the last event."""
    alice = await api.session("alice")
    parameters, headers = {"query": FILTERED}, {"accept": "text/event-stream", "cache-control": "no-cache"}
    async with api.client.stream("GET", "/graphql", params=parameters, headers=headers) as response:
        last = (await anext(events(response))).id
    assert last
    await api.graph.posts.publish(alice.user, "hello")
    headers["last-event-id"] = last
    async with api.client.stream("GET", "/graphql", params=parameters, headers=headers) as response:
        streamed = events(response)
        kinds = [(await anext(streamed)).data["data"]["events"]["__typename"] for _ in range(2)]
        assert kinds == ["Checkpoint", "PostAdded"]


async def test_pages_of_other_origins_may_send_last_event_id(settings: Settings, graph: Graph) -> None:
    allowed = settings.model_copy(update={"allowed_origins": ("https://app.example",)})
    async with serving(allowed, graph) as api:
        asked = {
            "origin": "https://app.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, content-type, last-event-id",
        }
        response = await api.client.options("/graphql", headers=asked)
        assert response.status_code == 200


@pytest.mark.parametrize("last", ["nonsense", encode_cursor(CursorKind.POST, 1)])
async def test_an_invalid_last_event_id_is_refused(api: Api, last: str) -> None:
    """The stream sends an event that names the header and has no id, and then completes."""
    async with api.stream(LIVE, await api.token("alice"), last_event_id=last) as response:
        refused, end = [event async for event in events(response)]
        assert refused.data["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
        assert refused.data["errors"][0]["message"].startswith("'Last-Event-ID' is ")
        assert "`liveCursor` or an event's `cursor`" in refused.data["errors"][0]["message"]
        assert "data" not in refused.data
        assert (refused.id, end.name) == (None, "complete")


async def test_a_query_streams_one_event(api: Api) -> None:
    """Every operation can be streamed. The bytes are exactly those of the protocol."""
    headers = {"accept": "text/event-stream", "last-event-id": "7"}
    response = await api.client.post("/graphql", json={"query": "{ __typename }"}, headers=headers)
    assert response.text == 'event: next\ndata: {"data":{"__typename":"Query"}}\n\nevent: complete\ndata: \n\n'


async def test_the_bytes_of_a_subscription_are_exactly_its_events(api: Api) -> None:
    async with api.stream(FILTERED) as response:
        sent = await anext(response.aiter_text())
    cursor = sent.partition("\n")[0].removeprefix("id: ")
    data = f'{{"data":{{"events":{{"__typename":"Checkpoint","cursor":"{cursor}"}}}}}}'
    assert sent == f"id: {cursor}\nevent: next\ndata: {data}\n\n"


@pytest.mark.parametrize(
    "accept",
    [
        "application/graphql-response+json, application/json, text/event-stream, multipart/mixed",
        "application/json, text/event-stream",
        "*/*",
    ],
)
async def test_clients_that_accept_event_streams_last_get_json(api: Api, accept: str) -> None:
    """Some clients list every known type; an event stream would break their queries."""
    response = await api.client.post("/graphql", json={"query": "{ __typename }"}, headers={"accept": accept})
    assert response.headers["content-type"].startswith("application/")
    assert response.json() == {"data": {"__typename": "Query"}}


async def test_a_mutation_is_not_streamed_by_get(api: Api) -> None:
    """The status is 405."""
    parameters = {"query": "mutation { logOut(input: {}) { userErrors { code } } }"}
    response = await api.client.get("/graphql", params=parameters, headers={"accept": "text/event-stream"})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert response.json()["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_a_syntax_error_is_streamed(api: Api) -> None:
    """This applies to GET as well."""
    response = await api.client.get("/graphql", params={"query": "{"}, headers={"accept": "text/event-stream"})
    assert response.status_code == 200
    assert "GRAPHQL_PARSE_FAILED" in response.text


async def test_a_request_without_a_query_is_refused(api: Api) -> None:
    """The status is 400, and the body is JSON."""
    response = await api.client.get("/graphql", headers={"accept": "text/event-stream"})
    assert response.status_code == 400
    assert response.json()["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_a_bad_token_gets_no_stream(api: Api) -> None:
    """The status is 401."""
    headers = {"accept": "text/event-stream", "authorization": "Bearer x"}
    response = await api.client.post("/graphql", json={"query": LIVE}, headers=headers)
    assert response.status_code == 401


async def test_an_ended_session_gets_no_stream(api: Api) -> None:
    """The session is checked before the response starts: the status is 401, and the body is JSON."""
    session = await api.session("alice")
    await api.graph.sessions.end(session.user, session.id)
    headers = {"accept": "text/event-stream", "authorization": f"Bearer {Tokens([KEY]).issue(session)}"}
    response = await api.client.post("/graphql", json={"query": LIVE}, headers=headers)
    assert (response.status_code, response.headers["content-type"]) == (401, "application/json")
    assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert response.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
