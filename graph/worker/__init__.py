"""The worker: projects the log in the background."""
