"""Accounts: sign-up, log-in, profiles, passwords, sessions and deletion."""
