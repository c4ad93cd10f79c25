"""Validation of overlapping fields in time about linear in the document."""

from server.operations.overlaps.rule import LinearOverlappingFields

__all__ = ["LinearOverlappingFields"]
