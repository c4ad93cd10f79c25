"""The table of all error codes: those of GraphQL errors, of `userErrors`, of WebSockets and of HTTP."""

import re
from collections.abc import Iterator

from graph.errors import ProblemCode
from resolvers.errors import CODES
from scripts.docs.tables import anchored, markdown
from server.endpoint import websocket
from server.errors import STATUSES
from server.operations import trusted_documents
from server.transport import responses

GRAPHQL = {
    "GRAPHQL_PARSE_FAILED": (
        "the document has a syntax error, or more tokens or lines than the [limits](limits.md) allow",
        "correct the document",
    ),
    "GRAPHQL_VALIDATION_FAILED": ("the document does not match the schema", "correct the document"),
    "BAD_USER_INPUT": (
        "an argument, a variable, an id, a cursor or an event filter is invalid; or, with status 400, 405, 413 or 415, "
        "the request as a whole",
        "correct the request",
    ),
    "COST_LIMIT": (
        "the operation would cost more than 20,000 points (`FANLINE_MAX_COST`), or is too deep or too long, and the "
        "message names the limit; or, with a `path`, a page was not read, because the operation had already read "
        "[data worth 20,000 points](limits.md)",
        "request smaller pages or fewer fields, or split the query",
    ),
    "UNAUTHENTICATED": (
        "the token or cookie is malformed, expired or revoked, or its key was removed; or the account was deleted; or "
        "the field requires a viewer",
        "log in again. A stream ends: log in, then subscribe again with the cursor",
    ),
    "FORBIDDEN": (
        "the permission for the firehose is missing or was revoked",
        "ask the operator for the [permission](cli.md#permissions)",
    ),
    "RATE_LIMITED": (
        "the points, writes, log-ins or sign-ups of the viewer or network are used up, or too many operations are "
        "waiting. Without `retryAfter`: the viewer has too many live subscriptions or filter terms, or the WebSocket "
        "runs 100 operations",
        "wait for the seconds in `Retry-After` and `extensions.retryAfter`. Without them: end another subscription, "
        "then try again",
    ),
    "DEADLINE_EXCEEDED": (
        "the operation, or the start of a subscription, took more than 10 seconds (`FANLINE_DEADLINE`)",
        "request smaller pages or fewer fields, or try again later",
    ),
    "OVERLOADED": (
        "the server has more requests than it can answer, too many passwords to check, or no room for changes. "
        "Nothing was executed or written",
        "send the same request again after `extensions.retryAfter` seconds, see [Overload](#overload)",
    ),
    "STORE_UNAVAILABLE": (
        "the store does not answer. A change may have been written",
        "try again later; subscribe again with the cursor, after a delay",
    ),
    "ARCHIVE_UNAVAILABLE": ("the archive, which has the older posts, does not answer", "try again later"),
    "NOT_DURABLE": (
        "the change was made, but too few replicas of the store have it, so that it may be lost",
        "send the mutation again with the same `idempotencyKey`",
    ),
    "INTERNAL": (
        "an unexpected error, which the operator finds in the log by the request id",
        "report the `requestId`; try again later",
    ),
    "PERSISTED_QUERY_NOT_FOUND": (
        "the server does not know the hash; the message is `PersistedQueryNotFound`",
        "send the text with the hash; Apollo Client does so automatically",
    ),
    "PERSISTED_QUERY_NOT_SUPPORTED": (
        "the server has no trusted documents; status 200 with the message `PersistedQueryNotSupported` for a hash, 400 "
        "for a `documentId`",
        "send the text",
    ),
    "PERSISTED_QUERY_NOT_IN_LIST": (
        "the server has no document with this id",
        "ask the operator to add the document, see [Persisted documents](persisted-documents.md)",
    ),
    "PERSISTED_QUERY_ID_REQUIRED": (
        "the server executes only trusted documents, and the request has a text",
        "send a `documentId`",
    ),
}
NOTED = {code: "503, or 200 with the rest of the data" for code, status in STATUSES.items() if status == 503} | {
    "DEADLINE_EXCEEDED": "503",
    "UNAUTHENTICATED": "401, or 200 if only a field requires a viewer",
    "BAD_USER_INPUT": "200, or 400",
    "PERSISTED_QUERY_NOT_SUPPORTED": "200 or 400",
    "PERSISTED_QUERY_NOT_IN_LIST": "400",
    "PERSISTED_QUERY_ID_REQUIRED": "400",
}
"""The HTTP status by error code, for errors whose status depends on the request or is not 200."""

USER = {
    "INVALID": ("the value breaks a rule, which the message states", "show the message next to the `field`"),
    "LOGIN_TAKEN": (
        "the login belongs to another user, or belonged to a deleted one; or a sign-up without a key was repeated",
        "show the message next to the `field`",
    ),
    "LOGIN_INVALID": (
        "the login does not have 2 to 30 characters from `a-z`, `0-9` and `_`",
        "show the message next to the `field`",
    ),
    "PASSWORD_TOO_WEAK": (
        "the password has fewer than 8 characters, is the login, the name or one repeated character, or is common",
        "show the message, which names the rule",
    ),
    "WRONG_CREDENTIALS": (
        "the login does not exist, or the password is wrong",
        "show the message; it does not reveal whether the login exists",
    ),
    "TEXT_EMPTY": ("the text is empty or only white space", "disable the button until there is text"),
    "TEXT_TOO_LONG": ("the text has more than 1,000 characters", "show the number of characters while the user types"),
    "NOT_FOUND": (
        "the object does not exist, was deleted or is hidden; or its id is malformed or of another type, "
        "such as that of a repost in place of its post",
        "remove it from the page",
    ),
    "NOT_ALLOWED": (
        "the object belongs to another user; or, after a log-in, the account is suspended",
        "do not offer the action; show the message",
    ),
    "TOO_MANY": (
        "the input has too many ids or attachments, or its text has too many mentions, hashtags and links; or there "
        "would be too many lists, members of a list, followed, muted or blocked users, reposts or bookmarks",
        "split the request; shorten the text; remove something first",
    ),
    "TOO_MANY_ATTEMPTS": (
        "ten log-ins to this account from the same network have failed",
        "show the message, which says when to try again: at most 15 minutes later",
    ),
    "IDEMPOTENCY_MISMATCH": (
        "the idempotency key was already used with a different input, or for a sign-up with another password",
        "use a new key for each new post, list or account",
    ),
    "BLOCKED": (
        "the viewer blocks the user whom the action is about, or that user blocks the viewer",
        "show the message",
    ),
}

