"""Tests of `graph/home`."""
