"""Tests of the binding: a store and an archive that do not belong together are refused, in every combination."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.binding import FORMAT, binding_of
from graph.errors import ArchiveUnavailable, StoreNotReady, StoreTooNew, StoreUnavailable, WrongArchive
from graph.rebuild.reservation import reserve
from server.embedded import EmbeddedStore
from server.worker import work
from tests.conftest import CHEAP
from tests.graph.archiver.world import HookedArchive, Meanwhile
from tests.support.graph_worlds import people, posts
from tests.support.raw import open_raw
from tests.support.stores import Crashed, Death, HookedStore, Stop, runs, sends

Opened = Callable[..., Graph]


@pytest.fixture(scope="module")
def other_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a second store."""
    with EmbeddedStore(tmp_path_factory.mktemp("other")) as store:
        yield store.url


@pytest.fixture
async def opened(store_url: str, raw: Redis, tmp_path: Path) -> AsyncIterator[Opened]:
    """Return a function that opens a graph on a store and the archive of this name, both unused at first."""
    graphs: list[Graph] = []
    await raw.flushall()

    def open_(archive: str = "one", url: str = store_url) -> Graph:
        store = HookedStore(url, single_slot=True)
        graphs.append(Graph(store, HookedArchive(f"sqlite:///{tmp_path}/{archive}.sqlite", store), CHEAP))
        return graphs[-1]

    yield open_
    for graph in graphs:
        for hooks in (graph.store.before, graph.store.after):  # type: ignore[attr-defined]
            hooks.clear()
        await graph.close()


@pytest.fixture
async def other(other_url: str) -> AsyncIterator[Redis]:
    """Open a client of the second store, which is empty."""
    async with open_raw(other_url) as client:
        await client.flushall()
        yield client


async def used(graph: Graph) -> int:
    """Write an event, archive it, and return its author."""
    [alice] = await people(graph, "alice")
    await posts(graph, alice, "hi")
    await graph.worker().drain()
    await graph.archiver.work()
    return alice


async def refused(graph: Graph, message: str) -> None:
    """Assert that a process can neither start, nor archive, nor read the archive."""
    with pytest.raises(WrongArchive, match=message):
        await graph.binding.check()
    with pytest.raises(WrongArchive, match=message):
        await graph.archiver.work()
    with pytest.raises(ArchiveUnavailable):
        await graph.binding.archive()


async def test_an_unused_pair_is_bound_both_ways(opened: Opened, raw: Redis) -> None:
    """The check at the start of a process, or the first append, binds both."""
    graph = opened()
    token = await graph.binding.check()

    state = await graph.archive.state()
    assert token == binding_of(state.store or "", state.id) == await raw.get(keys.BINDING)
    assert await opened().binding.token() == token
    await used(opened())
    assert await opened().binding.check() == token


async def test_the_first_append_binds_an_unused_pair(opened: Opened, raw: Redis) -> None:
    graph = opened()
    await used(graph)

    state = await graph.archive.state()
    assert await raw.get(keys.BINDING) == binding_of(state.store or "", state.id)


async def test_a_checked_binding_costs_nothing(opened: Opened) -> None:
    graph = opened()
    await graph.binding.check()
    trips = graph.store.round_trips

    await graph.binding.check()
    await graph.binding.token()
    await graph.binding.archive()

    assert graph.store.round_trips == trips


async def test_writes_need_no_archive(opened: Opened) -> None:
    """A process that starts while the archive is down appends to the store."""
    alice = await used(opened())
    graph = opened("folder/that/is/a/file/../missing")
    graph.archive.database.timeout = 0.0

    await posts(graph, alice, "hi")


async def test_an_empty_store_on_a_used_archive_is_refused(opened: Opened, raw: Redis) -> None:
    """Nothing is written; a rebuild would fill the store."""
    await used(opened())
    await raw.flushall()
    graph = opened()

    await refused(graph, "fanline rebuild")
    with pytest.raises(StoreUnavailable):
        await posts(graph, 1, "hi")

    assert [key async for key in raw.scan_iter("{log}*")] == []


async def test_an_empty_store_on_an_archive_that_another_store_is_bound_to_is_refused(
    opened: Opened, raw: Redis
) -> None:
    """That store may hold events that are not archived yet."""
    await opened().binding.check()
    await raw.flushall()

    await refused(opened(), "fanline rebuild")


async def test_a_used_store_on_another_archive_is_refused(opened: Opened, raw: Redis) -> None:
    """The store is refused whether or not the archive is unused. Neither is changed."""
    await used(opened())
    token = await raw.get(keys.BINDING)

    other = opened("two")
    await refused(other, "another archive")

    assert await raw.get(keys.BINDING) == token
    assert (await other.archive.state()).store is None
    await opened().binding.check()


