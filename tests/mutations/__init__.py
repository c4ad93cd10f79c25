"""Tests of `mutations`."""
