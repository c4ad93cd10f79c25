"""No secret leaves the server: canaries are sent in failing requests and searched for in all output."""

import asyncio
import json
import logging
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from graph import Graph
from server.auth import Tokens
from server.embedded import EmbeddedStore
from server.process.logs import json_formatter
from server.redaction import without_values
from server.settings import Settings
from tests.server.conftest import Api, serving
from tests.server.process.test_restarts import Served
from tests.support.graphs import archive_url_of
from tests.support.tcp_proxy import TcpProxy, proxy_to

PASSWORD = "canary_Of_Passwords_1"
WRONG = "canary_Of_Wrong_Passwords_2"
NUMBER = 918273645546372819
KEY = "canary_Of_Keys_3_which_is_long_enough"
STORE_WORD = "canaryOfTheStore4"
ARCHIVE_WORD = "canaryOfTheArchive5"
HEADER = "canaryOfHeaders6"
CANARIES = (PASSWORD, WRONG, str(NUMBER), KEY, STORE_WORD, ARCHIVE_WORD, HEADER)

TOKEN = "{ credentials { token } userErrors { message } }"
SIGN_UP = f"mutation ($input: SignUpInput!) {{ signUp(input: $input) {TOKEN} }}"
LOG_IN = f"mutation ($input: LogInInput!) {{ logIn(input: $input) {TOKEN} }}"
ME = "{ viewer { user { login } } }"


def bodies() -> Iterator[str | dict[str, Any]]:
    """Yield bodies that fail, each with a password in it: wrong types, unknown fields, bad syntax, bad JSON."""
    good = {"login": "mallory", "password": PASSWORD}
    for given in (
        good | {"unknown": 1},
        {"password": PASSWORD},
        {"login": "mallory", "password": [PASSWORD]},
        {"login": "mallory", "password": {"is": PASSWORD}},
        {"login": "mallory", "password": NUMBER},
        {"login": {"is": PASSWORD}, "password": PASSWORD},
        {"login": "m", "password": PASSWORD, "name": [PASSWORD]},
        {"login": "m!", "password": PASSWORD},
        {"login": "mallory", "password": PASSWORD[:7]},
        {"login": PASSWORD, "password": PASSWORD},
        PASSWORD,
        [PASSWORD],
        [good],
    ):
        yield {"query": SIGN_UP, "variables": {"input": given}}
        yield {"query": LOG_IN, "variables": {"input": given}}
    for literal in (
        PASSWORD,
        f'["{PASSWORD}"]',
        f'{{is: "{PASSWORD}"}}',
        f'"{PASSWORD}" unknown: 1',
        f'"{PASSWORD}" "{PASSWORD}"',
        f'"{PASSWORD}',
        f'"""{PASSWORD}"""',
        f'"{PASSWORD}\\x"',
        f"${PASSWORD[:6]}",
        str(NUMBER),
        f"{NUMBER}.5 {NUMBER}",
    ):
        yield {"query": f'mutation {{ logIn(input: {{login: "mallory", password: {literal}}}) {TOKEN} }}'}
    yield {"query": f'mutation {{ logIn(input: {{login: "mallory" password "{PASSWORD}"}}) {TOKEN} }}'}
    yield {"query": f'mutation {{ logIn(input: "{PASSWORD}") {TOKEN} }}'}
    yield {"query": f'mutation ($p: Int = "{PASSWORD}") {{ logIn(input: {{login: "m", password: $p}}) {TOKEN} }}'}
    yield {"query": LOG_IN, "variables": PASSWORD}
    yield {"query": LOG_IN, "variables": [PASSWORD]}
    yield {"query": [PASSWORD], "variables": {}}
    yield {"query": ME, "operationName": {"is": PASSWORD}}
    yield json.dumps({"query": LOG_IN, "variables": {"input": good}})[:-3]
    yield json.dumps({"query": LOG_IN, "variables": {"input": good}}).replace(PASSWORD, PASSWORD + "\udc80")
    yield json.dumps({"query": LOG_IN, "variables": {"input": good}}) + PASSWORD
    yield f"login=mallory&password={PASSWORD}"
    yield f'"{PASSWORD}"'
    yield json.dumps([{"query": LOG_IN, "variables": {"input": good}}])


