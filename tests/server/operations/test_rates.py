"""Rate limits: headers, 429 and the balance of points; the turns of operations."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from graph import Graph
from server.auth import Tokens
from server.errors import RateLimited
from server.operations.cost import OperationCost
from server.operations.rates import SITE_SHARE, SUBSCRIPTION, Meter, RateLimits, in_words
from server.setting_values import Env
from server.settings import Settings
from server.transport.networks import network_of
from tests.server.conftest import KEY, Api, events, serving
from tests.support.graph_worlds import counts_of

SMALL = "{ __typename }"
PUBLISH = 'mutation { publishPost(input: {text: "hello"}) { userErrors { code } } }'
LOG_IN = 'mutation { logIn(input: {login: "alice", password: "wrong horse"}) { userErrors { code } } }'
BALANCE = "{ rateLimit { limit remaining resetAt cost } }"
HERE = "127.0.0.1"
LIVE = 'subscription { events(filter: {keywords: ["x"]}) { cursor } }'


def limited(settings: Settings, **changed: Any) -> Settings:
    return settings.model_copy(update={"rate_limits": True, **changed})


@pytest.fixture
async def strict(settings: Settings, graph: Graph) -> AsyncIterator[Api]:
    """Serve an application with low rates, which refill too slowly to affect the tests."""
    changed = {"writes_per_minute": 1, "log_ins_per_minute": 2, "sign_ups_per_hour": 1, "max_cost": 100}
    async with serving(limited(settings, points_per_minute=60, **changed), graph) as api:
        yield api


def meter_of(graph: Graph, settings: Settings, address: str, holder: str | None = None) -> Meter:
    """Return the meter of an operation from an address, by default an anonymous one."""
    limits = RateLimits.of(limited(settings, points_per_minute=60, max_cost=100))
    assert limits is not None
    return Meter(limits, graph.rates, holder or network_of(address), address)


async def test_the_networks_of_one_site_share_points(graph: Graph, settings: Settings) -> None:
    """All anonymous networks of an IPv6 site share the points of 16 networks; users and other sites are separate."""
    burst = OperationCost(2_099, 0)

    async def charge(address: str, holder: str | None = None) -> bool:
        meter = meter_of(graph, settings, address, holder)
        try:
            meter.charge(burst)
            await meter.settle()
        except RateLimited:
            return False
        return True

    admitted = [await charge(f"2001:db8:7:{at:x}::1") for at in range(20)]
    assert sum(admitted) == SITE_SHARE
    assert await charge("2001:db8:8:1::1")
    assert await charge("192.0.2.1")
    assert await charge("2001:db8:7:99::1", "user:1")


async def use_up(api: Api, query: str = SMALL, token: str | None = None) -> httpx.Response:
    """Spend nearly all points of the network at once, and send queries until one is refused."""
    meter = Meter(api.app.state.rate_limits, api.app.state.graph.rates, network_of(HERE), HERE)
    meter.charge(OperationCost(2_000, 0))
    await meter.settle()
    for _ in range(100):
        response = await api.ask(query, token)
        if response.status_code == 429:
            return response
    raise AssertionError("nothing was ever refused")


def only_error(response: httpx.Response) -> dict[str, Any]:
    (error,) = response.json()["errors"]
    found: dict[str, Any] = error
    return found


async def test_headers_contain_the_balance(strict: Api) -> None:
    """They contain the policy and the remaining points, as in the IETF draft."""
    first, second = await strict.ask(SMALL), await strict.ask(SMALL)
    assert first.headers["ratelimit-policy"] == '"points";q=2100;w=2100'
    [left, later] = [int(each.headers["ratelimit"].split("r=")[1].split(";")[0]) for each in (first, second)]
    assert 2000 < later < left < 2100


async def test_a_used_up_rate_returns_429_with_retry_after(strict: Api) -> None:
    """The response has the code and the seconds, and no data."""
    refused = await use_up(strict)
    error = only_error(refused)
    assert error["extensions"]["code"] == "RATE_LIMITED"
    assert refused.headers["retry-after"] == str(error["extensions"]["retryAfter"])
    assert error["message"].startswith("The limit of 60 points per minute has been reached. Try again in ")
    assert "data" not in refused.json()
    slow = await strict.client.post("/graphql", json={"query": SMALL}, headers={"origin": "https://a.example"})
    assert (slow.status_code, slow.headers["retry-after"]) == (429, refused.headers["retry-after"])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (2, "2 seconds"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (121, "3 minutes"),
        (7_199, "120 minutes"),
        (7_200, "2 hours"),
        (7_201, "3 hours"),
    ],
)
def test_times_to_wait_are_written_in_a_suitable_unit(seconds: int, words: str) -> None:
    assert in_words(seconds) == words


async def test_users_and_addresses_have_separate_rates(strict: Api) -> None:
    """A user who shares the address of an attacker can still log in and continue."""
    token = await strict.token("alice")
    await use_up(strict)
    assert (await strict.ask("{ viewer { user { login } } }", token)).json() == {
        "data": {"viewer": {"user": {"login": "alice"}}}
    }


@pytest.mark.parametrize("query", [SMALL, "{ wrong }"])
async def test_a_revoked_token_charges_the_network(strict: Api, query: str) -> None:
    """A stolen token cannot lock its user out after the log-out."""
    stolen = await strict.session("alice")
    token, revoked = (Tokens([KEY]).issue(each) for each in (await strict.graph.sessions.start(stolen.user), stolen))
    await strict.ask("mutation { logOut(input: {}) { userErrors { code } } }", revoked)
    await use_up(strict, query, revoked)
    assert (await strict.ask("{ viewer { user { login } } }", token)).json() == {
        "data": {"viewer": {"user": {"login": "alice"}}}
    }


async def test_processes_share_rates(settings: Settings, graph: Graph) -> None:
    """A rate used up in one process is used up in the other."""
    changed = limited(settings, points_per_minute=60, max_cost=100)
    async with serving(changed, graph) as one, serving(changed, graph) as other:
        await use_up(one)
        assert (await other.ask(SMALL)).status_code == 429


async def test_refused_documents_are_charged(strict: Api) -> None:
    """A series of invalid documents ends with 429, before they are parsed."""
    for number in range(500):
        response = await strict.ask(f"{{ wrong{number} }}")
        if response.status_code == 429:
            break
    assert only_error(response)["extensions"]["code"] == "RATE_LIMITED"
    assert number < 120


async def test_documents_without_an_allowed_operation_are_charged(strict: Api) -> None:
    """Preparing them costs the same."""
    for number in range(500):
        query = f"query Q {{ a{number}: __typename }}"
        response = await strict.client.post("/graphql", json={"query": query, "operationName": "P"})
        if response.status_code == 429:
            break
        response = await strict.ask(f"subscription {{ events(filter: {{}}) {{ a{number}: __typename }} }}")
        if response.status_code == 429:
            break
    assert only_error(response)["extensions"]["code"] == "RATE_LIMITED"
    assert number < 60


async def test_a_known_used_up_rate_is_refused_without_the_store(strict: Api) -> None:
    """The process remembers the last refusal."""
    looking = '{ user(by: {login: "nobody"}) { id } }'
    assert (await strict.ask(looking)).status_code == 200
    await use_up(strict)
    store = strict.app.state.graph.store
    before = store.commands
    assert [(await strict.ask(looking)).status_code for _ in range(5)] == [429] * 5
    assert store.commands == before


async def test_every_followed_user_is_a_write(settings: Settings, graph: Graph) -> None:
    """The burst is two minutes' worth of writes, at least a hundred. Refused mutations write nothing."""
    async with serving(limited(settings, writes_per_minute=1), graph) as api:
        token, users = await api.token("alice"), [await graph.users.sign_up(f"u{n}", "correct horse") for n in range(3)]
        ids = (
            await api.ask("{ " + " ".join(f'a{n}: user(by: {{login: "u{n}"}}) {{ id }}' for n in range(3)) + " }")
        ).json()
        chosen = [user["id"] for user in ids["data"].values()]
        follow = "mutation ($ids: [ID!]!) { followUsers(input: {userIds: $ids}) { results { outcome } } }"
        first = await api.ask(follow, token, ids=(chosen * 40)[:99])
        assert "errors" not in first.json()
        assert (await api.ask(PUBLISH, token)).json() == {"data": {"publishPost": {"userErrors": []}}}
        refused = await api.ask(PUBLISH, token)
        assert (refused.status_code, only_error(refused)["extensions"]["code"]) == (429, "RATE_LIMITED")
        assert "writes per minute" in only_error(refused)["message"]
        assert (await counts_of(graph, [users[0].id]))[0].followers == 1
        viewer = (await graph.users.ids_of_logins(["alice"]))[0]
        assert viewer
        assert (await counts_of(graph, [viewer]))[0].posts == 1


