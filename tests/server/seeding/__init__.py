"""Tests of `server/seeding`."""
