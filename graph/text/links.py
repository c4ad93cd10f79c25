"""Links in a text: `http://` and `https://` URLs, in ASCII as browsers copy them.

A URL ends before the first character that RFC 3986 does not allow, so text in Chinese can follow it directly. It also
ends before punctuation and brackets that belong to the sentence around it. A URL with credentials, such as
`https://bank.example@evil.example`, is not a link: readers take the credentials for the host.
"""

import re

from graph.text.web_urls import LABEL, MAX_HOST, MAX_PORT

HOST = re.compile(rf"{LABEL}(?:\.{LABEL})*")
"""A host name or an IPv4 address: labels of up to 63 characters (RFC 1123), without a dot at the end."""
CANDIDATE = re.compile(r"(?<![A-Za-z0-9_])https?://[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+", re.IGNORECASE)
ADDRESS = re.compile(rf"https?://({HOST.pattern})(?::([0-9]{{1,5}}))?(?:[/?#].*)?", re.IGNORECASE)
PUNCTUATION = ".,;:!?'"
BRACKETS = {")": "(", "]": "["}


def links_in(text: str) -> list[tuple[int, int]]:
    """Return the places of the links in a text: the start and the end of each, in order. O(n)."""
    if "://" not in text:
        return []
    found = []
    for match in CANDIDATE.finditer(text):
        link = without_punctuation(match.group())
        if is_address(link):
            found.append((match.start(), match.start() + len(link)))
    return found


def without_links(text: str) -> str:
    """Return the text with a space in the place of each character of a link, so that all other places stay. O(n)."""
    rest, after = [], 0
    for start, end in links_in(text):
        rest += [text[after:start], " " * (end - start)]
        after = end
    return "".join([*rest, text[after:]]) if rest else text


def without_punctuation(link: str) -> str:
    """Return a link without the punctuation at its end, and without closing brackets that it does not open. O(n)."""
    unopened = {closing: link.count(closing) - link.count(opening) for closing, opening in BRACKETS.items()}
    end = len(link)
    while (last := link[end - 1]) in PUNCTUATION or unopened.get(last, 0) > 0:
        if last in unopened:
            unopened[last] -= 1
        end -= 1
    return link[:end]


def is_address(link: str) -> bool:
    """Return True if a URL has a valid host, perhaps a port, and no credentials."""
    match = ADDRESS.fullmatch(link)
    return match is not None and len(match[1]) <= MAX_HOST and int(match[2] or 1) <= MAX_PORT
