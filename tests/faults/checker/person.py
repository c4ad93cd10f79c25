"""A user who acts through HTTP, one request at a time, and records what was acknowledged."""

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

REQUEST_SECONDS = 12.0  # above the server's deadline
PATIENCE = 60.0  # seconds within which a repeated request must be acknowledged
EXPECTED = {"STORE_UNAVAILABLE", "OVERLOADED", "NOT_DURABLE", "DEADLINE_EXCEEDED", "RATE_LIMITED"}
PASSWORD = "violet harbour 71"

SIGN_UP = """mutation ($login: String!, $password: String!) {
  signUp(input: {login: $login, password: $password}) { session { token user { id } } userErrors { code } } }"""
LOG_IN = """mutation ($login: String!, $password: String!) {
  logIn(input: {login: $login, password: $password}) { session { token user { id } } userErrors { code } } }"""
PUBLISH = """mutation ($text: String!, $key: String!) {
  publishPost(input: {text: $text, idempotencyKey: $key}) { post { id } userErrors { code } } }"""
DELETE = "mutation ($id: ID!) { deletePost(input: {id: $id}) { deletedPostId userErrors { code } } }"
FOLLOW = "mutation ($id: ID!) { follow(input: {userIds: [$id]}) { results { outcome } userErrors { code } } }"
UNFOLLOW = "mutation ($id: ID!) { unfollow(input: {userIds: [$id]}) { results { outcome } userErrors { code } } }"
HOME = "{ viewer { homeTimeline { posts(first: 30) { nodes { id text author { login } } } } } }"


class Refused(Exception):
    """The server answered with errors. `codes` are their codes."""

    def __init__(self, codes: list[str]) -> None:
        super().__init__(", ".join(codes))
        self.codes = codes


@dataclass
class Person:
    """A user, with all changes that the server has acknowledged.

    `posts` holds the texts of existing posts by id; `acknowledged` is the time at which each was acknowledged.
    `not_found` are posts that were missing when the user deleted them. `answers` counts the outcomes of requests by
    code.
    """

    login: str
    url: str
    id: str = ""
    token: str = ""
    posts: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    not_found: set[str] = field(default_factory=set)
    following: set[str] = field(default_factory=set)
    acknowledged: dict[str, float] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    delays: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._client = httpx.AsyncClient(base_url=self.url, timeout=REQUEST_SECONDS)
        self._published = 0

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

    async def insist(self, query: str, **variables: Any) -> Any:
        """Repeat an operation until it is acknowledged, and return its data."""
        began = time.monotonic()
        while True:
            try:
                data = await self.ask(query, **variables)
            except Refused as refused:
                for code in refused.codes:
                    self.answers[code] = self.answers.get(code, 0) + 1
            except httpx.TransportError:
                self.answers["no answer"] = self.answers.get("no answer", 0) + 1
            else:
                self.delays.append(time.monotonic() - began)
                return data
            assert time.monotonic() < began + PATIENCE, f"{query} is not acknowledged: {self.answers}"
            await asyncio.sleep(random.uniform(0.05, 0.15))

    async def join(self) -> None:
        """Sign up. If only the response to an earlier attempt was lost, log in."""
        answer = (await self.insist(SIGN_UP, login=self.login, password=PASSWORD))["signUp"]
        if answer["session"] is None:
            answer = (await self.insist(LOG_IN, login=self.login, password=PASSWORD))["logIn"]
        self.token, self.id = answer["session"]["token"], answer["session"]["user"]["id"]
        self.delays.clear()  # hashing passwords takes long on a busy machine

    async def publish(self) -> None:
        """Publish a post with a unique text."""
        self._published += 1
        text = f"{self.login} writes {self._published}"
        post = (await self.insist(PUBLISH, text=text, key=text))["publishPost"]["post"]["id"]
        self.posts[post] = text
        self.acknowledged[post] = time.monotonic()

    async def delete(self, post: str) -> None:
        """Delete a post."""
        answer = (await self.insist(DELETE, id=post))["deletePost"]
        codes = [error["code"] for error in answer["userErrors"]]
        assert codes in ([], ["NOT_FOUND"]), f"{self.login} cannot delete {post}: {codes}"
        del self.posts[post]
        (self.not_found if codes else self.deleted).add(post)

    async def follow(self, user: str) -> None:
        """Follow a user."""
        await self._change(FOLLOW, "follow", user, {"FOLLOWED", "ALREADY_FOLLOWING"})
        self.following.add(user)

    async def unfollow(self, user: str) -> None:
        """Unfollow a user."""
        await self._change(UNFOLLOW, "unfollow", user, {"UNFOLLOWED", "NOT_FOLLOWING"})
        self.following.discard(user)

    async def _change(self, query: str, name: str, user: str, expected: set[str]) -> None:
        answer = (await self.insist(query, id=user))[name]
        outcomes = {result["outcome"] for result in answer["results"]}
        assert outcomes <= expected, f"{self.login} cannot {name} {user}: {answer}"

    async def act(self, others: list[str]) -> None:
        """Perform a random operation."""
        choice = random.random()
        if choice < 0.55:
            await self.publish()
        elif choice < 0.65 and self.posts:
            await self.delete(random.choice(list(self.posts)))
        elif choice < 0.85:
            user = random.choice(others)
            await (self.unfollow(user) if user in self.following else self.follow(user))
        else:
            await self.insist(HOME)

    def unexpected(self) -> dict[str, int]:
        """Return the codes of errors that no outage explains, with their numbers."""
        known = {"no answer", *EXPECTED}
        return {code: count for code, count in self.answers.items() if code not in known}
