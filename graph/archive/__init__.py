"""The archive of older posts in an SQL database."""
