"""Tests of connections: what they may send, how fast, and what is left when they end."""
