"""The ids in an event: those of all users, posts and lists that the event may concern."""

from collections.abc import Iterator
from dataclasses import fields

from graph.log.events import Event


def ids_in(event: Event) -> Iterator[int]:
    """Yield the number of an event and all numbers in its fields, of any meaning. An id may be yielded twice."""
    yield event.number
    for field in fields(event.body):
        value = getattr(event.body, field.name)
        for each in value if isinstance(value, tuple | list) else (value,):
            if type(each) is int:
                yield each
