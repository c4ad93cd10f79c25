"""Tests of `server/playground`."""
