"""Searches for posts and for users."""
