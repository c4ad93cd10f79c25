"""Changes that a request has committed, but that its reads would not show yet.

The log has them, but the store did not answer in time for their projection. What the request reads of their users,
posts and lists could be older than its own changes.
"""

from contextvars import ContextVar

UNSHOWN: ContextVar[set[int] | None] = ContextVar("unshown", default=None)
"""The ids of users, posts and lists of such changes: a commit adds them. None if the caller does not read on."""
