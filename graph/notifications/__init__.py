"""Notifications: what others did that concerns a user, in groups, newest first."""
