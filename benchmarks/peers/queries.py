"""The queries that all variants answer, and the HTTP requests that contain them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

HOME = (
    "query H { viewer { homeTimeline { entries(first: 30) { edges { cursor node { id createdAt "
    "author { id login name followersCount followingCount relationship { state } } ... on Post { text platform } } } "
    "pageInfo { hasNextPage endCursor } } } } }"
)
FOLLOWERS = (
    "query L($login: String!) { user(by: {login: $login}) { followers(first: 50) { edges { cursor node { id login name "
    "followersCount followingCount relationship { state } } } pageInfo { hasNextPage endCursor } } } }"
)
NESTED = (
    "query N($login: String!) { user(by: {login: $login}) { followers(first: 10) { nodes { id login timeline { "
    "entries(first: 5) { nodes { id createdAt author { id login name relationship { state } } ... on Post { text } } "
    "pageInfo { hasNextPage } } } } } } }"
)
SMALL = "{ viewer { user { id } } }"
PUBLISH = (
    'mutation P($text: String!) { publishPost(input: {text: $text, platform: "web"}) { post { id createdAt } '
    "userErrors { code } } }"
)
MIXED = "mixed"
READS_PER_WRITE = 9


@dataclass(frozen=True, slots=True)
class Query:
    """A document and its variables."""

    name: str
    document: str
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """The body of the request."""
        return orjson.dumps({"query": self.document, "variables": self.variables})

    def request(self, token: str) -> str:
        """Return a viewer's complete HTTP request."""
        body = self.body.decode()
        return (
            "POST /graphql HTTP/1.1\r\nHost: localhost\r\nUser-Agent: benchmark\r\nAccept: application/json\r\n"
            "Content-Type: application/json\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )


def reads(famous: str) -> dict[str, Query]:
    """Return the queries by name: home timeline, list of followers, three nested lists, and a minimal query."""
    login = {"login": famous}
    return {
        query.name: query
        for query in (
            Query("H", HOME),
            Query("L", FOLLOWERS, login),
            Query("nested", NESTED, login),
            Query("small", SMALL),
        )
    }


def publish(place: int) -> Query:
    """Return a mutation that publishes a post."""
    return Query("publish", PUBLISH, {"text": f"Post {place} of those that are written while others read."})


def mixed(home: Query, reader: str, writer: str, place: int) -> list[str]:
    """Return the requests of one connection: nine reads and a post. Connections start at different requests."""
    requests = [home.request(reader)] * READS_PER_WRITE + [publish(place).request(writer)]
    start = place % len(requests)
    return requests[start:] + requests[:start]
