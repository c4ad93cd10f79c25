"""The stores of the property machine check what the others check."""

import pytest

from graph.store.commands import SlotError
from tests.properties.journal import Journal
from tests.properties.stores import DirectStore

APART = [("MGET", "{a}", "{b}")]


async def test_keys_of_different_slots_are_found(store_url: str) -> None:
    """In reads and in other commands: a cluster would refuse them."""
    store = DirectStore(store_url, Journal(), single_slot=True)
    with pytest.raises(SlotError):
        await store.send(APART)
    with pytest.raises(SlotError):
        await store.read(APART)
    await store.close()
