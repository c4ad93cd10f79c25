"""Clients that other people wrote, against a served application."""
