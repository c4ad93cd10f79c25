"""Tests of `graph/rebuild`."""
