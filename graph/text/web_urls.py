"""URLs of profiles and attachments: the `https` URLs that all programs read in the same way.

Programs differ in how they read unusual URLs: backslashes, white space, user names before the host, IP addresses in
other notations, and international names. So the grammar is a small subset of RFC 3986: `https`, a domain name, and
characters that need no interpretation. Everything else is rejected rather than repaired.
"""

import re

MAX_URL = 500
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
TOP_LEVEL = r"(?:[A-Za-z]{2,63}|[xX][nN]--[A-Za-z0-9-]{0,58}[A-Za-z0-9])"
CHARACTER = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})"
URL = re.compile(
    rf"https://(?P<host>(?:{LABEL}\.)+{TOP_LEVEL})(?::(?P<port>[1-9][0-9]{{0,4}}))?"
    rf"(?P<rest>(?:/{CHARACTER}*)?(?:\?(?:{CHARACTER}|\?)*)?(?:#(?:{CHARACTER}|\?)*)?)",
    re.ASCII,
)
MAX_HOST = 253
MAX_PORT = 65_535
SCHEME = "https://"


def normal_url(text: str) -> str | None:
    """Return a URL with lower-case scheme and host; None unless it is an `https` URL with a domain name. O(n).

    The caller must have checked the length.
    """
    scheme, rest = text[: len(SCHEME)].lower(), text[len(SCHEME) :]
    found = URL.fullmatch(scheme + rest)
    if found is None or len(found["host"]) > MAX_HOST or int(found["port"] or 0) > MAX_PORT:
        return None
    port = "" if found["port"] is None else f":{found['port']}"
    return f"{SCHEME}{found['host'].lower()}{port}{found['rest']}"


def authority_of(url: str) -> str:
    """Return the host of a URL from `normal_url`, with its port if it has one."""
    return re.split(r"[/?#]", url[len(SCHEME) :], maxsplit=1)[0]


def normal_authority(text: str) -> str | None:
    """Return a domain name, perhaps with a port, in lower case; None for anything else. O(n)."""
    url = normal_url(SCHEME + text)
    return text.lower() if url is not None and authority_of(url) == text.lower() else None
