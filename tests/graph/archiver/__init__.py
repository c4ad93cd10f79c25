"""Tests of the archiver, of hot windows, and of the binding between a store and an archive."""
