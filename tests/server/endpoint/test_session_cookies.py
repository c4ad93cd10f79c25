"""Browser sessions: the token is in a cookie that requests from pages of other sites cannot use."""

import json
import logging
from http.cookies import SimpleCookie
from typing import Any

import httpx
import pytest

from graph import Graph
from server.endpoint.session_cookies import value_of
from server.setting_values import Env
from server.settings import Settings
from tests.server.conftest import Api, events, serving

OWN = {"Fanline-Session": "cookie"}
SIGN_UP = """mutation { signUp(input: {login: "carla", password: "a long password"}) {
    credentials { token viewer { user { login } } } userErrors { message } } }"""
LOG_OUT = "mutation { logOut(input: {}) { userErrors { code } } }"
VIEWER = "{ viewer { user { login } } }"
LIVE = "subscription { homeTimeline { __typename } }"
ALICE, CARLA = {"user": {"login": "alice"}}, {"user": {"login": "carla"}}


async def ask(api: Api, document: str, cookie: str = "", **headers: str) -> httpx.Response:
    """Send an operation with a cookie and headers."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if cookie:
        sent["Cookie"] = f"fanline_session={cookie}"
    return await api.client.post("/graphql", json={"query": document}, headers=sent)


def cookie_of(response: httpx.Response) -> Any:
    """Return the cookie that a response sets."""
    [header] = response.headers.get_list("set-cookie")
    [cookie] = SimpleCookie(header).values()
    return cookie


@pytest.fixture
async def token(api: Api) -> str:
    """Sign up carla, and return the token in her cookie."""
    response = await ask(api, SIGN_UP, **OWN)
    api.client.cookies.clear()
    return str(cookie_of(response).value)


async def test_the_token_of_a_new_session_is_in_a_cookie(api: Api) -> None:
    """It is not in the payload, which the scripts of the page can read."""
    response = await ask(api, SIGN_UP, **OWN)
    assert response.json()["data"]["signUp"]["credentials"] == {"token": None, "viewer": CARLA}
    cookie = cookie_of(response)
    assert (cookie.key, cookie["httponly"], cookie["samesite"], cookie["path"]) == ("fanline_session", True, "lax", "/")
    assert 0 < int(cookie["max-age"]) <= 30 * 86_400
    assert (await ask(api, VIEWER, cookie.value, **OWN)).json()["data"]["viewer"] == CARLA


async def test_over_https_the_cookie_is_secure(settings: Settings, graph: Graph) -> None:
    """This also applies if a proxy terminates HTTPS."""
    async with serving(settings.model_copy(update={"trusted_proxies": ("127.0.0.1",)}), graph) as api:
        cookie = cookie_of(await ask(api, SIGN_UP, X_Forwarded_Proto="https", **OWN))
        assert (cookie.key, cookie["secure"]) == ("__Host-fanline_session", True)


async def test_without_the_header_nothing_is_stored(api: Api) -> None:
    response = await ask(api, SIGN_UP)
    assert response.json()["data"]["signUp"]["credentials"]["token"]
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "https://evil.example", **OWN},
        {"Origin": "null", **OWN},
        {"Origin": "https://evil.example", "Sec_Fetch_Site": "same-origin"},
    ],
)
async def test_a_request_from_another_site_is_anonymous(api: Api, token: str, headers: dict[str, str]) -> None:
    """The cookie is ignored even if the browser sends it."""
    response = await ask(api, VIEWER, token, **headers)
    assert response.json() == {"data": {"viewer": None}}
    assert "set-cookie" not in response.headers


async def test_a_page_of_another_site_cannot_log_its_visitor_in(api: Api) -> None:
    response = await ask(api, SIGN_UP, Origin="https://evil.example", **OWN)
    assert "set-cookie" not in response.headers


async def test_a_request_from_the_own_page_uses_the_cookie(api: Api, token: str) -> None:
    """`EventSource` cannot send headers, but the browser says where the request comes from."""
    for headers in ({"Sec_Fetch_Site": "same-origin"}, {"Origin": api.url}, {"Origin": api.url, **OWN}):
        response = await ask(api, VIEWER, token, **headers)
        assert response.json()["data"]["viewer"] == CARLA


async def test_a_page_of_an_allowed_origin_uses_the_cookie(settings: Settings, graph: Graph) -> None:
    """The browser permits it if the response allows credentials, even for `EventSource`, which sends no header."""
    async with serving(settings.model_copy(update={"allowed_origins": ("https://app.example.com",)}), graph) as api:
        headers = {"Origin": "https://app.example.com", **OWN}
        response = await ask(api, SIGN_UP, **headers)
        assert response.headers["access-control-allow-credentials"] == "true"
        token = cookie_of(response).value
        response = await ask(api, VIEWER, token, **headers)
        assert response.json()["data"]["viewer"] == CARLA
        source = {"Origin": headers["Origin"], "Sec-Fetch-Site": "same-site", "Accept": "text/event-stream"}
        source["Cookie"] = f"fanline_session={token}"
        async with api.client.stream("GET", "/graphql", params={"query": VIEWER}, headers=source) as stream:
            assert (await anext(events(stream))).data["data"]["viewer"] == CARLA


async def test_log_out_removes_the_cookie(api: Api, token: str) -> None:
    response = await ask(api, LOG_OUT, token, **OWN)
    assert response.json()["data"]["logOut"] == {"userErrors": []}
    assert (cookie_of(response).value, cookie_of(response)["max-age"]) == ("", "0")


@pytest.mark.parametrize("ended", [True, False])
async def test_a_cookie_that_is_not_valid_any_more_is_removed(api: Api, token: str, ended: bool) -> None:
    """The status is 401, even for a log-in, so that the page notices. The next request is anonymous."""
    if ended:
        await ask(api, LOG_OUT, token, **OWN)
    for document in (VIEWER, SIGN_UP.replace("carla", "dora")):
        response = await ask(api, document, token if ended else "forged", **OWN)
        assert response.status_code == 401
        assert cookie_of(response).value == ""


async def test_a_bearer_token_counts_more_than_the_cookie(api: Api, token: str) -> None:
    alice = await api.token("alice")
    response = await ask(api, VIEWER, token, Authorization=f"Bearer {alice}", **OWN)
    assert response.json()["data"]["viewer"] == ALICE


async def test_a_websocket_of_the_own_page_uses_the_cookie(api: Api, token: str) -> None:
    """A socket without an origin is anonymous."""
    for headers, viewer in (({"Origin": api.url}, CARLA), ({}, None)):
        async with api.open_socket(Cookie=f"fanline_session={token}", **headers) as socket:
            await socket.send(type="connection_init")
            assert await socket.receive() == {"type": "connection_ack"}
            await socket.subscribe("1", VIEWER)
            assert (await socket.receive())["payload"]["data"] == {"viewer": viewer}


async def test_the_first_message_of_a_websocket_counts_more_than_the_cookie(api: Api, token: str) -> None:
    """If the token in the message is null, the socket is anonymous."""
    for authorization, viewer in ((f"Bearer {await api.token('alice')}", ALICE), (None, None)):
        async with api.open_socket(Cookie=f"fanline_session={token}", Origin=api.url) as socket:
            await socket.send(type="connection_init", payload={"authorization": authorization})
            assert await socket.receive() == {"type": "connection_ack"}
            await socket.subscribe("1", VIEWER)
            assert (await socket.receive())["payload"]["data"] == {"viewer": viewer}


async def test_a_websocket_with_a_cookie_that_is_not_valid_is_closed(api: Api) -> None:
    async with api.open_socket(Cookie="fanline_session=forged", Origin=api.url) as socket:
        await socket.send(type="connection_init")
        assert (await socket.closed())[0] == 4403


async def test_a_malformed_origin_is_unknown(api: Api, token: str) -> None:
    """It does not cause a server error."""
    cookie = f"fanline_session={token}".encode()
    for origin in (b"http://[", b"https://a:b:c", b"http://x:99999", b"\xff\xfe", b"//", b""):
        headers = [(b"origin", origin), (b"cookie", cookie), (b"fanline-session", b"cookie")]
        response = await api.client.post("/graphql", json={"query": VIEWER}, headers=headers)
        assert (response.status_code, response.json()) == (200, {"data": {"viewer": None}})


async def test_over_https_a_page_loaded_over_http_is_another_origin(settings: Settings, graph: Graph) -> None:
    """Anyone on the network path can change such a page. WebSockets have no preflight that would refuse it."""
    async with serving(settings.model_copy(update={"trusted_proxies": ("127.0.0.1",)}), graph) as api:
        over_https = {"X_Forwarded_Proto": "https", **OWN}
        cookie = cookie_of(await ask(api, SIGN_UP, **over_https))
        host = api.url.removeprefix("http://")
        for scheme, viewer in (("https", CARLA), ("http", None)):
            sent = {"Cookie": f"{cookie.key}={cookie.value}", "Origin": f"{scheme}://{host}"}
            response = await ask(api, VIEWER, **sent, **over_https)
            assert response.json()["data"] == {"viewer": viewer}
            async with api.open_socket(**sent, **{"X-Forwarded-Proto": "https"}) as socket:
                await socket.send(type="connection_init")
                await socket.receive()
                await socket.subscribe("1", VIEWER)
                assert (await socket.receive())["payload"]["data"] == {"viewer": viewer}


async def test_the_origin_and_the_host_may_name_the_default_port(api: Api, token: str) -> None:
    """A proxy may add it to `Host`; browsers leave it out of `Origin`."""
    response = await ask(api, VIEWER, token, Origin="http://example.com", Host="example.com:80", **OWN)
    assert response.json()["data"]["viewer"] == CARLA
    response = await ask(api, VIEWER, token, Origin="http://example.com", Host="example.com:81", **OWN)
    assert response.json()["data"]["viewer"] is None


async def test_in_production_only_the_secure_cookie_counts(settings: Settings, graph: Graph, token: str) -> None:
    """A page of a subdomain can set the other cookie for the whole domain."""
    production = settings.model_copy(update={"env": Env.PRODUCTION})
    async with serving(production, graph) as api:
        assert (await ask(api, VIEWER, token, **OWN)).json()["data"]["viewer"] is None
        secure = {"Cookie": f"fanline_session=x; __Host-fanline_session={token}"}
        assert (await ask(api, VIEWER, **secure, **OWN)).json()["data"]["viewer"] == CARLA


@pytest.mark.parametrize(
    ("header", "value"),
    [
        (b"a=1; sid=x; b=2", "x"),
        (b"sid=x=y", "x=y"),
        (b"sid=first;sid=second", "first"),
        (b"\t sid=x ", "x"),
        (b"\x85sid=evil", None),
        (b"\xa0sid=evil; sid=x", "x"),
        (b"\x1fsid=evil", None),
        (b"sid =evil", None),
        (b"SID=evil", None),
        (b"sid=", None),
        (b"sid", None),
        (b"=sid=evil", None),
        (b"", None),
    ],
)
def test_only_a_cookie_of_exactly_this_name_counts(header: bytes, value: str | None) -> None:
    """Browsers let a subdomain set a cookie whose name only resembles one with the prefix `__Host-`."""
    assert value_of(header, "sid") == value


async def test_a_long_cookie_is_a_bad_token(api: Api) -> None:
    response = await ask(api, VIEWER, "x" * 5000, **OWN)
    assert (response.status_code, cookie_of(response).value) == (401, "")


async def test_an_event_stream_stores_and_removes_the_cookie(api: Api) -> None:
    """Clients may send every operation over server-sent events."""
    async with api.stream(SIGN_UP, **OWN) as response:
        token = cookie_of(response).value
    assert token
    async with api.stream(LOG_OUT, cookie=f"fanline_session={token}", **OWN) as response:
        assert cookie_of(response).value == ""
    async with api.stream(VIEWER, cookie=f"fanline_session={token}", **OWN) as response:
        assert (response.status_code, cookie_of(response).value) == (401, "")


async def test_caches_keep_the_sessions_of_viewers_apart(api: Api, token: str) -> None:
    """Responses to requests with a cookie are not stored; other responses list what they vary by."""
    for headers in ({"Cookie": f"fanline_session={token}", **OWN}, {"Cookie": "theme=dark"}, OWN):
        response = await api.client.get("/graphql", params={"query": VIEWER}, headers=headers)
        assert response.headers["cache-control"] == "no-store"
    response = await api.client.get("/graphql", params={"query": VIEWER})
    assert "cache-control" not in response.headers
    assert {"Origin", "Accept", "Authorization", "Cookie"} <= set(response.headers["vary"].split(", "))


async def test_a_form_is_no_operation(api: Api, token: str) -> None:
    """Browsers send these types without a preflight."""
    headers = {"Cookie": f"fanline_session={token}", "Sec-Fetch-Site": "same-origin"}
    content = json.dumps({"query": LOG_OUT})
    for form in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        sent = {"Content-Type": form, **headers}
        assert (await api.client.post("/graphql", content=content, headers=sent)).status_code == 415
    assert (await ask(api, VIEWER, token, **OWN)).json()["data"]["viewer"] == CARLA


async def test_a_get_request_changes_nothing(api: Api, token: str) -> None:
    """A link or form on the app's own page can send one."""
    for own in (OWN, {"Sec-Fetch-Site": "same-origin"}):
        headers = {"Cookie": f"fanline_session={token}", **own}
        assert (await api.client.get("/graphql", params={"query": LOG_OUT}, headers=headers)).status_code == 405


