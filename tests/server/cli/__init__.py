"""Tests of `server/cli`."""
