"""With `wait_for_replicas`, a mutation that replicas have not received is not acknowledged, and can be repeated."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from graph.errors import NotDurable
from graph.store.store import Store
from tests.conftest import CHEAP
from tests.support.graph_worlds import people
from tests.support.graphs import empty, open_graph
from tests.support.pair import Pair, frozen, pair_in

pytestmark = pytest.mark.slow


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Run a primary and its replica."""
    with pair_in(tmp_path / "pair") as pair:
        yield pair


async def test_a_repeated_post_is_published_once(pair: Pair) -> None:
    """Also by another process: the repetition writes nothing, and waits until the replica has the first write."""
    empty(pair.primary.url)
    graphs = [await open_graph(pair.primary.url, CHEAP, partial(Store, wait_for_replicas=1)) for _ in range(2)]
    [alice] = await people(graphs[0], "alice")
    await graphs[1].binding.check()
    with frozen(pair.replica.process):
        for graph in graphs:
            with pytest.raises(NotDurable):
                await graph.posts.publish(alice, "text", idempotency_key="key")
            if graph is graphs[0]:
                number = await graph.log.last()

    for graph in graphs:
        assert (await graph.posts.publish(alice, "text", idempotency_key="key")).id == number
    assert pair.replica.run("XLEN", "{log}") == pair.primary.run("XLEN", "{log}")
    for graph in graphs:
        await graph.close()
