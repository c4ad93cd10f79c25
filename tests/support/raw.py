"""Plain clients of a store, a single server or a cluster, with which tests bypass Fanline."""

from functools import cache
from typing import Any

import redis
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode

CLUSTER = "valkey+cluster://"


def open_raw(url: str, *, decode_responses: bool = True) -> Any:
    """Return an asynchronous client."""
    if not url.startswith(CLUSTER):
        return Redis.from_url(url, decode_responses=decode_responses)
    nodes = [ClusterNode(host, port) for host, port in addresses(url)]
    return RedisCluster(startup_nodes=nodes, decode_responses=decode_responses)


def open_blocking(url: str, *, decode_responses: bool = True) -> Any:
    """Return a blocking client."""
    if not url.startswith(CLUSTER):
        return redis.Redis.from_url(url, decode_responses=decode_responses)
    node: Any = redis.cluster.ClusterNode  # has no types
    nodes = [node(host, port) for host, port in addresses(url)]
    return redis.RedisCluster(startup_nodes=nodes, decode_responses=decode_responses)


@cache
def lasting_client(url: str) -> Any:
    """Return a blocking client, the same one for every call with a URL."""
    return open_blocking(url)


def addresses(url: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of a cluster's nodes."""
    return [(host, int(port)) for host, _, port in (node.rpartition(":") for node in url[len(CLUSTER) :].split(","))]
