"""Tests of `graph/passwords`."""
