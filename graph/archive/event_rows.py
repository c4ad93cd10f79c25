"""Converts events to rows of the archive."""

from graph.archive.rows import EventRow
from graph.log.encoding import encode
from graph.log.events import Event


def event_row(event: Event) -> EventRow:
    """Return the row of an event. The actor of a sign-up is the new user."""
    encoded = encode(event.body)
    actor = event.number if encoded.actor is None else encoded.actor
    return EventRow(event.number, encoded.kind, actor, encoded.subject, encoded.body)
