"""The encoding of events in the store and in the archive.

An entry of the log has the fields `kind`, `actor`, `subject` and `body`. The body is a JSON object of the fields that
are neither actor nor subject. A later version may add fields and kinds: decoding ignores unknown fields, streams skip
unknown kinds, and workers stop at them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, TypeAlias, get_args

import orjson

from graph.log.events import Event, EventBody
from graph.log.numbers import number_of

StreamEntry: TypeAlias = tuple[str, list[str] | None]
"""An entry of a stream: its id, and its fields and values, or None if the entry is removed from the stream."""

KIND = re.compile("[A-Za-z][A-Za-z0-9]*")
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(EventBody)}


def unchanged(value: Any) -> Any:
    """Return a value without conversion."""
    return value


BODY_FIELDS: dict[type[Any], tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    kind: tuple(
        (field.name, tuple if isinstance(field.default, tuple) else unchanged)
        for field in fields(kind)
        if field.name not in (kind.ACTOR, kind.SUBJECT)
    )
    for kind in get_args(EventBody)
}
"""For each kind of event, the fields that its JSON body holds, each with a function that converts the JSON value."""

FLAG_DEFAULTS: dict[type[Any], dict[str, bool]] = {
    kind: {field.name: field.default for field in fields(kind) if isinstance(field.default, bool)}
    for kind in get_args(EventBody)
}
"""For each kind of event, the fields that have a boolean default, with these defaults."""


class Encoded(NamedTuple):
    """The fields of an event in the store. If `actor` is None, the actor is the event's own number."""

    kind: str
    actor: int | None
    subject: int | None
    body: str


class UnknownKind(ValueError):
    """This version does not know the kind of an event: a later version wrote it."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"This version does not know events of kind {kind[:100]!r}. Use a later version.")
        self.kind = kind


def encode(body: EventBody) -> Encoded:
    """Return the encoding of an event."""
    values = {field.name: getattr(body, field.name) for field in fields(body)}
    actor = None if body.ACTOR is None else values.pop(body.ACTOR)
    subject = None if body.SUBJECT is None else values.pop(body.SUBJECT)
    rest = without_defaults(type(body), values)
    return Encoded(type(body).__name__, actor, subject, orjson.dumps(rest).decode())


def without_defaults(kind: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a stored body holds: all except None, empty tuples, and booleans equal to the default."""
    flags = FLAG_DEFAULTS[kind]
    return {
        name: value
        for name, value in values.items()
        if value is not None and value != () and not (name in flags and value is flags[name])
    }


def decode(number: int, kind: str, actor: int | None, subject: int | None, body: str | None) -> Event:
    """Return an event from its number and its encoded fields. Unknown fields of the body are ignored.

    Raises UnknownKind, and ValueError for an event that is damaged or redacted.
    """
    record = KINDS.get(kind)
    if record is None:
        raise UnknownKind(kind)
    try:
        stored = orjson.loads(body or "")
        if not isinstance(stored, dict):
            raise TypeError("Its body is not a JSON object.")
        values = {name: convert(stored[name]) for name, convert in BODY_FIELDS[record] if name in stored}
        for name, id_ in ((record.ACTOR, actor), (record.SUBJECT, subject)):
            if name is not None and id_ is None:
                raise ValueError(f"It has no {name}.")
            if name is not None:
                values[name] = id_
        return Event(number, record(**values))
    except (KeyError, TypeError, ValueError) as error:
        found = (body or "")[:200].encode(errors="backslashreplace").decode()
        raise ValueError(f"Event {number} of kind {kind} is damaged: {found}") from error


def encoded_entry(entry: StreamEntry) -> Encoded:
    """Return the encoded event, of any kind, in a stream entry. Raises ValueError for a removed or damaged entry."""
    words = entry[1] or []
    try:
        values = dict(zip(words[::2], words[1::2], strict=True))
        actor, subject = (int(values[name]) if name in values else None for name in ("actor", "subject"))
        if not KIND.fullmatch(values["kind"]):
            raise ValueError("Its kind is not a name.")
        return Encoded(values["kind"], actor, subject, values["body"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"Entry {entry[0]} of the log is damaged.") from error


def decode_entry(entry: StreamEntry) -> Event | None:
    """Return the event in a stream entry; None if the entry is removed or damaged, or if its kind is unknown."""
    try:
        return decode(number_of(entry[0]), *encoded_entry(entry))
    except ValueError:
        return None


def unknown_kind(entry: StreamEntry) -> str | None:
    """Return the kind of the event in a stream entry if this version does not know it, else None.

    Also return None for a damaged kind, which is not a name: a later version would not know it either.
    """
    words = entry[1] or []
    kind = next((value for name, value in zip(words[::2], words[1::2], strict=False) if name == "kind"), "")
    return kind if KIND.fullmatch(kind) and kind not in KINDS else None
