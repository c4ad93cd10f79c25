"""Passwords: hashing, common passwords, and limits on failed log-ins."""
