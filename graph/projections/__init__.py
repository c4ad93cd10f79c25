"""Projections: apply events of the log to the keys that reads use."""
