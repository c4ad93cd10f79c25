"""The archiver: copies the log into the archive, and keeps only the hot window of posts in the store."""
