"""Follows, mutes, blocks and lists of users, and the relationships derived from them."""
