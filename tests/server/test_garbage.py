"""Memory: what refused requests leave behind is little, and is collected when the process has grown."""

import asyncio
import gc

import pytest

from schema import schema
from server.document_size import DocumentLimits
from server.documents import DocumentRefused, Documents, parse_document
from server.garbage import collect_when_grown, resident


class Knot:
    """Something that only a collection frees."""

    def __init__(self, size: int) -> None:
        self.own = self
        self.data = bytearray(size)


async def test_the_process_collects_when_it_has_grown() -> None:
    """Garbage in cycles goes, even if few objects were made."""
    gc.collect()
    gc.disable()
    try:
        collecting = asyncio.create_task(collect_when_grown(0.01, 1 << 20))
        await asyncio.sleep(0)
        before = resident()
        for _ in range(50):
            Knot(1 << 20).data[:] = b"x" * (1 << 20)
        assert resident() > before + 40 * (1 << 20)
        async with asyncio.timeout(10):
            while resident() > before + 20 * (1 << 20):  # noqa: ASYNC110 - memory tells nobody
                await asyncio.sleep(0.01)
        collecting.cancel()
    finally:
        gc.enable()


def test_a_parsed_document_leaves_no_cycles() -> None:
    """It is freed with its last reference, whether it is valid or not."""
    limits = DocumentLimits().tokens
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            parse_document("{ viewer { login } }", limits)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_what_is_kept_of_refused_documents_is_little() -> None:
    """The last ones are remembered with their messages only."""
    documents = Documents(schema._schema, DocumentLimits(), introspection=True)
    for number in range(1000):
        with pytest.raises(DocumentRefused):
            documents.prepare(f"{{ wrong{number} }}")
    assert len(documents._refused) <= 200
    assert all(
        error.nodes is None and error.__traceback__ is None for found in documents._refused.values() for error in found
    )
