"""The stores of the property machine make the same checks as other stores."""

import pytest

from graph.store.commands import SlotError
from tests.properties.journal import Journal
from tests.properties.stores import DirectStore

APART = [("MGET", "{a}", "{b}")]


async def test_keys_of_different_slots_are_found(store_url: str) -> None:
    """They are found in reads and in other commands, which a cluster would refuse."""
    store = DirectStore(store_url, Journal(), single_slot=True)
    with pytest.raises(SlotError):
        await store.send(APART)
    with pytest.raises(SlotError):
        await store.read(APART)
    await store.close()
