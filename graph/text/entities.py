"""The mentions, hashtags and links in a text, with their places.

They come from the tokenizer of filters (`graph.text.terms`): a hashtag is one exactly if the keyword `#tag` matches it.
The tokenizer works on folded text, in which characters are removed, replaced, joined and split. So the text is cut into
segments that can be folded one by one, and a place in the folded text leads back to the segments.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

import regex

from graph.text.links import links_in, without_links
from graph.text.terms import HASHTAGS, LETTERS, UNSPACED, fold

MAX_ENTITIES = 50
USUAL_ENTITIES = 6
MAX_TAG = 60
"""The limit of a word in a filter: longer hashtags cannot be searched, so they are plain text."""
MAX_LOGIN = 30
SHORT = 8
LAST_OF_ONE_UNIT = "\uffff"
"""Greater characters take two code units in UTF-16."""

SIGN = regex.compile(r"[#＃﹟@＠﹫]|://")
CONTINUING = r"\p{M}\p{Default_Ignorable_Code_Point}\u1160-\u11ff\u3131-\u318e\ud7b0-\ud7ff\uff9e\uff9f\uffa0-\uffdc"
"""Characters whose folded form can join with the character before: marks, invisible ones, and parts of syllables."""
EVEN = r"\x00-\x7f\u0430-\u044f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"
"""Common characters whose folded form is the lower-case one. A run of them is one segment, which is faster."""
SEGMENTS = regex.compile(rf"[{EVEN}]+(?![{CONTINUING}])|[^{CONTINUING}][{CONTINUING}]*+|[{CONTINUING}]++")
SPACED = rf"[[{LETTERS}]--{UNSPACED}]"
MENTIONS = regex.compile(rf"(?V1)(?<![{SPACED}||@])@([a-z0-9_]{{2,{MAX_LOGIN}}}+)(?![{SPACED}||@])")
"""An address such as user@host or @user@host contains no mention."""


@dataclass(frozen=True, slots=True)
class Mention:
    """The mention of a login, in lower case. Nobody may have this login."""

    start: int
    end: int
    login: str


@dataclass(frozen=True, slots=True)
class Hashtag:
    """A hashtag: its tag as filters see it, without `#`."""

    start: int
    end: int
    tag: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link, as it is written."""

    start: int
    end: int
    url: str


Entity: TypeAlias = Mention | Hashtag | Link
"""A part of a text, from `start` up to `end`, exclusive, in UTF-16 code units."""


class Aligned:
    """A folded text, and the places of its characters in the text. O(n)."""

    def __init__(self, text: str) -> None:
        segments = [text] if text.isascii() else SEGMENTS.findall(text)
        parts = [folded_segment(segment) if len(segment) <= SHORT else fold(segment) for segment in segments]
        self.folded = "".join(parts)
        self._starts, self._origins = ends_of(parts), ends_of(segments)
        pairs = zip(segments, parts, strict=True)
        self._even = [len(segment) == len(part) and segment.lower() == part for segment, part in pairs]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the text of a part of the folded text. O(log n).

        It covers whole segments, unless all characters of a segment were folded one by one.
        """
        first, last = (bisect_right(self._starts, at) - 1 for at in (start, end - 1))
        begins = start - self._starts[first] if self._even[first] else 0
        ends = self._starts[last + 1] - end if self._even[last] else 0
        return self._origins[first] + begins, self._origins[last + 1] - ends


def entities_of(text: str) -> list[Entity]:
    """Return the mentions, hashtags and links of a text in their order. They never overlap. O(n log n)."""
    if SIGN.search(text) is None:
        return []
    aligned = Aligned(without_links(text))
    units = code_units(text)
    found: list[Entity] = [Link(units[start], units[end], text[start:end]) for start, end in links_in(text)]
    for match in MENTIONS.finditer(aligned.folded):
        start, end = aligned.place(*match.span())
        found.append(Mention(units[start], units[end], match[1]))
    for match in HASHTAGS.finditer(aligned.folded):
        if len(tag := match[1][1:]) <= MAX_TAG:
            start, end = aligned.place(*match.span())
            found.append(Hashtag(units[start], units[end], tag))
    return sorted(found, key=lambda entity: entity.start)


@lru_cache(maxsize=4096)
def folded_segment(segment: str) -> str:
    """Return the folded segment. Most segments are one character, and few characters are used often."""
    return fold(segment)


def ends_of(parts: Sequence[str]) -> list[int]:
    """Return the places where the parts of a text begin, and the end of the last one."""
    return list(accumulate(map(len, parts), initial=0))


def code_units(text: str) -> Sequence[int]:
    """Return the place of each character in UTF-16 code units, and that of the end."""
    if text.isascii() or max(text) <= LAST_OF_ONE_UNIT:
        return range(len(text) + 1)
    return list(accumulate((1 + (character > LAST_OF_ONE_UNIT) for character in text), initial=0))
