"""The searchable terms of a text, which keywords are matched against.

A text is folded first: full-width and capital letters become plain lower-case letters, and invisible characters are
removed. In scripts with spaces between words, a *word* is a sequence of letters, digits, marks and underscores. In
other scripts, and in Korean, whose words have particles attached, such a sequence is a *run*; a *phrase* matches any
substring of a run. A *hashtag* is a `#` followed by such characters of any script; the words in it are terms, too.
Links contain words, but no hashtags.

The *terms* of a text are its words and hashtags, and the single characters and pairs of characters of its runs.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import add

import regex

from graph.text.folding import fold, unaccented
from graph.text.links import without_addresses
from graph.text.scripts import BEGINNING, BREAK, LETTERS, UNSPACED
from graph.text.tags import HASH, hashtags_in

CODE_BYTES = 6
CODE_LENGTH = 8
"""The length of a term's code in base64."""

SIGN = re.compile(f"[{HASH}]")
GAP = " "
"""Separates two runs. No phrase contains it."""

RUNS = regex.compile(rf"(?V1){UNSPACED}+(?:{BREAK}+{UNSPACED}+)*+")
"""Thai and Khmer texts may have zero-width spaces between words; runs have none."""
WORDS = regex.compile(rf"(?V1)[[{BEGINNING}]--{UNSPACED}][[{LETTERS}]--{UNSPACED}]*")
PLAIN_WORDS = re.compile(r"\w+", re.ASCII)
"""Equal to WORDS for texts in ASCII, but faster."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """One keyword of a filter: words (including hashtags) and phrases, all of which a text must contain.

    They are distinct and sorted. Tuples take a tenth of the memory of sets.
    """

    words: tuple[str, ...]
    phrases: tuple[str, ...]

    def terms(self) -> set[str]:
        """Return the terms that every text matching this keyword contains."""
        return {*self.words, *chain.from_iterable(map(_terms_of_phrase, self.phrases))}

    def codes(self) -> frozenset[str]:
        """Return the codes that the digest of every text matching this keyword contains."""
        return frozenset(map(code_of, self.terms()))


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a text: words and hashtags, and its runs separated by gaps."""

    words: frozenset[str]
    runs: str

    def __iter__(self) -> Iterator[str]:
        """Yield every term. Some are repeated, and some contain a gap and are not terms."""
        return chain(self.words, self.runs, map(add, self.runs, self.runs[1:]))

    def contain(self, keyword: Keyword) -> bool:
        """Return True if the text matches the keyword."""
        return self.have(keyword.words) and self.have(keyword.phrases)

    def have(self, sought: Iterable[str]) -> bool:
        """Return True if the text has all of these words, hashtags and phrases."""
        for one in sought:  # noqa: SIM110 - a generator would take most of the time
            if one not in self.words and one not in self.runs:
                return False
        return True


@dataclass(frozen=True, slots=True)
class HashedTerms:
    """The terms of a deleted text, as codes from its digest."""

    codes: frozenset[str]

    def contain(self, keyword: Keyword) -> bool:
        """Return True if the text matched the keyword, and in rare cases if it did not: see `digest_of`."""
        return all(code_of(term) in self.codes for term in keyword.terms())


def words_in(folded: str) -> list[str]:
    """Return the words of a folded text."""
    return PLAIN_WORDS.findall(folded) if folded.isascii() else WORDS.findall(unaccented(folded))


def runs_in(folded: str) -> list[str]:
    """Return the runs of a folded text."""
    return [] if folded.isascii() else [run.replace(BREAK, "") for run in RUNS.findall(folded)]


def terms_of(text: str) -> Terms:
    """Return the terms of a text."""
    folded = fold(text)
    words = words_in(folded)
    if SIGN.search(text):
        words += (f"#{found.text}" for found in hashtags_in(without_addresses(text)))
    return Terms(frozenset(words), GAP.join(runs_in(folded)))


def keyword_of(entry: str) -> Keyword:
    """Return the keyword in an entry of a filter. Its hashtags match hashtags only. The keyword may be empty."""
    found = list(hashtags_in(without_addresses(entry))) if SIGN.search(entry) else []
    rest, after = [], 0
    for each in found:
        rest += [entry[after : each.start], GAP]
        after = each.end
    folded = fold("".join([*rest, entry[after:]]))
    words = {*words_in(folded), *(f"#{each.text}" for each in found)}
    return Keyword(tuple(sorted(words)), tuple(sorted({*runs_in(folded)})))


def digest_of(text: str) -> str:
    """Return the digest of a text: the distinct 48-bit codes of its terms in base64, sorted and concatenated.

    A keyword that matches the text matches the digest, so a deletion reaches every subscriber who received the post.
    The digest has no order: for a phrase of three or more characters it shows only that all pairs occur. So a deletion
    may also reach other subscribers, which is harmless. A digest lets its reader test guesses about words, so it must
    be removed when the deletion need no longer be replayed. 8 bytes per term.
    """
    return "".join(sorted({code_of(term) for term in terms_of(text) if GAP not in term}))


def terms_in(digest: str) -> HashedTerms:
    """Return the terms in a digest."""
    return HashedTerms(frozenset(digest[at : at + CODE_LENGTH] for at in range(0, len(digest), CODE_LENGTH)))


def code_of(term: str) -> str:
    """Return the code of a term in digests. Digests are stored, so the codes must never change."""
    return base64.b64encode(hashlib.blake2b(term.encode(), digest_size=CODE_BYTES).digest()).decode()


def _terms_of_phrase(phrase: str) -> Iterator[str]:
    return map(add, phrase, phrase[1:]) if len(phrase) > 1 else iter(phrase)
