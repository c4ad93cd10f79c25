"""The archive: older posts in an SQL database."""
