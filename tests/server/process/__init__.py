"""Tests of `server/process`."""