CLOSE = {
    1006: (
        "the network failed, the server crashed, or it refused the handshake: 403 if it does not allow the page's "
        "origin, 503 if it is overloaded",
        "reconnect with the cursor, after a randomised delay. If it closes at once each time, add the origin to "
        "`FANLINE_ALLOWED_ORIGINS`",
    ),
    1007: ("a text message is not UTF-8", "encode messages in UTF-8"),
    1008: ("too many pings, pongs or fragments", "send fewer"),
    1009: ("a message has more than 100 KB (`FANLINE_MAX_BODY`)", "send smaller messages"),
    1012: ("the server restarts", "reconnect with the cursor, after a randomised delay"),
    websocket.TRY_AGAIN_LATER: (
        "the viewer has too many open WebSockets, or the server is [overloaded](#overload)",
        "close others, or try again later",
    ),
    4400: ("a message violates the protocol", "correct the client"),
    websocket.UNAUTHORIZED: ("an operation was sent before `connection_ack`", "wait for `connection_ack` first"),
    websocket.FORBIDDEN: (
        "the token is invalid or expired, or the session was logged out",
        "log in, then reconnect with the cursor",
    ),
    4406: ("the subprotocol is not supported", "use `graphql-transport-ws`"),
    websocket.TOO_LATE: ("no `connection_init` within 5 seconds", "send `connection_init` when the socket opens"),
    websocket.NOT_UNIQUE: ("the id belongs to an operation that is still running", "use a new id for each operation"),
    websocket.TOO_MANY_INITS: ("a second `connection_init`", "send `connection_init` once per socket"),
}

HTTP = {
    400: (
        "the request is not valid HTTP (plain text), or not a valid GraphQL request (JSON with `BAD_USER_INPUT`)",
        "correct the request",
    ),
    401: ("see `UNAUTHENTICATED`", "log in again"),
    403: ("a WebSocket handshake from an origin that is not allowed", "add the origin to `FANLINE_ALLOWED_ORIGINS`"),
    404: ("the path does not exist, or is closed in production", "see [Endpoints](operations.md#endpoints)"),
    405: ("a mutation was sent with GET, or the method is neither GET nor POST", "send POST"),
    408: ("the headers did not arrive within 10 seconds, or the body within 30", "send the request again"),
    413: ("the body has more than 100,000 bytes (`FANLINE_MAX_BODY`)", "send a smaller body"),
    414: ("the URL is longer than 16 KB", "send POST"),
    415: ("the body is not JSON by its content type", "send `content-type: application/json`"),
    429: (
        "`RATE_LIMITED`; or, as plain text or HTML, too many connections or requests from one address, which may also "
        "come from the proxy",
        "wait for the seconds in `Retry-After`, if present",
    ),
    431: (
        "there are more than 100 headers, or they exceed 64 KB in total or 8 KB each",
        "send fewer or shorter headers",
    ),
    500: ("see `INTERNAL`", "report the `requestId`"),
    503: (
        "`OVERLOADED`, `DEADLINE_EXCEEDED` or an outage, before or instead of any data",
        "wait for the seconds in `Retry-After`, then try again",
    ),
}


def table() -> str:
    """Return the table. Raises SystemExit if a code that the server uses is not described here."""
    if missing := sorted(known() - {*GRAPHQL, *USER} | {*map(str, closing() - CLOSE.keys())}):
        raise SystemExit(f"scripts/docs/errors.py does not have {', '.join(missing)}: add the cause and what to do.")
    return markdown(("code", "where", "status", "cause", "what to do"), rows())


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows."""
    for code, texts in GRAPHQL.items():
        yield anchored(code), "`errors`", NOTED.get(code, str(STATUSES.get(code, 200))), *texts
    for problem, texts in USER.items():
        yield anchored(problem), "`userErrors`", "200", *texts
    for closed, texts in CLOSE.items():
        yield anchored(f"close-{closed}", str(closed)), "WebSocket close", "", *texts
    for status, texts in HTTP.items():
        yield anchored(f"status-{status}", str(status)), "HTTP", str(status), *texts


def known() -> set[str]:
    """Return the codes that the server uses in `errors` and `userErrors`."""
    documents = vars(trusted_documents).values()
    persisted = {each for each in documents if isinstance(each, str) and re.fullmatch("PERSISTED_[A-Z_]+", each)}
    return {*STATUSES, *persisted, *(code for _, code in CODES), *(code.value for code in ProblemCode)}


def closing() -> set[int]:
    """Return the WebSocket close codes, and the statuses of refused requests that are missing from `HTTP`."""
    codes = {each for each in vars(websocket).values() if isinstance(each, int) and 1000 < each < 5000}
    return codes | (responses.TEXTS.keys() - HTTP.keys())
