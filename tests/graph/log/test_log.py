"""The log: ascending numbers, idempotent appends, and reads."""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ClockAhead, ProblemCode, Rejected
from graph.log.events import EventBody, Followed, PostPublished
from graph.log.log import IdempotencyKey
from graph.log.numbers import entry_id, milliseconds, number_of
from graph.model import EPOCH, MAX_NUMBER, SEQUENCE_BITS, number_at, time_of
from tests.support.graph_worlds import Open, append_events, codes

HALF_AN_HOUR = timedelta(minutes=30)

APPEND = """
import asyncio, json, sys
from graph.log.events import Followed
from tests.support.graph_worlds import append_events
from tests.support.graphs import open_graph

async def main():
    graph = await open_graph(sys.argv[1])
    numbers = [(await append_events(graph, [Followed(1, n)]))[0].number for n in range(200)]
    print(json.dumps(numbers))
    await graph.close()

asyncio.run(main())
"""


def note(text: str = "hello") -> list[EventBody]:
    return [PostPublished(1, text)]


async def append(graph: Graph, *, after: datetime | None = None) -> int:
    """Append an event, as if another process had already appended one with the time `after`."""
    if after is not None:
        graph.log.seen = number_at(after)
    [event] = await append_events(graph, note())
    return event.number


async def replayed(graph: Graph, after: int, up_to: int) -> list[int]:
    return [event.number async for event in graph.log.replay(after, up_to)]


async def test_a_number_contains_the_time_of_its_event(graph: Graph) -> None:
    """The number contains the time to the millisecond."""
    before = datetime.now(UTC) - timedelta(milliseconds=1)

    [event] = await append_events(graph, note())

    assert before <= event.at <= datetime.now(UTC)


async def test_the_events_of_one_batch_have_ascending_numbers(graph: Graph) -> None:
    events = await append_events(graph, [Followed(1, n) for n in range(5000)])

    numbers = [event.number for event in events]
    assert numbers == sorted(set(numbers))
    assert [event.body async for event in graph.log.replay(0, MAX_NUMBER)] == [Followed(1, n) for n in range(5000)]


async def test_concurrent_appends_of_two_instances_never_share_a_number(graph: Graph, another: Open) -> None:
    other = await another()

    numbers = await asyncio.gather(*(append(writer) for _ in range(100) for writer in (graph, other)))

    assert len(set(numbers)) == 200
    assert await replayed(graph, 0, MAX_NUMBER) == sorted(numbers)


async def test_two_processes_never_share_a_number(graph: Graph, store_url: str) -> None:
    """The numbers of each process ascend."""
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", APPEND, store_url, stdout=asyncio.subprocess.PIPE)
        for _ in range(2)
    ]

    outputs = [(await process.communicate())[0] for process in processes]

    first, second = map(json.loads, outputs)
    assert first == sorted(first)
    assert second == sorted(second)
    assert len({*first, *second}) == 400


async def test_numbers_ascend_when_times_go_back(graph: Graph) -> None:
    """After a clock that was ahead is corrected, the next number is the last one plus 1."""
    last = await append(graph, after=datetime.now(UTC) + HALF_AN_HOUR)

    for _ in range(3):
        number = await append(graph)
        assert number == last + 1
        last = number


async def test_numbers_exceed_those_that_the_process_has_seen(graph: Graph) -> None:
    """After a failover that lost the end of the log, no number is assigned again."""
    seen = number_at(datetime.now(UTC) + HALF_AN_HOUR)
    graph.log.seen = seen

    assert await append(graph) == seen + 1


async def test_a_lost_log_does_not_repeat_numbers(graph: Graph, raw: Redis) -> None:
    """A process that wrote to the lost log continues above its numbers."""
    last = await append(graph, after=datetime.now(UTC) + HALF_AN_HOUR)
    await raw.delete("{log}")

    assert await append(graph) == last + 1


async def test_an_emptied_log_does_not_repeat_numbers(graph: Graph, another: Open, raw: Redis) -> None:
    """After retention removed all events, a new process continues above the last number."""
    last = await append(graph, after=datetime.now(UTC) + HALF_AN_HOUR)
    await raw.xtrim("{log}", maxlen=0, approximate=False)
    newcomer = await another()

    assert await newcomer.log.last() == last
    assert await append(newcomer) == last + 1


async def test_the_log_ends_before_numbers_lose_precision(graph: Graph) -> None:
    """A number beyond 53 bits is refused in 2089, and nothing of its batch is written."""
    last = await append(graph)

    graph.log.clock = lambda: time_of(MAX_NUMBER)
    graph.log.seen = MAX_NUMBER - 1

    with pytest.raises(ClockAhead):
        await append_events(graph, [*note(), *note()])

    assert await replayed(graph, 0, MAX_NUMBER) == [last]


async def test_the_highest_number_is_exact(graph: Graph) -> None:
    graph.log.clock = lambda: time_of(MAX_NUMBER)
    graph.log.seen = MAX_NUMBER - 1

    assert await append(graph) == MAX_NUMBER
    assert await replayed(graph, MAX_NUMBER - 1, MAX_NUMBER) == [MAX_NUMBER]
    assert await graph.log.last() == MAX_NUMBER
    with pytest.raises(ClockAhead):
        await append(graph)


async def test_a_number_an_hour_ahead_is_refused(graph: Graph, raw: Redis) -> None:
    """The store's clock is ahead, or the caller's is behind. Nothing is written, and the reason names the time."""
    graph.log.clock = lambda: datetime.now(UTC) - timedelta(minutes=61)

    before = datetime.now(UTC)
    with pytest.raises(ClockAhead) as caught:
        await append_events(graph, note(), IdempotencyKey(1, "k"))

    assert any(f"{now:%Y-%m-%d %H:}" in caught.value.reason for now in (before, datetime.now(UTC)))
    assert "Correct the clocks" in caught.value.reason
    assert await raw.xlen("{log}") == 0
    assert await raw.exists(keys.idempotency(1, "k")) == 0


