"""Changes that a request has committed, but that its own reads may not show yet.

The changes are in the log, but the store did not answer in time for their projection. The request may therefore read
outdated states of the users, posts and lists that it has changed.
"""

from contextvars import ContextVar

UNSHOWN: ContextVar[set[int] | None] = ContextVar("unshown", default=None)
"""The ids of the users, posts and lists in these changes. Commits add them. None if the caller reads nothing
afterwards."""
