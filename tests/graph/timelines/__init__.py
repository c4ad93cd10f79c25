"""Tests of pages of timelines."""
