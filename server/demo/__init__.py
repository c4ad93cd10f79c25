"""The demo data: users, follows and posts."""
