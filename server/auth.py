"""Access tokens: signed JWTs that identify a user and a session. The store records which sessions are live.

Tokens are signed with HS256. The header must contain the key id (`kid`); the claims must contain the user (`sub`), the
session (`sid`) and the expiry (`exp`).
"""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import jwt
from cachetools import LRUCache

from graph.model import MAX_NUMBER, Credentials
from resolvers.context import Viewer
from server.signing_keys import key_id

ALGORITHM = "HS256"
MAX_TOKEN = 2000
VERIFIED = 10_000  # tokens whose verification is cached


class BadToken(Exception):
    """An invalid token. The message gives the reason and does not contain the token."""


class Tokens:
    """Issues and verifies access tokens. The first key signs and every key verifies, so keys can be rotated.

    A token is verified with the key that its `kid` identifies, and with no other.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._key = keys[0]
        self._keys = {key_id(key): key for key in reversed(keys)}
        self._verified: LRUCache[str, Viewer] = LRUCache(VERIFIED)

    def issue(self, session: Credentials) -> str:
        """Return the access token of a session, which expires with the session."""
        claims = {
            "sub": str(session.user),
            "sid": session.id,
            "iat": int(time.time()),
            "exp": int(session.expires_at.timestamp()),
        }
        return jwt.encode(claims, self._key, ALGORITHM, {"kid": key_id(self._key)})

    def verify(self, token: str) -> Viewer:
        """Return the viewer of a token. Raises BadToken for a forged, malformed or expired token."""
        if len(token) > MAX_TOKEN:
            raise BadToken("The access token is malformed.")
        try:
            key = self._key_named(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(token, key, [ALGORITHM], {"require": ["exp", "sid", "sub"], "verify_iat": False})
        except jwt.InvalidSignatureError:
            raise _not_issued_here() from None
        except jwt.ExpiredSignatureError:
            raise BadToken("The access token has expired. Log in again.") from None
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
        """Return the viewer of an Authorization header, or of the same value in a WebSocket's first message.

        Returns None for None: the client is anonymous. Caches verified tokens. Raises BadToken for any value other than
        a valid bearer token.
        """
        if authorization is None:
            return None
        if isinstance(authorization, str) and len(authorization) > MAX_TOKEN + len("Bearer "):
            raise BadToken("The access token is malformed.")
        words = authorization.split() if isinstance(authorization, str) else []
        if len(words) != 2 or words[0].lower() != "bearer":
            raise BadToken("The Authorization header must be 'Bearer' followed by an access token.")
        token = words[1]
        known = self._verified.get(token)
        if known is not None and known.expires_at.timestamp() > time.time():
            return known
        viewer = self._verified[token] = self.verify(token)
        return viewer


def _not_issued_here() -> BadToken:
    return BadToken("The access token was not issued by this server, or its key was retired. Log in again.")


def _viewer(user: object, session: object, end: object) -> Viewer:
    """Return the viewer that a token's claims identify. Raises BadToken for a malformed claim.

    A valid signature does not rule this out, because another service may sign with the same key.
    """
    if not isinstance(user, str) or not re.fullmatch(r"[1-9][0-9]{0,15}", user) or int(user) > MAX_NUMBER:
        raise BadToken("The access token does not identify a user.")
    if not isinstance(session, str) or not re.fullmatch(r"[\w-]{1,64}", session, re.ASCII):
        raise BadToken("The access token does not name a session.")
    try:
        return Viewer(int(user), session, datetime.fromtimestamp(float(str(end)), UTC))
    except (ValueError, OverflowError, OSError):
        raise BadToken("The access token has no valid expiry.") from None
