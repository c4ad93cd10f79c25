"""Move a slot of a cluster from one primary to another, in steps or at once."""

from tests.support.cluster import Cluster, Node, until


def move(slot: int, source: Node, target: Node, *, up_to: str) -> None:
    """Start to move a slot, and move its keys that begin with `up_to`."""
    target.run("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.run("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
    for name in source.run("CLUSTER", "GETKEYSINSLOT", slot, 1_000_000):
        if name.startswith(up_to):
            source.run("MIGRATE", "127.0.0.1", target.port, name, 0, 5000)


def finish(cluster: Cluster, slot: int, target: Node) -> None:
    """Complete the move of a slot."""
    for node in (target, *(node for node in cluster.primaries if node is not target)):
        node.run("CLUSTER", "SETSLOT", slot, "NODE", target.id)
    until(lambda: is_agreed(cluster, slot, target))


def move_at_once(cluster: Cluster, slot: int, source: Node, target: Node, last: int | None = None) -> None:
    """Move a slot, or all up to `last`, by an atomic slot migration."""
    last = slot if last is None else last
    source.run("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, last, "NODE", target.id)
    until(lambda: is_agreed(cluster, slot, target) and is_agreed(cluster, last, target))


def is_agreed(cluster: Cluster, slot: int, owner: Node) -> bool:
    """Return True if all nodes agree on the owner of a slot and on the owner's epoch.

    Before that, the slot must not move again: of two owners, the nodes believe the one with the higher epoch, and the
    other one deletes the slot's keys.
    """
    claims = [claims_of(node, slot) for node in cluster.nodes]
    return {name for name, _ in claims[0]} == {owner.id} and all(each == claims[0] for each in claims)


def claims_of(node: Node, slot: int) -> set[tuple[str, str]]:
    """Return the owners of a slot according to a node, with their epochs."""
    return {
        (line["node_id"], line["epoch"])
        for line in node.run("CLUSTER NODES").values()
        for first, *rest in line["slots"]
        if int(first) <= slot <= int((rest or [first])[0])
    }
