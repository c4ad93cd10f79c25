"""Tests of what users do about other users."""
