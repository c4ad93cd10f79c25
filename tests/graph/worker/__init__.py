"""Tests of `graph/worker`."""
