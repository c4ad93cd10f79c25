"""The numbers of events, and the ids of the stream entries that hold them.

A number is 41 bits of milliseconds since 2020 and 12 bits of sequence. It is the event's position in the log and its
time, the id of the post or user that the event creates, the version of the follow that it changes, a sorted-set score
and a cursor. With 53 bits, a double holds it exactly.
"""

from datetime import datetime, timedelta

from graph.model import EPOCH, EPOCH_MS, SEQUENCE_BITS

SEQUENCES = 1 << SEQUENCE_BITS


def milliseconds(time: datetime) -> int:
    """Return the milliseconds between 2020 and a time, rounded down."""
    return (time - EPOCH) // timedelta(milliseconds=1)


def before(number: int, age: timedelta) -> int:
    """Return the lowest number that an event can have if it is `age` older than event `number`; at least 0."""
    return max(0, (number // SEQUENCES - age // timedelta(milliseconds=1)) * SEQUENCES)


def entry_id(number: int) -> str:
    """Return the stream entry id of a number."""
    return f"{number // SEQUENCES + EPOCH_MS}-{number % SEQUENCES}"


def number_of(entry: str) -> int:
    """Return the number of a stream entry id."""
    ms, _, sequence = entry.partition("-")
    return max(0, int(ms) - EPOCH_MS) * SEQUENCES + int(sequence)
