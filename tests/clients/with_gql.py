"""A home timeline in Python, with gql: python with_gql.py URL TOKEN."""

import asyncio
import json
import os
import random
import sys
from typing import Any

from gql import Client, GraphQLRequest
from gql.transport.exceptions import TransportConnectionFailed
from gql.transport.websockets import WebsocketsTransport

ENTRY = """fragment Entry on TimelineItem {
  __typename id ... on Post { text } ... on Repost { author { id login } post { id text } }
}"""
PAGE = GraphQLRequest(
    """query Page {
  viewer { homeTimeline { liveCursor(first: 100) entries(first: 100) { nodes { ...Entry } } } }
}
"""
    + ENTRY
)
PING = float(os.environ.get("PING", 10_000)) / 1000  # seconds between pings, and until one is answered
LIVE = (
    """subscription Live($after: String) {
  homeTimeline(after: $after) {
    __typename
    cursor
    ... on PostAdded { timelineEdge { node { ...Entry } } }
    ... on RepostAdded { timelineEdge { node { ...Entry } } }
  }
}
"""
    + ENTRY
)


async def main(url: str, token: str) -> None:
    """Print the first page, then live posts, until the session ends."""
    after, held, attempts = None, set[str](), 0
    while True:
        transport = WebsocketsTransport(
            url,
            init_payload={"authorization": f"Bearer {token}"},
            connect_args={"ping_interval": PING, "ping_timeout": PING, "close_timeout": PING},
        )
        try:
            async with Client(transport=transport) as session:
                if after is None:
                    timeline = (await session.execute(PAGE))["viewer"]["homeTimeline"]
                    for entry in reversed(timeline["entries"]["nodes"]):
                        show(entry)
                    held = {entry["id"] for entry in timeline["entries"]["nodes"]}
                    after = timeline["liveCursor"]
                async for data in session.subscribe(GraphQLRequest(LIVE, variable_values={"after": after})):
                    event, attempts = data["homeTimeline"], 0
                    after = event["cursor"]
                    entry = event.get("timelineEdge", {}).get("node")
                    if entry and entry["id"] not in held:
                        show(entry)
        except (TransportConnectionFailed, TimeoutError) as lost:
            if is_forbidden(lost):
                sys.exit("The session is over: log in again.")
        await asyncio.sleep(0.25 * 2**attempts * random.SystemRandom().uniform(0.5, 1))
        attempts = min(attempts + 1, 7)


def is_forbidden(lost: Exception) -> bool:
    """Return True if the server closed the socket with 4403: reconnecting is useless."""
    close = getattr(lost.__cause__, "rcvd", None)
    return close is not None and close.code == 4403


def show(entry: dict[str, Any]) -> None:
    """Print a post or a repost. An entry of a type that this version does not know is left out."""
    match entry:
        case {"__typename": "Post", "text": text}:
            print(json.dumps(text), flush=True)
        case {"__typename": "Repost", "author": author, "post": post}:
            print(json.dumps(f"{author['login']} reposted: {post and post['text']}"), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1].replace("http", "ws", 1), sys.argv[2]))