async def test_an_unused_store_can_get_another_archive(opened: Opened) -> None:
    """Processes with the former archive can no longer write."""
    former = opened()
    await former.binding.check()

    latter = opened("two")
    await latter.binding.check()
    await used(latter)

    await refused(opened(), "another archive")
    with pytest.raises(StoreUnavailable):
        await posts(former, 1, "hi")


async def test_a_store_with_events_but_without_a_binding_is_refused(opened: Opened, raw: Redis) -> None:
    """A development version wrote it."""
    await raw.xadd(keys.LOG, {"kind": "Followed"})

    await refused(opened(), "names no archive")

    assert not await raw.exists(keys.BINDING)


async def test_a_store_whose_log_was_trimmed_counts_as_used(opened: Opened, raw: Redis) -> None:
    await used(opened())
    await raw.xtrim(keys.LOG, maxlen=0)
    await raw.delete(keys.BINDING)

    await refused(opened("two"), "names no archive")


async def test_of_two_stores_one_gets_an_archive(opened: Opened, other: Redis, other_url: str) -> None:
    """The other store is refused, even if both are empty and both have named the archive."""
    first, second = opened(), opened("one", other_url)
    await first.archive.migrate()
    stop = Stop(second.store, sends("ARCHIVE", "bind"))
    binding = asyncio.create_task(second.binding.check())
    await stop.reached.wait()
    token = await first.binding.check()

    stop.resume()
    with pytest.raises(WrongArchive, match="The archive belongs to another store"):
        await binding

    await refused(opened("one", other_url), "The archive belongs to another store")
    assert await opened().binding.check() == token


@pytest.mark.parametrize("writes", [False, True], ids=["starts", "writes"])
@pytest.mark.parametrize("archives", [("one", "one"), ("one", "two")], ids=["one archive", "two archives"])
async def test_processes_that_start_at_any_time_agree(
    opened: Opened, raw: Redis, calls: Iterator[int], archives: tuple[str, str], writes: bool
) -> None:
    """The second process starts between any two calls of the first."""
    for call in calls:
        await raw.flushall()
        first, second = opened(f"{archives[0]}-{call}"), opened(f"{archives[1]}-{call}")
        tokens: list[tuple[Graph, str]] = []

        async def start(second: Graph = second, tokens: list[tuple[Graph, str]] = tokens) -> None:
            tokens.append((second, await second.binding.check()))
            if writes:
                await people(second, "bob")

        meanwhile = Meanwhile(first, call, start)
        try:
            tokens.append((first, await first.binding.check()))
        except WrongArchive:
            assert archives[0] != archives[1]
        first.store.before.clear()  # type: ignore[attr-defined]
        token = await raw.get(keys.BINDING)
        assert token in [each for _, each in tokens]
        for process, each in tokens:
            if each != token:  # the other process has bound the store, still unused, to its own archive
                assert archives[0] != archives[1]
                with pytest.raises(StoreUnavailable):
                    await people(process, "carol")
            else:
                state = await process.archive.state()
                assert binding_of(state.store or "", state.id) == token
        if not meanwhile.happened:
            break
    assert call >= 3


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_a_process_that_dies_while_it_binds_is_replaced(
    opened: Opened, raw: Redis, calls: Iterator[int], late: bool
) -> None:
    """Between the two steps, only the store is bound."""
    for call in calls:
        await raw.flushall()
        dying = opened(f"archive-{call}")
        death = Death(dying.store, call, after=late)
        with suppress(Crashed):
            await dying.binding.check()

        graph = opened(f"archive-{call}")
        await used(graph)
        state = await graph.archive.state()
        assert await raw.get(keys.BINDING) == binding_of(state.store or "", state.id)
        if not death.happened:
            break
    assert call >= 3


@pytest.mark.parametrize("change", ["an event", "a rebuild", "a binding"])
async def test_a_store_that_changes_while_it_is_bound_is_left_alone(opened: Opened, raw: Redis, change: str) -> None:
    """Another process has started to use the store since it was found to be unused."""
    graph = opened()
    stop = Stop(graph.store, runs("bind"))
    binding = asyncio.create_task(graph.binding.check())
    await stop.reached.wait()
    if change == "an event":
        await raw.xadd(keys.LOG, {"kind": "Followed"})
    else:
        await raw.set(keys.REBUILD if change == "a rebuild" else keys.BINDING, "store:archive")
        if change == "a binding":
            await raw.xadd(keys.LOG, {"kind": "Followed"})

    stop.resume()
    with pytest.raises(StoreUnavailable if change == "a rebuild" else WrongArchive):
        await binding

    assert await raw.get(keys.BINDING) == ("store:archive" if change == "a binding" else None)
    assert (await graph.archive.state()).store is None


