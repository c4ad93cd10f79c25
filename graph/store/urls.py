"""Store URLs: the servers that a URL names, and redis-py's connections to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis import __version__, exceptions
from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.driver_info import DriverInfo

SERVER_SECONDS = 5.0
NODE_SECONDS = 1.0
BACKOFF = ExponentialWithJitterBackoff(base=0.05, cap=0.5)
DRIVER = DriverInfo(lib_version=__version__)  # otherwise redis-py reads its metadata for each connection
SCHEMES = {"valkey": "redis", "valkeys": "rediss", "redis": "redis", "rediss": "rediss", "unix": "unix"}
CLUSTER_SUFFIX = "+cluster"
CLUSTER_SCHEMES = tuple(f"{scheme}{CLUSTER_SUFFIX}" for scheme in SCHEMES if scheme != "unix")
RESERVED_OPTIONS = {"protocol", "decode_responses"}
POOL_OPTIONS = {"max_connections", "timeout"}
CLUSTER_FORM = "must have the form valkey+cluster://user:password@host:6379,host:6379"


@dataclass(frozen=True)
class Servers:
    """The servers that a store URL names.

    `names` holds the host or socket path of a single server, or the `host:port` of each cluster node in the URL. These
    nodes are the first to be asked for the slot map.
    """

    names: tuple[str, ...]
    is_cluster: bool
    connection_class: type[AbstractConnection]
    options: Mapping[str, Any]

    def connection(self, name: str, retries: int = 0) -> AbstractConnection:
        """Return a new, unopened connection to a server. Opening it is retried up to `retries` times."""
        retry = Retry(BACKOFF, retries, (exceptions.ConnectionError,))
        options: dict[str, Any] = {**self.options, "retry": retry}
        if self.is_cluster:
            host, _, port = name.rpartition(":")
            options |= {"host": host, "port": int(port)}
        return self.connection_class(**options)


def check_url(url: str) -> None:
    """Raise ValueError unless `url` is a valid store URL.

    The message never contains parts of the URL, which may hold a password.
    """
    servers_of(url)


def servers_of(url: str) -> Servers:
    """Return the servers that a URL names. Raises ValueError for an invalid store URL."""
    scheme, _, rest = url.partition("://")
    if scheme in CLUSTER_SCHEMES:
        return _cluster(SCHEMES[scheme.removesuffix(CLUSTER_SUFFIX)], rest)
    if scheme not in SCHEMES:
        raise ValueError(f"must begin with one of {', '.join(f'{name}://' for name in (*SCHEMES, *CLUSTER_SCHEMES))}")
    connection_class, options = _options_of(f"{SCHEMES[scheme]}://{rest}", SERVER_SECONDS)
    return Servers((str(options.get("path") or options.get("host", "localhost")),), False, connection_class, options)


def _cluster(scheme: str, rest: str) -> Servers:
    credentials, at, rest = rest.rpartition("@")
    hosts, question, query = rest.partition("?")
    names = []
    for number, node in enumerate(hosts.removesuffix("/").split(","), 1):
        host, _, port = node.rpartition(":")
        if not port.isdecimal() or not 0 < int(port) < 1 << 16 or any(sign in host for sign in "/#"):
            raise ValueError(f"node {number} of the cluster must have the form host:6379; {CLUSTER_FORM}")
        names.append(f"{host.strip('[]') or '127.0.0.1'}:{port}")
    connection_class, options = _options_of(f"{scheme}://{credentials}{at}node{question}{query}", NODE_SECONDS)
    if options.get("db"):
        raise ValueError("must not set db: a cluster has one database")
    return Servers(tuple(names), True, connection_class, options)


def _options_of(url: str, seconds: float) -> tuple[type[AbstractConnection], dict[str, Any]]:
    """Return the connection class and the connection options for a URL in redis-py's form."""
    try:
        options: dict[str, Any] = dict(parse_url(url))
    except ValueError:
        message = "must have the form valkey://user:password@host:6379/0; in a password, write %23 for # and %2F for /"
        raise ValueError(message) from None  # redis-py's message may contain the password
    if reserved := RESERVED_OPTIONS.intersection(options):
        raise ValueError(f"must not set {' or '.join(sorted(reserved))}")
    connection_class = options.pop("connection_class", Connection)
    return connection_class, {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "decode_responses": True,
        "protocol": 3,
        "driver_info": DRIVER,
        **{name: value for name, value in options.items() if name not in POOL_OPTIONS},
    }
