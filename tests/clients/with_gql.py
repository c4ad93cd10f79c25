"""A home timeline in Python, with gql: python with_gql.py URL TOKEN."""

import asyncio
import json
import os
import sys
from typing import Any

from gql import Client, GraphQLRequest
from gql.transport.exceptions import TransportConnectionFailed
from gql.transport.websockets import WebsocketsTransport
from tenacity import retry, wait_random_exponential

PAGE = GraphQLRequest("query Page { viewer { homeTimeline { posts(first: 100) { liveCursor nodes { id text } } } } }")
PING = float(os.environ.get("PING", 10_000)) / 1000  # seconds between pings, and until one is answered
LIVE = """subscription Live($after: String) {
  homeTimeline(after: $after) { __typename cursor ... on PostAdded { edge { node { id text } } } }
}"""


async def main(url: str, token: str) -> None:
    """Show the first page, then what comes, for ever."""
    transport = WebsocketsTransport(
        url,
        init_payload={"authorization": f"Bearer {token}"},
        connect_args={"ping_interval": PING, "ping_timeout": PING, "close_timeout": PING},
    )
    patience = retry(
        wait=wait_random_exponential(multiplier=0.25, max=30),
        before_sleep=lambda _: transport.close(),  # or one that was lost half way would count as open
    )
    session = await Client(transport=transport).connect_async(reconnecting=True, retry_connect=patience)
    posts = (await session.execute(PAGE))["viewer"]["homeTimeline"]["posts"]
    for post in reversed(posts["nodes"]):
        show(post)
    held = {post["id"] for post in posts["nodes"]}
    after = posts["liveCursor"]
    while True:
        try:
            async for data in session.subscribe(GraphQLRequest(LIVE, variable_values={"after": after})):
                event = data["homeTimeline"]
                after = event["cursor"]
                if event["__typename"] == "PostAdded" and event["edge"]["node"]["id"] not in held:
                    show(event["edge"]["node"])
        except TransportConnectionFailed:
            await asyncio.sleep(0.25)  # the session is connecting again


def show(post: dict[str, Any]) -> None:
    """Print a post's text."""
    print(json.dumps(post["text"]), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1].replace("http", "ws", 1), sys.argv[2]))