async def test_log_ins_from_one_network_are_limited(strict: Api) -> None:
    """The limit covers all logins together, with or without a token."""
    await strict.session("alice")
    token = await strict.token("bob")
    codes = []
    for asking in (None, token, None, token):
        response = await strict.ask(LOG_IN, asking)
        codes.append(response.status_code)
    assert codes == [200, 200, 429, 429]


async def test_sign_ups_from_one_network_are_limited(strict: Api, graph: Graph) -> None:
    """Only sign-ups that create a user count, not repetitions."""
    sign_up = 'mutation { signUp(input: {login: "%s", password: "correct horse"}) { userErrors { code } } }'
    await strict.session("taken")
    for _ in range(3):  # what creates no user does not count
        taken = await strict.ask(sign_up % "taken")
        assert taken.json()["data"]["signUp"]["userErrors"] == [{"code": "LOGIN_TAKEN"}]
    keyed = sign_up.replace('"correct horse"', '"correct horse", idempotencyKey: "k"')
    await graph.sign_ups.sign_up("mine", "correct horse", idempotency_key="k")
    assert (await strict.ask(keyed % "mine")).json()["data"]["signUp"]["userErrors"] == []
    assert "errors" not in (await strict.ask(sign_up % "one")).json()
    refused = await strict.ask(sign_up % "two")
    assert refused.status_code == 429
    assert "sign-ups per hour from one network" in only_error(refused)["message"]


