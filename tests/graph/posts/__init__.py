"""Tests of posts and of the actions on them."""
