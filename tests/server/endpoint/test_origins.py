"""In the demo only, the pages of servers on this machine may use the API, with cookies and WebSockets."""

import pytest
from websockets.exceptions import InvalidStatus

from graph import Graph
from server.demo import Demo
from server.demo.world import Person
from server.endpoint.origins import Origins
from server.settings import Settings
from tests.server.conftest import Api, serving

DEMO = Demo((Person("alice", "Alice"),))
LOCAL = ("http://localhost:5173", "http://127.0.0.1:3000", "http://localhost", "http://[::1]:8080")
FOREIGN = (
    "http://localhost.evil.example",
    "http://evil.example/http://localhost:1",
    "http://localhost:5173.evil.example",
    "https://localhost:5173x",
    "http://localhost:123456",
    "http://127.0.0.2",
    "null",
    "",
)
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "content-type,fanline-session"}


async def is_allowed(api: Api, origin: str) -> list[bool]:
    """Return whether a page of this origin may read responses, send preflighted requests, and open WebSockets."""
    post = await api.client.post("/graphql", json={"query": "{ __typename }"}, headers={"origin": origin})
    preflight = await api.client.options("/graphql", headers={"origin": origin, **PREFLIGHT})
    try:
        async with api.open_socket(origin=origin):
            opened = True
    except InvalidStatus:
        opened = False
    grants = [response.headers.get("access-control-allow-origin") == origin for response in (post, preflight)]
    return [*grants, opened]


@pytest.mark.parametrize("origin", LOCAL)
async def test_the_demo_allows_pages_of_this_machine(settings: Settings, graph: Graph, origin: str) -> None:
    async with serving(settings, graph, demo=DEMO) as api:
        assert await is_allowed(api, origin) == [True] * 3
        post = await api.client.post("/graphql", json={"query": "{ __typename }"}, headers={"origin": origin})
        assert post.headers["access-control-allow-credentials"] == "true"


async def test_a_page_of_this_machine_gets_a_cookie_in_the_demo(settings: Settings, graph: Graph) -> None:
    """Its later requests are authenticated by the cookie."""
    await graph.users.sign_up("alice", "correct horse")
    query = 'mutation { logIn(input: { login: "alice", password: "correct horse" }) { credentials { token } } }'
    headers = {"origin": LOCAL[0], "fanline-session": "cookie"}
    async with serving(settings, graph, demo=DEMO) as api:
        await api.client.post("/graphql", json={"query": query}, headers=headers)
        answer = await api.client.post("/graphql", json={"query": "{ viewer { user { login } } }"}, headers=headers)
    assert answer.json() == {"data": {"viewer": {"user": {"login": "alice"}}}}


async def test_the_demo_allows_no_other_origin(settings: Settings, graph: Graph) -> None:
    async with serving(settings, graph, demo=DEMO) as api:
        for origin in FOREIGN[:-1]:
            assert await is_allowed(api, origin) == [False] * 3, origin


async def test_a_server_that_is_no_demo_allows_none_of_them(api: Api) -> None:
    for origin in LOCAL:
        assert await is_allowed(api, origin) == [False] * 3, origin


@pytest.mark.parametrize("origin", FOREIGN)
def test_only_whole_local_origins_match(origin: str) -> None:
    assert not Origins((), local=True).names(origin.encode())