async def test_refusals_are_counted_and_logged(strict: Api, caplog: pytest.LogCaptureFixture) -> None:
    """There is a counter for each rate, and a log line at most once a minute."""
    await use_up(strict)
    for _ in range(5):
        await strict.ask(SMALL)
    metrics = (await strict.client.get("/metrics")).text
    assert 'fanline_rate_limited_total{rate="points"} 6.0' in metrics
    assert [record.getMessage() for record in caplog.records if "rate limits" in record.message] == [
        "Operations refused by rate limits: 1; by user or network: 127.0.0.1 (1)"
    ]


async def test_the_balance_can_be_queried(strict: Api) -> None:
    """It includes the operation that queries it."""
    found = (await strict.ask(BALANCE)).json()["data"]["rateLimit"]
    assert found["limit"] == 2100
    assert found["remaining"] == 2100 - found["cost"]
    assert (await strict.ask(BALANCE)).json()["data"]["rateLimit"]["cost"] < found["cost"]  # the document is known now


async def test_without_rates_there_are_no_headers_and_no_balance(api: Api) -> None:
    """This is so in development."""
    response = await api.ask(BALANCE)
    assert response.json() == {"data": {"rateLimit": None}}
    assert "ratelimit" not in response.headers


def test_rates_are_limited_in_production_by_default(settings: Settings) -> None:
    """They are not limited in development."""
    assert not settings.limits_rates
    production = settings.model_copy(update={"env": Env.PRODUCTION})
    assert production.limits_rates
    assert not production.model_copy(update={"rate_limits": False}).limits_rates


async def test_operations_of_a_socket_are_charged_like_requests(strict: Api) -> None:
    """The error belongs to the operation; the socket stays open."""
    await use_up(strict)
    async with strict.socket() as socket:
        await socket.subscribe("1", SMALL)
        message = await socket.receive()
        assert (message["type"], message["payload"][0]["extensions"]["code"]) == ("error", "RATE_LIMITED")
        await socket.subscribe("2", LIVE)
        assert (await socket.receive())["type"] == "error"


async def test_starting_a_subscription_costs_points(strict: Api) -> None:
    """They are in addition to those for preparing its document, which is cached here."""
    async with strict.socket() as socket:
        left = []
        for id in ("1", "2"):
            await socket.subscribe(id, LIVE)
            assert (await socket.receive())["type"] == "next"
            response = await strict.ask(BALANCE)
            left.append(response.json()["data"]["rateLimit"]["remaining"])
    assert left[0] - left[1] > SUBSCRIPTION / 2


async def test_anonymous_subscriptions_have_a_lower_limit(settings: Settings, graph: Graph) -> None:
    """This applies while rates are limited."""
    async with serving(limited(settings, max_anonymous_streams=1), graph) as api:
        token = await api.token("alice")
        async with api.socket() as socket, api.socket(token) as own:
            await socket.subscribe("1", LIVE)
            assert (await socket.receive())["type"] == "next"
            await socket.subscribe("2", LIVE)
            assert (await socket.receive())["payload"][0]["extensions"]["code"] == "RATE_LIMITED"
            async with api.stream(LIVE) as response:
                streamed = await anext(events(response))
                assert streamed.data["errors"][0]["extensions"]["code"] == "RATE_LIMITED"
            for id in ("3", "4"):
                await own.subscribe(id, LIVE)
                assert (await own.receive())["type"] == "next"


async def test_rate_limits_add_no_round_trip(settings: Settings, graph: Graph) -> None:
    """The charge shares the round trip of the session check."""
    async with serving(settings, graph) as free, serving(limited(settings), graph) as api:
        token = await free.token("alice")
        trips = []
        for each in (free, api):
            store = each.app.state.graph.store
            for _ in range(3):
                await each.ask(
                    "{ viewer { user { login } homeTimeline { entries(first: 3) { nodes { id } } } } }", token
                )
            before = store.round_trips
            await each.ask("{ viewer { user { login } homeTimeline { entries(first: 3) { nodes { id } } } } }", token)
            trips.append(store.round_trips - before)
        assert trips[0] == trips[1]


async def test_pages_of_other_origins_may_read_the_headers(settings: Settings, graph: Graph) -> None:
    """A browser hides headers from pages of other origins unless the response exposes them."""
    changed = limited(settings, allowed_origins=("https://app.example",))
    async with serving(changed, graph) as api:
        response = await api.client.post("/graphql", json={"query": SMALL}, headers={"origin": "https://app.example"})
        exposed = response.headers["access-control-expose-headers"].split(", ")
        assert {"retry-after", "ratelimit", "ratelimit-policy"} <= set(exposed)
        assert "ratelimit" in response.headers
