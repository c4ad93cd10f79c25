"""A client of the HTTP API: it sends one user's requests, and repeats them until they are acknowledged."""

import asyncio
import random
import time
from typing import Any

import httpx

REQUEST_SECONDS = 12.0  # above the server's deadline
PATIENCE = 60.0  # seconds within which a repeated request must be acknowledged
EXPECTED = {"STORE_UNAVAILABLE", "OVERLOADED", "NOT_DURABLE", "DEADLINE_EXCEEDED", "RATE_LIMITED"}
PASSWORD = "violet harbour 71"

SIGN_UP = """mutation ($login: String!, $password: String!) {
  signUp(input: {login: $login, password: $password, idempotencyKey: $login}) {
    credentials { token viewer { user { id } } } userErrors { code } } }"""
LOG_IN = """mutation ($login: String!, $password: String!) {
  logIn(input: {login: $login, password: $password}) {
    credentials { token viewer { user { id } } } userErrors { code } } }"""


class Refused(Exception):
    """The server answered with errors. `codes` are their codes."""

    def __init__(self, codes: list[str]) -> None:
        super().__init__(", ".join(codes))
        self.codes = codes


class Client:
    """A user who sends requests. `answers` counts the failures by code, `delays` has the seconds of each success."""

    def __init__(self, login: str, url: str) -> None:
        self.login = login
        self.url = url
        self.id = ""
        self.token = ""
        self.answers: dict[str, int] = {}
        self.delays: list[float] = []
        self._client = httpx.AsyncClient(base_url=url, timeout=REQUEST_SECONDS)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    async def ask(self, query: str, **variables: Any) -> Any:
        """Return the data of an operation. Raises Refused for errors, and httpx.TransportError."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        response = await self._client.post("/graphql", json={"query": query, "variables": variables}, headers=headers)
        try:
            answer = response.json()
        except ValueError:
            raise Refused([f"HTTP {response.status_code}"]) from None
        if errors := answer.get("errors"):
            raise Refused([error.get("extensions", {}).get("code", "none") for error in errors])
        return answer["data"]

    async def attempt(self, query: str, **variables: Any) -> Any:
        """Return the data of an operation, or None if it was not acknowledged."""
        try:
            return await self.ask(query, **variables)
        except Refused as refused:
            for code in refused.codes:
                self.note(code)
        except httpx.TransportError:
            self.note("no answer")
        return None

    async def insist(self, query: str, **variables: Any) -> Any:
        """Repeat an operation until it is acknowledged, and return its data."""
        began = time.monotonic()
        while (data := await self.attempt(query, **variables)) is None:
            assert time.monotonic() < began + PATIENCE, f"{query} is not acknowledged: {self.answers}"
            await asyncio.sleep(random.uniform(0.05, 0.15))
        self.delays.append(time.monotonic() - began)
        return data

    def another(self) -> "Client":
        """Return another client of the same user, whose requests and failures are counted separately."""
        client = Client(self.login, self.url)
        client.id, client.token = self.id, self.token
        return client

    def note(self, code: str) -> None:
        """Count a failure."""
        self.answers[code] = self.answers.get(code, 0) + 1

    async def join(self) -> None:
        """Sign up. If the response to an earlier attempt was lost, a retry gets a session of the account."""
        answer = (await self.insist(SIGN_UP, login=self.login, password=PASSWORD))["signUp"]
        self.token, self.id = _credentials(answer)
        self.delays.clear()  # hashing passwords takes long on a busy machine

    async def log_in(self) -> None:
        """Log in."""
        self.token = ""
        answer = (await self.insist(LOG_IN, login=self.login, password=PASSWORD))["logIn"]
        self.token, self.id = _credentials(answer)

    def unexpected(self) -> dict[str, int]:
        """Return the codes of errors that no outage explains, with their counts."""
        known = {"no answer", *EXPECTED}
        return {code: count for code, count in self.answers.items() if code not in known}


def _credentials(answer: Any) -> tuple[str, str]:
    credentials = answer["credentials"]
    return credentials["token"], credentials["viewer"]["user"]["id"]
