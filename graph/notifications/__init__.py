"""Notifications: actions of other users that concern a user, in groups, newest first."""
