"""Follows, mutes, blocks and lists of users, and the relationships that follow from them."""
