"""Links in a text: `http://` and `https://` URLs, and addresses that are not links.

A URL is a link only if the host found in it is the one that a browser opens; otherwise no part of it is a link. A host
with letters beyond ASCII is checked against IDNA (UTS #46). Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese
text may follow a host or a path without a space and ends the link, unless the host continues after this text. A link
also ends before the punctuation and the brackets of the sentence around it. A URL with credentials, such as
`https://bank.example@evil.example`, is not a link: readers mistake the credentials for the host.

Addresses without a scheme, such as `social.example/@alice`, are not links either, but they contain no mentions or
hashtags.
"""

from collections.abc import Sequence

import idna
import regex

from graph.text.scripts import IGNORABLE, LETTERS, SPACED, UNSPACED
from graph.text.web_urls import MAX_HOST, MAX_PORT

STOPS = "。．｡"
"""Full stops in Chinese and Japanese, which IDNA treats as dots."""
ASCII_URL = r"A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%"
URL = rf"(?:[{ASCII_URL}]|[{SPACED}--[\x00-\x7f]])"
IN_BRACKETS = rf"\[(?:(?![\[\]]){URL})*+\]"
FOREIGN = rf"[{LETTERS}--[\x00-\x7f]]"
MEDIAL = r"·・‧་״׳\u200c\u200d"
TAIL = regex.compile(
    rf"(?V1)[/?#](?:{IN_BRACKETS}|(?!\]\(){URL}|(?<=[/?#=&_+\-(:,~@’–{MEDIAL}]|%[0-9A-Fa-f]{{2}}|{FOREIGN}){UNSPACED}"
    rf"|{UNSPACED}(?={UNSPACED}*+[/?_=&])"
    rf"|(?<=[{LETTERS}])[{MEDIAL}](?=[{LETTERS}])|(?<=[{LETTERS}])[’–](?={FOREIGN}))*+"
)
"""A path, a query and a fragment. Letters of scripts without spaces belong to it only after or before a delimiter.

It ends before `](`, as after a URL that is the text of a link in Markdown.
"""
SCHEME = regex.compile(rf"(?V1)(?<![[\p{{L}}\p{{Nd}}]--{UNSPACED}]\p{{M}}*)https?://", regex.IGNORECASE)
HOST_RUN = regex.compile(rf"(?V1)[{LETTERS}\-.{STOPS}{IGNORABLE}]++")
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?+(?![A-Za-z0-9])"
ASCII_HOST = regex.compile(rf"{LABEL}(?:\.{LABEL})*+")
FOLLOWED = regex.compile(rf"(?V1)(?:[{LETTERS}\-]++[.．])+{SPACED}{{2,63}}+(?={UNSPACED}|[{STOPS}{IGNORABLE}])")
"""A host that is followed directly by other text."""
GOES_ON = regex.compile(
    rf"(?V1)[.．][{LETTERS}]|[{IGNORABLE}][A-Za-z0-9.]|[。｡][{LETTERS}\-.{STOPS}]++(?=[/?#:])"
    rf"|[。｡][A-Za-z0-9\-.]*+(?<=[A-Za-z])(?=\s|$)"
)
"""A host continues after a Chinese or Japanese full stop if a path follows, or if only an ASCII label follows."""
UNSEEN = regex.compile(rf"(?V1)[{IGNORABLE}]")
DOT = regex.compile(f"[.．{STOPS}]")
PORT = regex.compile(r":([0-9]{1,5}+)(?![0-9A-Za-z])")
JOINED = rf"[{LETTERS}\p{{S}}·‧・‐–⁄׳{IGNORABLE}\-]"
NO_HOST = regex.compile(
    rf"(?V1)[A-Za-z0-9\-._~:!$&'()*+,;=%]*+@|%|\.?(?=[^\x00-\x7f]){JOINED}++\.[{LETTERS}\p{{S}}]"
    rf"|(?:{JOINED}|[|\"^{{}}\[\]、：])*+@[{LETTERS}\-]++[.．]\w"
)
"""Text that must not follow a host: the end of credentials, or symbols and a label that browsers add to the host."""
NO_PORT = regex.compile(r":[A-Za-z0-9]")
PUNCTUATION = ".,;:!?'*"
EMPHASIS = "_~"
BRACKETS = {")": "(", "]": "["}
BARE_HOST = rf"(?:[{LETTERS}\-]++[.．])+\p{{L}}{{2,63}}+\.?|localhost|(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}"
ADDRESS = regex.compile(
    rf"(?V1)(?<![{LETTERS}@.．\-+])(?:(?:{BARE_HOST})(?::[0-9]{{1,5}}+)?+(?=[/?#])"
    rf"|[A-Za-z][A-Za-z0-9+.\-]*+://){URL}*+"
)
"""A URL, or an address without a scheme but with a path, a query or a fragment."""
HAS_ADDRESS = regex.compile(r"[.．]|://|localhost")