async def test_a_number_less_than_an_hour_ahead_is_accepted(graph: Graph) -> None:
    graph.log.clock = lambda: datetime.now(UTC) - timedelta(minutes=59)

    assert await append(graph)


async def test_a_log_that_is_ahead_is_refused(graph: Graph, another: Open) -> None:
    """The log was written with a clock that was ahead. Repetitions of events that it holds are still answered."""
    graph.log.clock = lambda: datetime.now(UTC) + timedelta(days=365)
    graph.log.seen = number_at(datetime.now(UTC) + timedelta(days=300))
    first = await append_events(graph, note(), IdempotencyKey(1, "k"))
    newcomer = await another()

    assert await append_events(newcomer, note(), IdempotencyKey(1, "k")) == first
    with pytest.raises(ClockAhead):
        await append_events(newcomer, note())


async def test_a_key_appends_once(graph: Graph, another: Open) -> None:
    """The same key with the same events returns the same numbers in any process."""
    batch = [Followed(1, 2), Followed(1, 3)]
    first = await append_events(graph, batch, IdempotencyKey(1, "k"))

    again = await append_events(await another(), batch, IdempotencyKey(1, "k"))

    assert again == first
    assert await replayed(graph, 0, MAX_NUMBER) == [event.number for event in first]


async def test_concurrent_appends_with_one_key_are_one(graph: Graph, another: Open) -> None:
    writers = [graph, await another()]

    events = await asyncio.gather(*(append_events(writers[n % 2], note(), IdempotencyKey(1, "k")) for n in range(50)))

    assert len({event.number for [event] in events}) == 1
    assert len(await replayed(graph, 0, MAX_NUMBER)) == 1


@pytest.mark.parametrize("other", [note("bye"), note() + note(), [PostPublished(1, "hello", "web")], [Followed(1, 2)]])
async def test_a_key_with_other_events_is_refused(graph: Graph, other: list[EventBody]) -> None:
    """Nothing is written."""
    [event] = await append_events(graph, note(), IdempotencyKey(1, "k"))

    with pytest.raises(Rejected) as rejected:
        await append_events(graph, other, IdempotencyKey(1, "k"))

    assert codes(rejected.value) == [ProblemCode.IDEMPOTENCY_MISMATCH]
    assert rejected.value.problems[0].field == ("idempotencyKey",)
    assert await replayed(graph, 0, MAX_NUMBER) == [event.number]


async def test_keys_belong_to_their_user(graph: Graph) -> None:
    """Two users may use the same key."""
    [mine], [yours] = [await append_events(graph, note(), IdempotencyKey(user, "k")) for user in (1, 2)]

    assert mine.number != yours.number


@pytest.mark.parametrize("key", ["}{", "a b", "{x}", ":", "1:k", "*", "x" * 128])
async def test_any_key_stays_in_the_slot_of_the_log(graph: Graph, key: str) -> None:
    """Keys may contain braces, spaces and colons."""
    first = await append_events(graph, note(), IdempotencyKey(1, key))

    assert await append_events(graph, note(), IdempotencyKey(1, key)) == first


async def test_an_empty_append_writes_nothing(graph: Graph) -> None:
    """An empty append takes no round trip."""
    trips = graph.store.round_trips

    assert await graph.log.append([], binding="any") == []
    assert graph.store.round_trips == trips


async def test_replay_yields_the_events_of_a_range(graph: Graph) -> None:
    """The lower bound is exclusive, the upper bound inclusive."""
    events = await append_events(graph, [Followed(1, n) for n in range(1234)])
    numbers = [event.number for event in events]

    assert await replayed(graph, 0, MAX_NUMBER) == numbers
    assert await replayed(graph, numbers[10], numbers[1210]) == numbers[11:1211]
    assert await replayed(graph, numbers[5], numbers[5]) == []


async def test_replay_skips_entries_that_it_cannot_decode(graph: Graph) -> None:
    """Damaged entries and entries of a later version are skipped."""
    last = await append(graph)
    odd = (("kind", "PostPinned", "actor", "1", "body", "{}"), ("kind", "Followed", "body", "{"), ("other", "x"))
    for n, fields in enumerate(odd, 1):
        await graph.store.run("XADD", "{log}", entry_id(last + n), *fields)
    end = await append(graph)

    assert await replayed(graph, 0, MAX_NUMBER) == [last, end]


async def test_an_event_is_found_by_its_number(graph: Graph) -> None:
    [event] = await append_events(graph, note())

    assert await graph.log.get(event.number) == event
    assert await graph.log.get(event.number + 1) is None


async def test_an_empty_log_ends_at_zero(graph: Graph) -> None:
    """The watermark and the trimmed number are 0 too."""
    assert [await graph.log.last(), await graph.log.watermark(), await graph.log.trimmed()] == [0, 0, 0]


@given(st.integers(0, MAX_NUMBER >> SEQUENCE_BITS))
def test_every_millisecond_is_kept(milliseconds_: int) -> None:
    """No time is rounded down to the previous millisecond."""
    assert milliseconds(EPOCH + timedelta(milliseconds=milliseconds_)) == milliseconds_


@given(st.integers(0, MAX_NUMBER))
def test_entry_ids_and_numbers_convert_without_loss(number: int) -> None:
    assert number_of(entry_id(number)) == number
