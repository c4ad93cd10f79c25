"""The archive of the log in an SQL database."""