KINDS = (
    ("application/json", "application/json"),
    ("application/json", "application/graphql-response+json"),
    ("application/json", "text/event-stream"),
    ("application/x-www-form-urlencoded", "*/*"),
)
"""The media types of requests, and of the responses that they accept."""


async def provoke(client: httpx.AsyncClient, token: str, kinds: Sequence[tuple[str, str]] = KINDS[:1]) -> str:
    """Send failing requests. Return all responses as one text, including headers."""
    head, claims, mac = token.split(".")
    answers = []
    for body in bodies():
        content = body if isinstance(body, str) else json.dumps(body)
        for kind, accept in kinds:
            headers = {"content-type": kind, "accept": accept, "x-fanline-explain": "1"}
            answers.append(await client.post("/graphql", content=content.encode(errors="replace"), headers=headers))
    for authorization in (
        HEADER,
        f"Basic {HEADER}",
        f"Bearer {HEADER}",
        f"Bearer a {HEADER}",
        f"Bearer {head}.{claims}.{mac[::-1]}",
    ):
        for accept in ("application/json", "text/event-stream"):
            headers = {"authorization": authorization, "accept": accept}
            answers.append(await client.post("/graphql", json={"query": ME}, headers=headers))
    good = {"query": LOG_IN, "variables": json.dumps({"input": {"login": "alice", "password": PASSWORD}})}
    answers.append(await client.get("/graphql", params=good))
    answers.append(await client.post("/nowhere", json=good))
    answers.append(await client.put("/graphql", json=good))
    assert not [answer for answer in answers if "token" in answer.text and '"credentials"' in answer.text]
    return "\n".join(f"{answer.status_code} {answer.headers} {answer.text}" for answer in answers)


async def enter(client: httpx.AsyncClient) -> str:
    """Sign up, then log in with a correct and a wrong password. Return the token."""
    given = {"login": "alice", "password": PASSWORD}
    signed_up = await client.post("/graphql", json={"query": SIGN_UP, "variables": {"input": given}})
    assert signed_up.json()["data"]["signUp"]["credentials"]
    taken = await client.post("/graphql", json={"query": SIGN_UP, "variables": {"input": given}})
    wrong = {"login": "alice", "password": WRONG}
    refused = await client.post("/graphql", json={"query": LOG_IN, "variables": {"input": wrong}})
    for answer in (taken, refused):
        assert not found_in(answer.text)
    logged_in = await client.post("/graphql", json={"query": LOG_IN, "variables": {"input": given}})
    return str(logged_in.json()["data"]["logIn"]["credentials"]["token"])


def found_in(text: str, *further: str) -> list[str]:
    """Return the canaries in a text, each with its context."""
    return [text[max(0, text.find(c) - 200) : text.find(c) + 100] for c in (*CANARIES, *further) if c in text]


def secrets_of(token: str) -> tuple[str, ...]:
    """Return the secret parts of a token: the whole token, its signature, and the session's id."""
    session = Tokens([KEY]).verify(token).session
    return token, token.rpartition(".")[2], session


@pytest.fixture
async def canary_api(
    store_url: str, tmp_path: Path, graph: Graph, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[Api]:
    """Serve in this process, with every logger at the level DEBUG."""
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "uvicorn.access"):  # the test's own client, and logs that production disables
        caplog.set_level(logging.WARNING, name)
    settings = Settings(
        store_url=store_url, archive_url=archive_url_of(store_url), data_dir=tmp_path, secret=(KEY,), worker=True
    )
    async with serving(settings, graph) as api:
        yield api


