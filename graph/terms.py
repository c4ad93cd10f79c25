"""The searchable terms of a text: what a keyword can be found by.

A text is folded first: full-width letters become plain, capitals small, and what nobody sees is dropped. A *word* is
a run of letters, digits, marks and underscores of a script that puts spaces between words; a *hashtag* is one of
any script, with its `#`, and its words count too. Other scripts have *runs*, in which a *phrase* occurs wherever it
is a substring, as it does in Korean, whose words carry particles.

The *terms* of a text are its words and hashtags, and the single characters and the pairs of its runs.
"""

import base64
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import add

import regex

CODE_BYTES = 6
CODE_LENGTH = 8
"""How long a term's code is, in base64."""

GAP = " "
"""Stands between two runs; no phrase has one."""

SCRIPTS = "".join(
    rf"\p{{Script_Extensions={script}}}"
    for script in ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Hangul")
)
BEGINNING = r"\p{L}\p{N}_"
LETTERS = rf"{BEGINNING}\p{{Mn}}\p{{Mc}}"
UNSPACED = rf"[[\u4e00-\u9fff]||[[{SCRIPTS}]&&[{LETTERS}]]]"
"""The most common ones come first, to be found faster."""

UNSEEN = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
RUNS = regex.compile(rf"(?V1){UNSPACED}+")
WORDS = regex.compile(rf"(?V1)[[{BEGINNING}]--{UNSPACED}][[{LETTERS}]--{UNSPACED}]*")
PLAIN_WORDS = re.compile(r"\w+", re.ASCII)
"""The words of a text in ASCII: the same, found faster."""
HASHTAGS = regex.compile(rf"(?V1)(?<![[{LETTERS}]--{UNSPACED}])(#[{BEGINNING}][{LETTERS}]*)#?")
"""A second `#` closes a hashtag, as Chinese micro-blogs write it, and opens none: #北京#你好."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """What one entry of a filter looks for: every one of these words, hashtags and phrases.

    They are distinct and sorted, in tuples, which take a tenth of the memory of sets.
    """

    words: tuple[str, ...]
    phrases: tuple[str, ...]

    def terms(self) -> set[str]:
        """Give the terms of every text that has this keyword."""
        return {*self.words, *chain.from_iterable(map(_terms_of_phrase, self.phrases))}


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a text: its words and hashtags, and its runs with gaps between them."""

    words: frozenset[str]
    runs: str

    def __iter__(self) -> Iterator[str]:
        """Yield every term, some of them more than once, and some with a gap in them, which are no terms."""
        return chain(self.words, self.runs, map(add, self.runs, self.runs[1:]))

    def contain(self, keyword: Keyword) -> bool:
        """Tell whether the text has all that the keyword looks for."""
        return self.have(keyword.words) and self.have(keyword.phrases)

    def have(self, sought: Iterable[str]) -> bool:
        """Tell whether the text has all of these words, hashtags and phrases."""
        for one in sought:  # noqa: SIM110 - asked so often that a generator would take most of the time
            if one not in self.words and one not in self.runs:
                return False
        return True


@dataclass(frozen=True, slots=True)
class HashedTerms:
    """The terms of a text that is gone, as its digest knows them."""

    codes: frozenset[str]

    def contain(self, keyword: Keyword) -> bool:
        """Tell whether the text had all that the keyword looks for, or, seldom, only nearly so (`digest_of`)."""
        return all(code_of(term) in self.codes for term in keyword.terms())


def fold(text: str) -> str:
    """Write a text in the one way in which all that look or mean the same are equal (NFKC, case-folded)."""
    if text.isascii():
        return text.lower()
    seen = UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    return unicodedata.normalize("NFKC", seen.casefold())


def terms_of(text: str) -> Terms:
    """Find the terms of a text."""
    folded = fold(text)
    plain = folded.isascii()
    words = (PLAIN_WORDS if plain else WORDS).findall(folded)
    if "#" in folded:
        words += HASHTAGS.findall(folded)
    return Terms(frozenset(words), "" if plain else GAP.join(RUNS.findall(folded)))


def keyword_of(entry: str) -> Keyword:
    """Read an entry of a filter; its hashtags are looked for as hashtags only. It may turn out to have no word."""
    folded = fold(entry)
    hashtags = HASHTAGS.findall(folded) if "#" in folded else []
    rest = HASHTAGS.sub(GAP, folded) if hashtags else folded
    plain = folded.isascii()
    words = (PLAIN_WORDS if plain else WORDS).findall(rest)
    phrases = () if plain else RUNS.findall(rest)
    return Keyword(tuple(sorted({*hashtags, *words})), tuple(sorted({*phrases})))


def digest_of(text: str) -> str:
    """Sum up a text's terms without the text: their distinct codes of 48 bits in base64, sorted, run together.

    Whatever keyword the text has, the digest has too, so that a deletion reaches everybody who was shown the post.
    It knows no order: of a phrase of three characters or more it tells only that all its pairs occur, so a deletion may
    also reach somebody who never saw the post, which does no harm. Whoever reads a digest can test guesses at
    words, so it must not be kept for longer than the deletion has to be told. Some 8 bytes a term.
    """
    return "".join(sorted({code_of(term) for term in terms_of(text) if GAP not in term}))


def terms_in(digest: str) -> HashedTerms:
    """Read a digest."""
    return HashedTerms(frozenset(digest[at : at + CODE_LENGTH] for at in range(0, len(digest), CODE_LENGTH)))


def code_of(term: str) -> str:
    """Hash one term for a digest. Digests are stored: this must never change."""
    return base64.b64encode(hashlib.blake2b(term.encode(), digest_size=CODE_BYTES).digest()).decode()


def _terms_of_phrase(phrase: str) -> Iterator[str]:
    return map(add, phrase, phrase[1:]) if len(phrase) > 1 else iter(phrase)
