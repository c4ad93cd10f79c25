"""Store URLs, and the redis-py clients made from them."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar
from weakref import WeakSet

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff

C = TypeVar("C", Redis, RedisCluster)

SOCKET_TIMEOUT = 5.0
RETRIES = 3
MAX_CONNECTIONS = 50
SCHEMES = {"valkey": "redis", "valkeys": "rediss", "redis": "redis", "rediss": "rediss", "unix": "unix"}
CLUSTER_SCHEMES = ("valkey+cluster", "redis+cluster")
RESERVED_OPTIONS = {"protocol", "decode_responses"}


class TrackingCluster(RedisCluster):
    """A cluster client that can close all its connections, also those to nodes that it no longer knows."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._opened: WeakSet[AbstractConnection] = WeakSet()
        connection_class = self.connection_kwargs.get("connection_class", Connection)

        def open_connection(**options: Any) -> Any:
            connection: AbstractConnection = connection_class(**options)
            self._opened.add(connection)
            return connection

        make: Any = open_connection  # redis-py only calls the class
        self.connection_kwargs["connection_class"] = make
        for node in self.startup_nodes:
            node.connection_class = make

    async def close_all(self) -> None:
        """Close all connections. Nothing else may use the client meanwhile."""
        self._initialize = True  # redis-py then considers the client closed
        for connection in list(self._opened):
            await connection.disconnect(nowait=True)


def check_url(url: str) -> None:
    """Raise ValueError unless this is the URL of a store.

    The message never contains parts of the URL, which may hold a password.
    """
    scheme, _, rest = url.partition("://")
    if scheme in CLUSTER_SCHEMES:
        for number, node in enumerate(rest.rstrip("/").split(","), 1):
            if not re.fullmatch(r"[\w.:\[\]-]*:\d{1,5}", node):
                raise ValueError(f"node {number} of the cluster must have the form host:6379")
    elif scheme not in SCHEMES:
        raise ValueError(f"must begin with one of {', '.join(f'{name}://' for name in (*SCHEMES, *CLUSTER_SCHEMES))}")
    elif reserved := RESERVED_OPTIONS.intersection(_options_of(f"{SCHEMES[scheme]}://{rest}")):
        raise ValueError(f"must not set {' or '.join(sorted(reserved))}")


def connect(url: str) -> Redis | RedisCluster:
    """Return a client for one server or a cluster. It connects when it is first used.

    Raises ValueError for a URL that names no store.
    """
    check_url(url)
    options: dict[str, Any] = {
        "decode_responses": True,
        "protocol": 3,
        "socket_timeout": SOCKET_TIMEOUT,
        "socket_connect_timeout": SOCKET_TIMEOUT,
    }
    scheme, _, rest = url.partition("://")
    if scheme in CLUSTER_SCHEMES:
        nodes = [node.rpartition(":") for node in rest.rstrip("/").split(",")]
        startup = [ClusterNode(host or "127.0.0.1", int(port)) for host, _, port in nodes]
        return _with_raw_replies(TrackingCluster(startup_nodes=startup, **options))
    retry = Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.5), RETRIES, (exceptions.ConnectionError,))
    pool = BlockingConnectionPool.from_url(
        f"{SCHEMES[scheme]}://{rest}", max_connections=MAX_CONNECTIONS, timeout=SOCKET_TIMEOUT, retry=retry, **options
    )
    return _with_raw_replies(Redis.from_pool(pool))


def _options_of(url: str) -> Mapping[str, Any]:
    try:
        return parse_url(url)
    except ValueError:
        message = "must have the form valkey://user:password@host:6379/0; in a password, write %23 for # and %2F for /"
        raise ValueError(message) from None  # redis-py's message may contain the password


async def close(client: Redis | RedisCluster) -> None:
    """Close all connections of a client that `connect` returned."""
    if isinstance(client, TrackingCluster):
        await client.close_all()
    await client.aclose()


def _with_raw_replies(client: C) -> C:
    """Disable redis-py's reply conversions, except for the commands that its cluster client itself sends."""
    callbacks: Any = client.response_callbacks
    for name in [name for name in callbacks if not str(name).upper().startswith(("CLUSTER", "COMMAND"))]:
        del callbacks[name]
    return client
