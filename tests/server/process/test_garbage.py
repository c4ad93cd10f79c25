"""Memory: refused requests keep little memory, and garbage is collected when the process has grown."""

import asyncio
import gc
import weakref

import pytest

from graph.tasks import end
from schema import schema
from server.operations.documents import DocumentCache, DocumentRefused
from server.operations.parsing import DocumentLimits, parse_document
from server.process.garbage import WORKER, collect_when_grown, freeze, resident
from tests.support.graph_worlds import PATIENCE


class Knot:
    """An object that only the garbage collector frees."""

    def __init__(self) -> None:
        self.own = self


async def test_the_process_collects_when_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reference cycles are freed, although automatic collection is disabled."""
    monkeypatch.setattr("server.process.garbage.BLOCKS", 1_000)
    monkeypatch.setattr("server.process.garbage.BLOCK_SHARE", 10**9)
    gc.collect()
    gc.disable()
    collecting = asyncio.create_task(collect_when_grown(0.01, 1 << 40))
    try:
        await asyncio.sleep(0)
        knots = [Knot() for _ in range(5_000)]
        watched = [weakref.ref(knot) for knot in knots]
        del knots
        async with asyncio.timeout(PATIENCE):
            while any(watch() is not None for watch in watched):  # noqa: ASYNC110 - nothing signals that an object was freed
                await asyncio.sleep(0.01)
    finally:
        gc.enable()
        await end([collecting])


def test_a_worker_frees_its_garbage_soon() -> None:
    """A worker does not watch its size, so the collector must not wait for many objects."""
    before = gc.get_threshold()
    freeze(WORKER)
    try:
        watched = [weakref.ref(Knot()) for _ in range(20_000)]
        assert sum(watch() is not None for watch in watched) < 10_000
    finally:
        gc.set_threshold(*before)


def test_the_size_of_the_process_is_known() -> None:
    """The size is in bytes, as the operating system reports it."""
    assert 10 * 2**20 < resident() < 100 * 2**30


def test_a_parsed_document_leaves_no_cycles() -> None:
    """It is freed with its last reference, whether it is valid or not."""
    limits = DocumentLimits().tokens
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            parse_document("{ viewer { user { login } } }", limits)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_refused_documents_keep_little_memory() -> None:
    """Only the messages of the last ones are kept."""
    documents = DocumentCache(schema._schema, DocumentLimits(), introspection=True)
    for number in range(1000):
        with pytest.raises(DocumentRefused):
            documents.prepare(f"{{ wrong{number} }}")
    assert len(documents._refusals) <= 200
    assert all(
        error.nodes is None and error.__traceback__ is None for found in documents._refusals.values() for error in found
    )
