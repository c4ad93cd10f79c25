"""Repair: compare derived data with its source, and correct the differences."""
