"""Tests of `graph/archive`."""
