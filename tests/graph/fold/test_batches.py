"""Batches of rows that are folded."""

from graph.archive.rows import EventRow
from graph.expected.event_folds import fold_event
from graph.fold.content import Content
from graph.fold.reading import FoldedBatch


def test_rows_that_cannot_be_decoded_are_counted_and_named() -> None:
    batch = FoldedBatch(Content([1]), fold_event)

    batch.add([EventRow(7, "Followed", 1, 2, "{}"), EventRow(8, "Followed", 1, 2, "damaged")])

    assert (batch.events, batch.damaged) == (2, [8])
