"""Store URLs: the servers that they name, and the connection settings."""

from typing import Any

import pytest
from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection

from graph.store.urls import check_url, servers_of


def test_a_url_names_a_single_server() -> None:
    servers = servers_of("valkeys://user:p%40ss@store:6380/2?ssl_ca_certs=/ca.pem")

    connection: Any = servers.connection(servers.names[0])

    assert not servers.is_cluster
    assert isinstance(connection, SSLConnection)
    assert (connection.host, connection.port, connection.db) == ("store", 6380, 2)
    assert (connection.username, connection.password, connection.protocol) == ("user", "p@ss", 3)


def test_a_url_names_a_socket() -> None:
    servers = servers_of("unix:///run/store.sock?socket_timeout=3")

    connection: Any = servers.connection(servers.names[0])

    assert isinstance(connection, UnixDomainSocketConnection)
    assert (connection.path, connection.socket_timeout) == ("/run/store.sock", 3)


def test_a_url_names_nodes_of_a_cluster() -> None:
    """User, password and options apply to all nodes, including those that the cluster names."""
    servers = servers_of("valkeys+cluster://user:a,b@c@one:1,[::1]:2,:3/?ssl_check_hostname=no&max_connections=9")

    connection: Any = servers.connection("10.0.0.1:4")

    assert servers.is_cluster
    assert servers.names == ("one:1", "::1:2", "127.0.0.1:3")
    assert isinstance(connection, SSLConnection)
    assert (connection.host, connection.port, connection.password) == ("10.0.0.1", 4, "a,b@c")
    assert servers.connection("::1:2").host == "::1"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("valkey+cluster://u:short@a:1,b", "node 2 of the cluster"),
        ("valkey+cluster://u:short@a:0", "node 1 of the cluster"),
        ("valkey+cluster://u:short@a:1/2", "node 1 of the cluster"),
        ("valkey+cluster://u:short@a:1?db=2", "a cluster has one database"),
        ("valkey+cluster://u:short@a:1?protocol=2", "must not set protocol"),
        ("valkey+cluster://u:short@a:1?socket_timeout=x", "must have the form"),
        ("unix+cluster:///short", "must begin with one of"),
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        check_url(url)
    assert "short" not in str(refusal.value)
