"""The codes by which users are found: hashes of word prefixes, and of text in scripts that do not separate words.

The words of a user are the login and the words of the name. A user has a code for each prefix of a word, up to 10
characters, and for each character and pair of characters of the name's runs (`graph.text.terms`). Two terms can have
the same code, and only some terms of a query are looked up, so each user found must be compared with the query.
"""

from dataclasses import dataclass

from graph.archive.codes import code_of
from graph.text.terms import GAP, Terms, keyword_of, terms_of

MAX_PREFIX = 10
MAX_CODES = 4
"""The maximum number of codes that are looked up per query. More codes would exclude only a few more users."""


@dataclass(frozen=True, slots=True)
class NameQuery:
    """A query for users: prefixes of words, and parts of runs. A user must match all of them."""

    words: tuple[str, ...]
    phrases: tuple[str, ...]

    def matches(self, login: str, name: str) -> bool:
        """Return True if each word begins the login or a word of the name, and the name's runs contain each phrase."""
        terms = _terms_of(name)
        words = [login, *terms.words]
        return all(phrase in terms.runs for phrase in self.phrases) and all(
            any(word.startswith(sought) for word in words) for sought in self.words
        )

    def codes(self) -> list[int]:
        """Return up to 4 codes that every match has: of the longest words, and of evenly spaced character pairs."""
        words = sorted({word[:MAX_PREFIX] for word in self.words}, key=lambda word: (-len(word), word))
        pairs = [pair for phrase in self.phrases for pair in _parts(phrase) if len(phrase) == 1 or len(pair) == 2]
        chosen = words[: MAX_CODES - bool(pairs)]
        room = MAX_CODES - len(chosen)
        some = [pairs[at * len(pairs) // room] for at in range(room)] if len(pairs) > room else pairs
        return list(dict.fromkeys(map(code_of, [*chosen, *some])))


def name_query(text: str) -> NameQuery:
    """Parse a text into a query, which is empty if the text has neither letters nor digits."""
    keyword = keyword_of(text.replace("#", GAP))
    return NameQuery(keyword.words, keyword.phrases)


def codes_of(login: str, name: str) -> set[int]:
    """Return the codes of a user. Codes are stored, so they must never change."""
    terms = _terms_of(name)
    beginnings = {word[:end] for word in (login, *terms.words) for end in range(1, min(len(word), MAX_PREFIX) + 1)}
    return set(map(code_of, beginnings.union(*map(_parts, terms.runs.split(GAP)))))


def _terms_of(name: str) -> Terms:
    return terms_of(name.replace("#", GAP))


def _parts(run: str) -> set[str]:
    """Return the characters and the pairs of characters of a run."""
    return {*run, *(run[at : at + 2] for at in range(len(run) - 1))}
