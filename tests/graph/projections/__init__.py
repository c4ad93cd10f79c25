"""Tests of `graph/projections`."""
