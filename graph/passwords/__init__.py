"""Passwords: hashing, common passwords, and back-off after failed log-ins."""
