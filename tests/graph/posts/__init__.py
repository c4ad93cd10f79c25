"""Tests of posts and what users do about them."""
