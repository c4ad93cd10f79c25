"""Tests of `server/demo`."""
