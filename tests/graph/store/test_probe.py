"""The probe with which a process measures how busy the store is."""

import asyncio

import pytest

from graph import keys
from tests.support.graph_worlds import PATIENCE, Open
from tests.support.stores import Fault, sends


@pytest.mark.single_server("on a cluster, another key is read each time")
async def test_only_a_reply_answers_a_probe(another: Open) -> None:
    """An outage may make a probe fail at once, which must not look like a fast store."""
    graph = await another()
    answers: list[str] = []
    fault = Fault(graph.store, sends("EXISTS", keys.LOG))
    graph.probe(answers.append)
    await fault.done.wait()
    await asyncio.sleep(0.01)
    assert answers == []

    graph.probe(answers.append)
    async with asyncio.timeout(PATIENCE):
        while not answers:  # noqa: ASYNC110 - the probe sends no notification
            await asyncio.sleep(0.01)
    assert answers == [keys.LOG]
