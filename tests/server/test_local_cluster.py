"""The private cluster: started, stopped, killed, and started again on the same folder."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from graph.store.store import Store
from server import local_cluster
from server.embedded import Durability
from server.local_cluster import ClusterNode, LocalCluster
from tests.server.cli.test_commands import ask, fanline, serving
from tests.support.cluster import kill
from tests.support.small_demo import SMALL_DEMO

pytestmark = pytest.mark.slow

NAMES = [f"key{n}" for n in range(50)]


async def exchange(cluster: LocalCluster, *, write: bool) -> list[str]:
    """Read keys of all primaries, after writing their names to them if requested."""
    store = Store(cluster.url)
    try:
        if write:
            await store.send([("SET", name, name) for name in NAMES])
        return list(await store.send([("GET", name) for name in NAMES]))
    finally:
        await store.close()


def refuse_connections(*ports: int) -> None:
    """Assert that nothing listens on these ports."""
    for port in ports:
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            pass


def test_the_data_survives_a_restart_with_other_ports(tmp_path: Path) -> None:
    """One port is taken by another program meanwhile. No node is left running."""
    with LocalCluster(tmp_path) as cluster:
        asyncio.run(exchange(cluster, write=True))
        ports = [node.port for node in cluster.nodes]
    with socket.create_server(("127.0.0.1", ports[0])), LocalCluster(tmp_path) as cluster:
        assert asyncio.run(exchange(cluster, write=False)) == NAMES
        again = [node.port for node in cluster.nodes]
        assert (again[0] != ports[0], again[1:]) == (True, ports[1:])
    refuse_connections(*again)


@pytest.mark.parametrize("place", ["port", "port of the cluster"])
def test_a_node_whose_port_is_taken_at_the_last_moment_takes_another(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        others = local_cluster._free_port
        ports = iter([others(), taken] if place == "port of the cluster" else [taken, others()])
        monkeypatch.setattr("server.local_cluster._free_port", lambda: next(ports, None) or others())
        node = ClusterNode(tmp_path)
        node.start()
        try:
            assert taken not in (node.port, node.cluster_port)
            assert node.run("PING")
        finally:
            node.stop()


def test_a_node_never_has_one_port_for_clients_and_for_other_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if it was given one port twice at random, or if such ports were saved."""
    first, second = local_cluster._free_port(), local_cluster._free_port()
    ports = iter([first, first, second])
    monkeypatch.setattr("server.local_cluster._free_port", lambda: next(ports))
    (tmp_path / "ports").write_text(json.dumps([first, first]), "ascii")
    node = ClusterNode(tmp_path)
    node.start()
    try:
        assert [node.port, node.cluster_port] == [first, second]
    finally:
        node.stop()


def test_nodes_that_a_killed_process_left_behind_are_used_and_stopped(tmp_path: Path) -> None:
    """This works even if most of them are dead."""
    left = LocalCluster(tmp_path, Durability.SAFE)
    left.start()
    asyncio.run(exchange(left, write=True))
    pids = [node.pid for node in left.nodes]
    with LocalCluster(tmp_path) as cluster:
        assert [node.pid for node in cluster.nodes] == pids
    for node in left.nodes[1:]:
        kill(node)
    with LocalCluster(tmp_path) as cluster:
        assert asyncio.run(exchange(cluster, write=False)) == NAMES
        assert cluster.nodes[0].pid == pids[0]
    left.stop()


def test_the_demo_is_served_on_a_cluster(tmp_path: Path) -> None:
    """Its data is stored next to that of the demo on one store, and SIGTERM ends all nodes.

    With `strict` durability, changes wait for the replicas.
    """
    environment = {"FANLINE_DATA_DIR": str(tmp_path), "FANLINE_DURABILITY": "strict"}
    with serving("cluster-demo", log=tmp_path / "log", environment=environment, program=SMALL_DEMO) as (process, port):
        answer = ask(port, '{ user(by: {login: "alice"}) { followersCount postsCount } }')
        assert answer["data"]["user"]["postsCount"] > 0
        process.terminate()
        process.wait()
    refuse_connections(*(node.port for node in LocalCluster(tmp_path / "cluster").nodes))


def test_a_cluster_demo_needs_no_other_store(tmp_path: Path) -> None:
    done = fanline("cluster-demo", FANLINE_STORE_URL="valkey://127.0.0.1:1", FANLINE_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "Unset FANLINE_STORE_URL" in done.stderr
