"""Explanations: what an operation has cost, as `extensions.explain` of its response.

They have counts, times, and the names of fields and timelines that the client asked for. They have no keys, statements
or addresses.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from resolvers import ids
from resolvers.recording import OperationRecording
from resolvers.timelines import KINDS
from server.operations.preparation import PreparedOperation

T = TypeVar("T")

MAX_LISTED = 100  # pages, round trips and batches of a dataloader that are listed one by one; all are counted


def explain(recording: OperationRecording, prepared: PreparedOperation) -> dict[str, Any]:
    """Return the explanation of an operation that has ended."""
    return {
        "operation": prepared.name,
        "kind": prepared.kind.value if prepared.kind else None,
        "milliseconds": _milliseconds(recording.started, recording.ended),
        "cost": {"points": prepared.cost.points, "late": recording.owed, "bytes": prepared.cost.size},
        "executor": _executor(recording),
        "loaders": [
            {"name": each.name, "batches": list(_first(each.batches)), "hits": each.hits}
            for each in recording.loaders
            if each.requested
        ],
        "store": _store(recording),
        "archive": _archive(recording),
        "timelines": _timelines(recording),
    }


def _executor(recording: OperationRecording) -> dict[str, Any]:
    layers = [
        {"fields": list(each.fields), "milliseconds": _milliseconds(each.started, each.ended)}
        for each in recording.layers
    ]
    mode = "plan" if recording.plan else "graphql-core" if recording.fallback else "none"
    return {"mode": mode, "reason": recording.fallback, "layers": layers}


def _store(recording: OperationRecording) -> dict[str, Any]:
    return {
        "roundTrips": len(recording.exchanges),
        "commands": recording.commands,
        "exchanges": [
            {"commands": each.commands, "milliseconds": _milliseconds(each.started, each.ended)}
            for each in _first(recording.exchanges)
        ],
    }


def _archive(recording: OperationRecording) -> dict[str, Any]:
    durations = [_milliseconds(each.started, each.ended) or 0 for each in recording.transactions]
    return {
        "transactions": len(durations),
        "queries": recording.statements,
        "milliseconds": round(sum(durations), 3),
    }


def _timelines(recording: OperationRecording) -> dict[str, Any]:
    pages = recording.pages
    return {
        "pages": len(pages),
        "scanned": sum(page.scanned for page in pages),
        "dropped": sum(page.dropped for page in pages),
        "read": [
            {
                "id": ids.encode(KINDS[page.kind], page.owner),
                "kind": page.kind.name,
                "sources": page.sources,
                "mergedAuthors": page.merged,
                "scanned": page.scanned,
                "dropped": page.dropped,
            }
            for page in _first(pages)
        ],
    }


def _first(items: Sequence[T]) -> Sequence[T]:
    return items[:MAX_LISTED]


def _milliseconds(started: float, ended: float | None) -> float | None:
    """Return a duration; None for a part that has not ended."""
    return None if ended is None else round((ended - started) * 1000, 3)