async def test_a_page_that_is_not_allowed_gets_no_preflight(api: Api) -> None:
    """Neither another site nor a subdomain gets one."""
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "fanline-session"}
    for origin in ("https://evil.example", f"http://sub.{api.url.removeprefix('http://')}", "null"):
        response = await api.client.options("/graphql", headers={"Origin": origin, **asked})
        assert response.status_code == 400
        assert "access-control-allow-origin" not in response.headers


async def test_the_token_is_nowhere_but_in_the_cookie(
    settings: Settings, graph: Graph, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not in bodies, explanations, errors, logs or metrics."""
    caplog.set_level(logging.DEBUG)
    async with serving(settings, graph) as api:
        first = await ask(api, SIGN_UP, X_Fanline_Explain="1", **OWN)
        token = cookie_of(first).value
        documents = (VIEWER, "{ nothing }", "query Broken {", LOG_OUT, VIEWER)
        answers = [await ask(api, document, token, X_Fanline_Explain="1", **OWN) for document in documents]
        texts = [each.text for each in (first, *answers, await api.client.get("/metrics"))]
    logged = [each.getMessage() for each in caplog.records if not each.name.startswith("http")]  # not of the client
    signature = token.rpartition(".")[2]
    assert signature
    assert signature not in "".join([*texts, *logged])
