"""Access tokens: who asks, proven by a signature. Whether the session still lives is asked of the store.

A token is a JWT signed with HS256. Its header must name the key (`kid`), its claims the user (`sub`), the session
(`sid`) and the end (`exp`).
"""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import jwt

from graph.model import MAX_NUMBER, Session
from resolvers.context import Viewer
from server.signing_keys import key_id

ALGORITHM = "HS256"
MAX_TOKEN = 2000
REMEMBERED = 10_000


class BadToken(Exception):
    """A token that proves nothing; the message says why, without repeating the token."""


class Tokens:
    """Makes and checks access tokens: the first key signs, every key verifies, so keys can be rotated.

    A token is verified with the key that its `kid` names, and with no other one.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._key = keys[0]
        self._keys = {key_id(key): key for key in reversed(keys)}
        self._read: dict[str, Viewer] = {}

    def issue(self, session: Session) -> str:
        """Make the access token of a session; it ends when the session does."""
        claims = {
            "sub": str(session.user),
            "sid": session.id,
            "iat": int(time.time()),
            "exp": int(session.expires_at.timestamp()),
        }
        return jwt.encode(claims, self._key, ALGORITHM, {"kid": key_id(self._key)})

    def verify(self, token: str) -> Viewer:
        """Tell who a token stands for. Raises BadToken for a forged, malformed or expired one."""
        if len(token) > MAX_TOKEN:
            raise BadToken("The access token is malformed.")
        try:
            key = self._key_named(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(token, key, [ALGORITHM], {"require": ["exp", "sid", "sub"], "verify_iat": False})
        except jwt.InvalidSignatureError:
            raise _not_issued_here() from None
        except jwt.ExpiredSignatureError:
            raise BadToken("The access token has expired: log in again.") from None
        except (jwt.InvalidTokenError, ValueError, OverflowError):
            raise BadToken("The access token is malformed.") from None
        return _viewer(claims["sub"], claims["sid"], claims["exp"])

    def _key_named(self, kid: object) -> str:
        """Return the key with this id. Raises BadToken."""
        key = self._keys.get(kid) if isinstance(kid, str) else None
        if key is None:
            raise _not_issued_here()
        return key

    def viewer(self, authorization: object) -> Viewer | None:
        """Read an Authorization header, or its like of a socket's first message; None means anonymous.

        What was good is remembered until the token ends. Raises BadToken for everything that is there but is not a good
        bearer token.
        """
        if authorization is None:
            return None
        if isinstance(authorization, str) and len(authorization) > MAX_TOKEN + len("Bearer "):
            raise BadToken("The access token is malformed.")
        words = authorization.split() if isinstance(authorization, str) else []
        if len(words) != 2 or words[0].lower() != "bearer":
            raise BadToken("Authorization must be 'Bearer' and an access token.")
        token = words[1]
        known = self._read.get(token)
        if known is not None and known.expires_at.timestamp() > time.time():
            return known
        viewer = self._read[token] = self.verify(token)
        while len(self._read) > REMEMBERED:
            del self._read[next(iter(self._read))]
        return viewer


def _not_issued_here() -> BadToken:
    return BadToken("The access token was not issued here, or its key was retired: log in again.")


def _viewer(user: object, session: object, end: object) -> Viewer:
    """Check the claims of a token that was signed with our key: a key may be shared with other programs."""
    if not isinstance(user, str) or not re.fullmatch(r"[1-9][0-9]{0,15}", user) or int(user) > MAX_NUMBER:
        raise BadToken("The access token names no person.")
    if not isinstance(session, str) or not re.fullmatch(r"[\w-]{1,64}", session, re.ASCII):
        raise BadToken("The access token names no session.")
    try:
        return Viewer(int(user), session, datetime.fromtimestamp(float(str(end)), UTC))
    except (ValueError, OverflowError, OSError):
        raise BadToken("The access token has no valid end.") from None
