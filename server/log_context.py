"""The request and the operation that a log record belongs to."""

from contextvars import ContextVar

LOGGED: ContextVar[tuple[str, str | None] | None] = ContextVar("logged", default=None)
"""The request id and the name of the operation, which is None if unknown. Never the viewer, a token or a variable."""

MAX_NAME = 64


def logged_fields() -> dict[str, str]:
    """Return the fields to add to log records of the running operation; none if no operation is running."""
    found = LOGGED.get()
    if found is None:
        return {}
    request_id, name = found
    return {"request_id": request_id} if name is None else {"request_id": request_id, "operation": name[:MAX_NAME]}
