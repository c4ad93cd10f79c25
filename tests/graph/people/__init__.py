"""Tests of actions of users that concern other users."""
