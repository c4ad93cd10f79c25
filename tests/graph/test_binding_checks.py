"""The binding of a store and an archive, checked repeatedly."""

import pytest

from graph import Graph, keys
from graph.errors import ArchiveUnavailable, StoreNotReady, WrongArchive
from tests.support.graph_worlds import counted


async def test_a_check_is_repeated_only_on_request(graph: Graph) -> None:
    await graph.binding.check()
    async with counted(graph) as known:
        await graph.binding.check()
    async with counted(graph) as again:
        await graph.binding.check(again=True)
    assert (known.round_trips, again.round_trips) == (0, 1)


async def test_a_repeated_check_that_fails_forgets_the_binding(graph: Graph) -> None:
    """From then on, the archive is not read."""
    await graph.binding.check()
    state = await graph.archive.state()
    await graph.archive.bind("another", replacing=state.store, unused_only=False)
    assert await graph.binding.archive() is graph.archive
    with pytest.raises(WrongArchive, match="belongs to another store"):
        await graph.binding.check(again=True)
    with pytest.raises(ArchiveUnavailable):
        await graph.binding.archive()


async def test_a_store_that_is_being_rebuilt_is_not_ready(graph: Graph) -> None:
    """The reason says what to do. Clients see an outage."""
    await graph.store.run("SET", keys.REBUILD, "store:archive")
    with pytest.raises(StoreNotReady, match="does not answer") as caught:
        await graph.binding.check()
    assert "run it again" in caught.value.reason
