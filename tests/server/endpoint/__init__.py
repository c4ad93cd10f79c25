"""Tests of `server/endpoint`."""