def links_in(text: str) -> list[tuple[int, int]]:
    """Return the positions of the links in a text: the start and the end of each, in order. O(n)."""
    if "://" not in text:
        return []
    found, after = [], 0
    while scheme := SCHEME.search(text, after):
        end = link_end(text, scheme.start(), scheme.end())
        if end is not None:
            found.append((scheme.start(), end))
        after = end or scheme.end()
    return found


def link_end(text: str, start: int, authority: int) -> int | None:
    """Return the end of a link, given the starts of the link and of its host, or None if it is not a link."""
    end = host_end(text, authority)
    if end is None or NO_HOST.match(text, end):
        return None
    if port := PORT.match(text, end):
        if int(port[1]) > MAX_PORT:
            return None
        end = port.end()
        if NO_HOST.match(text, end):
            return None
    elif NO_PORT.match(text, end):
        return None
    tail = TAIL.match(text, end)
    if tail is None:
        return end
    return start + len(without_punctuation(text[start : tail.end()], text[start - 1] if start else ""))


def host_end(text: str, start: int) -> int | None:
    """Return the end of the host that begins at a position, or None if there is no valid host."""
    run = HOST_RUN.match(text, start)
    if run is None:
        return None
    host = run.group()
    plain = ASCII_HOST.match(host)
    if plain is not None and (rest := host[plain.end() :]).strip("._-") == "":
        is_absolute = rest == "." and text[run.end() : run.end() + 1] in ("/", "?", "#")
        host = plain.group()
        if rest and not is_absolute and text[run.end() : run.end() + 1] in ("/", "#"):
            return None
        return start + len(host) + is_absolute if len(host) <= MAX_HOST else None
    followed = FOLLOWED.match(host)
    has_tail = text[run.end() : run.end() + 1] in ("/", "?", "#")
    if followed is not None and GOES_ON.search(text, start + followed.end(), run.end() + 1) is None:
        host, has_tail = followed.group(), False
    whole, host = host, host.rstrip(f".-_{STOPS}")
    if (has_tail and whole not in (host, host + ".")) or not is_international(host):
        return None
    return start + len(host) + (has_tail and whole != host)


def is_international(host: str) -> bool:
    """Return True if a host is a valid domain name, perhaps with letters beyond ASCII."""
    if len(host) > MAX_HOST or UNSEEN.search(host):
        return False
    if host.isascii():
        return ASCII_HOST.fullmatch(host) is not None
    if DOT.search(host) is None:
        return False
    try:
        idna.encode(host, uts46=True)
    except idna.IDNAError:
        return False
    return True


def without_addresses(text: str, links: Sequence[tuple[int, int]] | None = None) -> str:
    """Return the text with links and other addresses overwritten with spaces, which keeps all positions. O(n).

    `links` are the links of the text, if the caller knows them.
    """
    if HAS_ADDRESS.search(text) is None:
        return text
    rest, after = [], 0
    for start, end in links_in(text) if links is None else links:
        rest += [text[after:start], " " * (end - start)]
        after = end
    return ADDRESS.sub(lambda match: " " * len(match.group()), "".join([*rest, text[after:]]))


def without_punctuation(link: str, before: str) -> str:
    """Return a link without the punctuation at its end, and without closing brackets that it does not open. O(n).

    `before` is the character before the link: underscores and tildes around a link are emphasis.
    """
    unopened = {closing: link.count(closing) - link.count(opening) for closing, opening in BRACKETS.items()}
    punctuation = PUNCTUATION + (before if before in EMPHASIS else "")
    end = len(link)
    while (last := link[end - 1]) in punctuation or unopened.get(last, 0) > 0:
        if last in unopened:
            unopened[last] -= 1
        end -= 1
    return link[:end]
