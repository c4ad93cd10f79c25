"""The mentions, hashtags and links in a text, with their positions.

Filters and searches use the same rules (`graph.text.terms`): the keyword `#tag` matches a text if and only if this
module finds that hashtag in the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import regex

from graph.text.links import links_in, without_addresses
from graph.text.tags import AT, HASH, hashtags_in, mentions_in

MAX_ENTITIES = 50
USUAL_ENTITIES = 6
MAX_TAG = 60
"""The maximum length of a word in a filter. Longer hashtags cannot be searched, so they are plain text."""
LAST_OF_ONE_UNIT = "\uffff"
"""Characters above this one take two code units in UTF-16."""

SIGN = regex.compile(rf"[{HASH}{AT}]|://")


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of a user. `login` is in lower case; there need not be a user with this login."""

    start: int
    end: int
    login: str


@dataclass(frozen=True, slots=True)
class Hashtag:
    """A hashtag. Its tag is in the form that filters compare, without `#`."""

    start: int
    end: int
    tag: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link, as written."""

    start: int
    end: int
    url: str


Entity: TypeAlias = Mention | Hashtag | Link
"""A part of a text, from `start` up to `end`, exclusive, in UTF-16 code units."""


def entities_of(text: str) -> list[Entity]:
    """Return the mentions, hashtags and links of a text, in order. They never overlap. O(n log n)."""
    if SIGN.search(text) is None:
        return []
    links, units = links_in(text), code_units(text)
    rest = without_addresses(text, links)
    found: list[Entity] = [Link(units[start], units[end], text[start:end]) for start, end in links]
    found += (Mention(units[each.start], units[each.end], each.text) for each in mentions_in(rest))
    for each in hashtags_in(rest):
        if len(each.text) <= MAX_TAG:
            found.append(Hashtag(units[each.start], units[each.end], each.text))
    return sorted(found, key=lambda entity: entity.start)


def code_units(text: str) -> Sequence[int]:
    """Return the position of each character in UTF-16 code units, and the position of the end of the text."""
    if text.isascii() or max(text) <= LAST_OF_ONE_UNIT:
        return range(len(text) + 1)
    return list(accumulate((1 + (character > LAST_OF_ONE_UNIT) for character in text), initial=0))
