"""Behaviour of the social graph, against a real store."""
