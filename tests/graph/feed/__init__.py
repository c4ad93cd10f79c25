"""Tests of `graph/feed`."""
