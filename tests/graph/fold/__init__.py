"""Tests of `graph/fold`."""
