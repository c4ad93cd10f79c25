"""The codes of the search index: 32-bit hashes of the properties of a post that filters can look for.

A post has a code for each term of its text, for its author and, if it has a location, for the grid cell that contains
it at each of `LEVELS`. Two terms can have the same code, so a post that is found by codes must be compared with the
filter.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from zlib import crc32

from graph.archive.rows import EventRow, post_of
from graph.cells import Area, Cell, cell_at, covering
from graph.text.terms import GAP, Keyword, terms_of

LEVELS = (1, 4, 6, 8, 10, 12, 14, 16)
MAX_CODES = 8
"""The maximum number of codes that are looked up per keyword. More codes would exclude only a few more posts."""
LOWEST = 1 << 31

Clause = Sequence[Sequence[int]]
"""A condition that a post satisfies if it has all codes of at least one entry."""


def codes_of(row: EventRow) -> set[int]:
    """Return the codes of the post in a row. Raises ValueError if the body is damaged."""
    post = post_of(row)
    words = {term for term in terms_of(post.text) if GAP not in term}
    cells: Iterable[Cell] = ()
    if post.location is not None:
        at = post.location
        cells = (cell_at(at.latitude, at.longitude, level) for level in LEVELS)
    return set(map(code_of, chain(words, (_author(post.author),), map(_cell, cells))))


def keyword_clause(keywords: Iterable[Keyword]) -> Clause:
    """Return the clause that posts with any of these keywords satisfy."""
    return [list(map(code_of, _chosen(keyword))) for keyword in keywords]


def author_clause(authors: Iterable[int]) -> Clause:
    """Return the clause that posts by any of these authors satisfy."""
    return [[code_of(_author(author))] for author in authors]


def area_clause(area: Area) -> Clause:
    """Return the clause that posts in an area satisfy."""
    return [[code_of(_cell(cell))] for cell in covering(area, LEVELS)]


def code_of(term: str) -> int:
    """Return the code of a term. Codes are stored, so they must never change."""
    return crc32(term.encode()) - LOWEST


def _chosen(keyword: Keyword) -> list[str]:
    """Return up to 8 terms of a keyword: the longest words, and evenly spaced pairs of characters of its phrases."""
    words = sorted(keyword.words, key=len, reverse=True)[:MAX_CODES]
    pairs = list(_pairs(keyword.phrases))
    room = MAX_CODES - len(words)
    if len(pairs) > room:
        pairs = [pairs[at * len(pairs) // room] for at in range(room)]
    return [*words, *pairs]


def _pairs(phrases: Sequence[str]) -> Iterator[str]:
    for phrase in phrases:
        if len(phrase) == 1:
            yield phrase
        else:
            yield from (phrase[at : at + 2] for at in range(len(phrase) - 1))


def _author(author: int) -> str:
    """Return the term that stands for an author. Terms of texts contain no colon, so they cannot equal this term."""
    return f"author:{author}"


def _cell(cell: Cell) -> str:
    return "cell:" + ":".join(map(str, cell))