async def test_no_answer_log_or_metric_has_a_secret(canary_api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """This holds for any failing request, at any log level."""
    token = await enter(canary_api.client)

    answers = await provoke(canary_api.client, token, KINDS)
    metrics = (await canary_api.client.get("/metrics")).text

    for text in (answers, metrics, caplog.text):
        assert found_in(text, *secrets_of(token)) == []
    assert "Traceback" not in caplog.text


async def test_no_socket_message_has_a_secret(canary_api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """This covers the messages and close reasons of WebSockets."""
    token = await enter(canary_api.client)
    heard = []
    async with canary_api.socket() as socket:
        for n, body in enumerate(
            body for body in bodies() if isinstance(body, dict) and isinstance(body["query"], str)
        ):
            if isinstance(body.get("variables") or {}, dict) and "operationName" not in body:
                await socket.send(type="subscribe", id=str(n), payload=body)
                while (message := await socket.receive())["type"] == "next":
                    heard.append(message)
                heard.append(message)
    for authorization in (f"Bearer {HEADER}", HEADER, [HEADER]):
        async with canary_api.open_socket() as socket:
            await socket.send(type="connection_init", payload={"authorization": authorization})
            heard.append({"closed": await socket.closed()})
    async with canary_api.socket() as socket:
        await socket.send(type="subscribe", id="1", payload={"query": LOG_IN, "variables": PASSWORD})
        heard.append({"closed": await socket.closed()})

    assert len(heard) > 30
    assert found_in(json.dumps(heard), *secrets_of(token)) == []
    assert found_in(caplog.text, *secrets_of(token)) == []


@pytest.mark.parametrize("operation", [SIGN_UP, LOG_IN])
async def test_an_unexpected_error_is_logged_without_the_password(
    canary_api: Api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """The messages of an error and its causes may quote it. The log has the types, the lines and the request id."""

    async def broken(*words: object) -> str:
        try:
            return str(int(str(words)))
        except ValueError as error:
            raise RuntimeError(f"cannot hash {words}") from error

    hashing = canary_api.app.state.graph.users.hashing
    monkeypatch.setattr(hashing, "hash", broken)
    monkeypatch.setattr(hashing, "verify", broken)
    given = {"login": "alice", "password": PASSWORD}

    answer = await canary_api.client.post("/graphql", json={"query": operation, "variables": {"input": given}})

    [error] = answer.json()["errors"]
    assert error["extensions"]["code"] == "INTERNAL"
    assert found_in(answer.text + caplog.text) == []
    assert error["extensions"]["requestId"] in caplog.text
    assert "RedactedError('RuntimeError')" in caplog.text
    assert "in broken" in caplog.text


async def test_a_json_log_has_the_operation_and_no_secret(canary_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the request id and the name of the operation, but neither the viewer nor what the client sent."""

    async def broken(*words: object) -> str:
        raise RuntimeError(f"cannot hash {words}")

    monkeypatch.setattr(canary_api.app.state.graph.users.hashing, "hash", broken)
    given = {"login": "alice", "password": PASSWORD}
    query = SIGN_UP.replace("mutation", "mutation JoinNow")
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(json_formatter())
    logging.getLogger().addHandler(handler)
    try:
        answer = await canary_api.client.post("/graphql", json={"query": query, "variables": {"input": given}})
    finally:
        logging.getLogger().removeHandler(handler)

    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    [failed] = [line for line in lines if line["level"] == "error"]
    assert failed["request_id"] == answer.json()["errors"][0]["extensions"]["requestId"]
    assert failed["operation"] == "JoinNow"
    assert "in broken" in failed["exception"]
    assert found_in(written.getvalue(), "alice") == []


async def test_the_store_holds_no_secret_but_hashes(canary_api: Api, store_url: str) -> None:
    """Neither the log nor any key contains a password, a token, a signing key, or a client's address."""
    token = await enter(canary_api.client)
    await provoke(canary_api.client, token)
    await canary_api.graph.worker().drain()
    session = Tokens([KEY]).verify(token).session

    async with Redis.from_url(store_url, decode_responses=True) as raw:
        log = repr(await raw.xrange("{log}"))
        stored = [f"{key}: {await value_of(raw, key)}" async for key in raw.scan_iter()]

    assert found_in("\n".join(stored), token, token.rpartition(".")[2], "127.0.0.1") == []
    assert session not in log


async def value_of(raw: Redis, key: str) -> Any:
    match await raw.type(key):
        case "hash":
            return await raw.hgetall(key)
        case "string":
            return await raw.get(key)
        case "stream":
            return await raw.xrange(key)
        case _:
            return await raw.zrange(key, 0, -1, withscores=True)


def test_settings_do_not_show_their_secrets() -> None:
    """They are neither in the text representation of settings nor in error messages."""
    settings = Settings(
        secret=(KEY,),
        store_url=f"valkey://fanline:{STORE_WORD}@store:6379",
        archive_url=f"postgresql://fanline:{ARCHIVE_WORD}@sql/fanline",
    )

    assert found_in(f"{settings!r} {settings} {settings.tuning}") == []


async def test_a_process_in_production_reveals_no_secret(
    running_store: EmbeddedStore, store_url: str, tmp_path: Path
) -> None:
    """This holds from its start without an archive, through failures and the loss of its store, to its end."""
    async with (
        production(running_store, tmp_path) as (api, proxy),
        httpx.AsyncClient(base_url=api.url, timeout=60) as client,
    ):
        token = await enter(client)
        heard = await provoke(client, token)
        heard += (await client.get("/metrics")).text
        proxy.target = tmp_path / "no store"
        for connection in list(proxy.clients):
            connection.close()
        headers = {"authorization": f"Bearer {token}"}
        given = {"login": "alice", "password": PASSWORD}
        body = {"query": LOG_IN, "variables": {"input": given}}
        failed = await asyncio.gather(
            client.post("/graphql", json={"query": ME}, headers=headers),
            client.get("/health/ready"),
            client.post("/graphql", json=body),
        )
        heard += "".join(answer.text for answer in failed)
        assert "STORE_UNAVAILABLE" in heard
        heard += arguments_of(api.process.pid)
        await api.end(signal.SIGTERM)

    log = api.log.read_text()
    assert "The archive does not answer" in log
    assert found_in(log + heard, *secrets_of(token)) == []


def arguments_of(pid: int) -> str:
    """Return the command line of a process, where the system shows it."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.read_text() if path.exists() else ""


@asynccontextmanager
async def production(store: EmbeddedStore, folder: Path) -> AsyncIterator[tuple[Served, TcpProxy]]:
    """Serve as in production, with a store that requires a password, a proxy, and a missing archive."""
    async with Redis.from_url(store.url) as raw:
        await raw.acl_setuser(
            "fanline", enabled=True, passwords=f"+{STORE_WORD}", keys=["*"], channels=["*"], categories=["+@all"]
        )
        try:
            async with proxy_to(store.socket) as proxy:
                api = Served(folder, f"valkey://fanline:{STORE_WORD}@127.0.0.1:{proxy.port}")
                api._environment |= {
                    "FANLINE_ENV": "production",
                    "FANLINE_SECRET": KEY,
                    "FANLINE_RATE_LIMITS": "false",  # otherwise most requests would be refused by the limits
                    "FANLINE_ARCHIVE_URL": f"mysql://fanline:{ARCHIVE_WORD}@127.0.0.1:9/fanline",
                }
                await api.start()
                try:
                    yield api, proxy
                finally:
                    with suppress(ProcessLookupError):
                        os.killpg(api.process.pid, signal.SIGKILL)
        finally:
            await raw.acl_deluser("fanline")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "Variable '$i' has invalid value at .password: String cannot represent a non string value: ['x: y']",
            "Variable '$i' has invalid value at .password: String cannot represent a non string value.",
        ),
        (
            "Expected value of type 'LogInInput' to be an object, found: \"a, found: b\".",
            "Expected value of type 'LogInInput' to be an object.",
        ),
        ("Syntax Error: Expected ':', found String 'a\nb'.", "Syntax Error: Expected ':', found String."),
        ("Syntax Error: Unexpected Name 'pass'.", "Syntax Error: Unexpected Name."),
        ("Syntax Error: Expected Name, found '}'.", "Syntax Error: Expected Name, found '}'."),
        (
            "Int cannot represent non 32-bit signed integer value: 5",
            "Int cannot represent non 32-bit signed integer value.",
        ),
        ("Cannot query field 'found' on type 'Query'.", "Cannot query field 'found' on type 'Query'."),
    ],
)
def test_complaints_of_graphql_name_no_value(message: str, shown: str) -> None:
    """The messages contain the position and the expected type."""
    assert without_values(message) == shown
    assert not re.search("x: y|a, found|pass'", without_values(message))
