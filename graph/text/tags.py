"""Hashtags and mentions in a text.

A hashtag is a `#` followed by letters, digits, marks and underscores of any script, with at least one letter. Certain
punctuation inside words belongs to the hashtag if letters of the right scripts are on both sides, such as the middle
dot of Catalan and Japanese, Hebrew gershayim, and the Tibetan tsheg. A zero-width space ends a hashtag (UAX #29).

A mention is an `@` followed by a login. Addresses and names of other networks contain no mentions.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import regex

from graph.text.folding import fold
from graph.text.scripts import BREAK, IGNORABLE, LETTERS, SPACED, WORD_BEFORE

MAX_LOGIN = 30
HASH = "#＃﹟"
AT = "@＠﹫"
ANY_MEDIAL = "·‧・･゠〜～〃՛՜՞՟֊་༌"
"""Punctuation inside words of any script (UAX #29, UAX #31)."""
MEDIAL_OF = {"Hebrew": "־׳״'\"’”", "Cyrillic": "'’"}
"""Punctuation inside words of one script. Apostrophes end a hashtag in Latin: `#Alice's`."""
SAME = str.maketrans("'׳\"”‧～", "’’״״·〜")
"""Variants of the same punctuation: keyboards differ in the variant that they produce."""
ALL_MEDIAL = "".join(dict.fromkeys([*ANY_MEDIAL, *"".join(MEDIAL_OF.values())]))


def between(letter: str, punctuation: str) -> str:
    """Return a regular expression for this punctuation between two of these letters, which may have marks."""
    return rf"(?<=[{letter}\p{{M}}])[{punctuation}](?=[{letter}\p{{M}}])"


MEDIAL = "|".join(
    [
        between(r"\p{L}", ANY_MEDIAL),
        *(between(rf"\p{{Script={script}}}", medial) for script, medial in MEDIAL_OF.items()),
    ]
)
DIRECTIONS = r"\u202a-\u202e\u2066-\u2069"
INNER = rf"[{LETTERS}]|{MEDIAL}|[{IGNORABLE}--[{BREAK}{DIRECTIONS}]]++(?=[{LETTERS}])"
HASHTAG = regex.compile(rf"(?V1)(?<!{WORD_BEFORE}|&)[{HASH}](?=[_\p{{N}}]*+\p{{L}})((?:{INNER})++)[{HASH}]?+")
"""A second `#` closes a hashtag, as Chinese micro-blogs write it, and does not begin another one: #北京#你好."""
LOGIN = rf"[A-Za-z0-9_Ａ-Ｚａ-ｚ０-９＿]{{2,{MAX_LOGIN}}}+"
SERVER = rf"[{AT}]\w|:[\w-]++\.\w"
NO_LOGIN = "|".join(
    (
        rf"[{SPACED}--{IGNORABLE}]|[{AT}]|[.．]{SPACED}|/\w|:[\w-]++\.\w",
        rf"-[\w-]*+(?:[.．]{SPACED}|/\w)|[-+=]\w[\w.=+-]*+(?:{SERVER})",
    )
)
MENTION = regex.compile(rf"(?V1)(?<!{WORD_BEFORE}|[{AT}]|\w\+)[{AT}]({LOGIN})(?!{NO_LOGIN})")
"""user@host, @user@host, @user.host, @user:host and @scope/package contain no mention."""

FOLDED = regex.compile(rf"(?V1)(?:{INNER})*+")
CHARACTERS = regex.compile(rf"(?V1)[{LETTERS}{ALL_MEDIAL}]*+")
HAS_LETTER = regex.compile(r"[_\p{N}]*+\p{L}")
HEBREW = regex.compile(r"\p{Script=Hebrew}")
LAST_LETTERS = regex.compile(rf"(?V1).*[{LETTERS}]", regex.DOTALL)


class Found(NamedTuple):
    """A hashtag or a mention: its position in a text, and the folded tag or login."""

    start: int
    end: int
    text: str


def hashtags_in(text: str) -> Iterator[Found]:
    """Yield the hashtags of a text from which `without_addresses` has removed the addresses. O(n)."""
    for match in HASHTAG.finditer(text):
        start, end = match.span()
        tag = folded_tag(match[1])
        if FOLDED.fullmatch(tag) is None:
            raw = before_other(match[1])
            end, tag = start + 1 + len(raw), folded_tag(raw)
        tag = tag.rstrip(ALL_MEDIAL)
        if HAS_LETTER.match(tag):
            yield Found(start, end, tag)


def folded_tag(tag: str) -> str:
    """Return a tag in the form in which tags are compared."""
    folded = fold(tag.translate(SAME)).replace(" ", "")
    return folded.replace("’", "׳") if HEBREW.search(folded) else folded


def before_other(tag: str) -> str:
    """Return the part of a tag before the first character that folds to one not allowed in tags, such as ½. O(n)."""
    end = next((at for at, character in enumerate(tag) if folds_to_other(character)), len(tag))
    match = LAST_LETTERS.match(tag[:end])
    return match.group() if match else ""


@lru_cache(maxsize=1024)
def folds_to_other(character: str) -> bool:
    """Return True if a character folds to one that ends a hashtag."""
    folded = folded_tag(character)
    return bool(folded) and not CHARACTERS.fullmatch(folded)


def mentions_in(text: str) -> Iterator[Found]:
    """Yield the mentions in a text from which `without_addresses` has removed the addresses. O(n)."""
    return (Found(*match.span(), fold(match[1])) for match in MENTION.finditer(text))
