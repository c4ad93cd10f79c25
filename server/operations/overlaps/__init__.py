"""Validation of overlapping fields in approximately linear time."""

from server.operations.overlaps.rule import LinearOverlappingFields

__all__ = ["LinearOverlappingFields"]
