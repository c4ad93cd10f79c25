"""The web origins whose pages may use the API."""

import re
from collections.abc import Sequence

LOCAL_ORIGIN = r"http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?"


class Origins:
    """The allowed origins, as listed in the settings; `*` allows every origin.

    With `local`, the pages of servers on this machine are allowed too, on any port. Only the demo sets `local`: in
    development, a front end usually runs on its own server.
    """

    def __init__(self, listed: Sequence[str], *, local: bool = False) -> None:
        self.listed = tuple(listed)
        self.pattern = LOCAL_ORIGIN if local else None
        self._named = frozenset(origin.encode() for origin in listed if origin != "*")
        self._pattern = re.compile(LOCAL_ORIGIN.encode()) if local else None

    @property
    def all_allowed(self) -> bool:
        """True if every origin is allowed. Cookies require the server's own origin, or one that `names` accepts."""
        return "*" in self.listed

    def names(self, origin: bytes) -> bool:
        """Return True if the origin is listed by name, or is local and local origins are allowed. `*` is ignored."""
        return origin in self._named or (self._pattern is not None and self._pattern.fullmatch(origin) is not None)