async def test_a_store_that_is_emptied_while_a_process_runs_accepts_nothing_more(opened: Opened, raw: Redis) -> None:
    """Nothing can be written, although the archive would accept the old store's id."""
    graph = opened()
    alice = await used(graph)
    await raw.flushall()

    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await posts(graph, alice, "hi")
    with pytest.raises(WrongArchive):
        await graph.archiver.work()

    assert [key async for key in raw.scan_iter("{log}*")] == []


async def test_a_store_that_is_rebuilt_while_a_process_runs_is_used(opened: Opened, raw: Redis) -> None:
    """Appends are refused during the rebuild. Afterwards they name the new binding."""
    graph = opened()
    alice = await used(graph)
    archive_id = (await graph.archive.state()).id
    await raw.set(keys.REBUILD, "new")
    await raw.delete(keys.BINDING)
    for process in (graph, opened()):
        with pytest.raises(StoreUnavailable):
            await posts(process, alice, "hi")

    assert await graph.archive.bind("new", replacing=(await graph.archive.state()).store, unused_only=False)
    await raw.set(keys.BINDING, f"new:{archive_id}")
    await raw.delete(keys.REBUILD)

    await posts(graph, alice, "hi")
    await graph.worker().drain()
    await graph.archiver.work()
    assert len(await graph.archive.range(0, 2**53, 100)) == 3


async def test_an_archiver_of_a_replaced_store_writes_nothing(opened: Opened, raw: Redis) -> None:
    """The archive has meanwhile been bound to another store."""
    graph = opened()
    alice = await used(graph)
    await posts(graph, alice, "hi")
    await graph.worker().drain()
    rows = await graph.archive.range(0, 2**53, 100)
    assert await graph.archive.bind("new", replacing=(await graph.archive.state()).store, unused_only=False)

    for _ in range(2):
        with pytest.raises(WrongArchive, match="belongs to another store"):
            await graph.archiver.work()

    assert await graph.archive.range(0, 2**53, 100) == rows


async def binding(raw: Redis) -> str:
    return str(await raw.get(keys.BINDING))


async def set_format(raw: Redis, *number: str) -> None:
    """Set the number of the store's format, or remove it."""
    await raw.set(keys.BINDING, ":".join([*(await binding(raw)).split(":")[:2], *number]))


async def test_a_store_in_a_later_format_is_refused_with_a_message(
    opened: Opened, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New processes refuse the store, and so do changes in a running process and its worker, which stops."""
    monkeypatch.setattr("graph.worker.worker.HOUSEKEEPING_SECONDS", 0.05)
    graph = opened()
    [alice] = await people(graph, "alice")
    worker = asyncio.create_task(work(graph))
    await set_format(raw, str(FORMAT + 1))
    message = f"in format {FORMAT + 1}, written by a later version; this version knows format {FORMAT}"
    last = await graph.log.last()

    with pytest.raises(StoreTooNew, match=message):
        await worker
    for refused in (opened().binding.check(), graph.binding.check(again=True)):
        with pytest.raises(StoreTooNew, match=message):
            await refused
    with pytest.raises(StoreNotReady) as raised:
        await posts(graph, alice, "hi")
    assert message in raised.value.reason
    assert await graph.log.last() == last


@pytest.mark.parametrize("number", [(), ("1",), (str(FORMAT),)])
async def test_a_store_in_an_earlier_format_is_accepted(opened: Opened, raw: Redis, number: tuple[str, ...]) -> None:
    """A worker will convert it. A binding without a format number has format 1."""
    graph = opened()
    [alice] = await people(graph, "alice")
    await set_format(raw, *number)
    graph = opened()

    await posts(graph, alice, "hi")
    await opened().binding.check()


async def test_a_later_version_numbers_the_stores_that_it_makes(
    opened: Opened, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later version numbers new stores and rebuilt ones, even after an interrupted rebuild, and accepts them."""
    monkeypatch.setattr("graph.binding.FORMAT", FORMAT + 1)
    graph = opened()
    await people(graph, "alice")
    assert (await binding(raw)).endswith(f":{FORMAT + 1}")
    await opened().binding.check()
    await graph.worker().drain()
    await graph.archiver.work()

    await raw.flushall()
    await reserve(graph.store, graph.archive)
    await opened().rebuild().run()
    assert (await binding(raw)).endswith(f":{FORMAT + 1}")
    [alice] = await opened().users.ids_of_logins(["alice"])
    assert alice is not None
