"""Moving a slot of a cluster from one primary to another, in steps."""

from tests.support.cluster import Cluster, Node


def move(slot: int, source: Node, target: Node, *, upto: str) -> None:
    """Start to move a slot, and move its keys that begin with `upto`."""
    target.run("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.run("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
    for name in source.run("CLUSTER", "GETKEYSINSLOT", slot, 1_000_000):
        if name.startswith(upto):
            source.run("MIGRATE", "127.0.0.1", target.port, name, 0, 5000)


def finish(cluster: Cluster, slot: int, target: Node) -> None:
    """Complete the move of a slot."""
    for node in (target, *(node for node in cluster.primaries if node is not target)):
        node.run("CLUSTER", "SETSLOT", slot, "NODE", target.id)
