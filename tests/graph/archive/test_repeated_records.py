"""Tests of posts whose records a repeated event has written again after they were archived."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graph import keys
from tests.graph.archive.moves import BATCH, ArchiveWorld, archive_of, archive_world
from tests.graph.archive.test_archiver import move
from tests.support.stores import Stop, sends


@pytest.fixture
async def world(store_url: str, tmp_path: Path) -> AsyncIterator[ArchiveWorld]:
    async with archive_world(store_url, tmp_path) as world:
        yield world


async def test_a_repeated_record_stays_if_its_row_is_missing(world: ArchiveWorld) -> None:
    """The record that a repeated event has written may be the last copy of the post."""
    post, kept = world.posts[world.bob][:BATCH]
    await move(world.graph)
    await archive_of(world.graph).delete([post])
    await world.project_again()

    await move(world.graph)

    assert await world.raw.exists(keys.post(post))
    assert not await world.raw.exists(keys.post(kept))


async def test_a_record_repeated_while_its_note_is_removed_is_freed(world: ArchiveWorld) -> None:
    """The projection writes the record after the archiver has freed it, and its note goes with the older one."""
    post = world.posts[world.bob][0]
    await move(world.graph)
    await world.project_again()
    slow = world.process()
    stop = Stop(slow.store, sends("ZREM", keys.REWRITTEN))
    freeing = asyncio.create_task(move(slow))
    await stop.reached.wait()
    await world.project_again()
    assert await world.raw.exists(keys.post(post))

    stop.resume()
    await freeing

    assert not await world.raw.exists(keys.post(post))
    await world.check_final_state()
