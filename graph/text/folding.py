"""The folded form of texts, which is used to compare them."""

import unicodedata

import regex

from graph.text.scripts import BREAK, IGNORABLE

UNSEEN = regex.compile(rf"(?V1)[{IGNORABLE}--{BREAK}]+")
DOTLESS = {0x131: "i"}
ACCENTS = regex.compile(r"(?V1)(?<=[\p{Script=Latin}\p{Script=Greek}\p{Script=Arabic}\p{Script=Hebrew}])\p{Mn}+")
"""Accents of Latin and Greek letters, and the points of Arabic and Hebrew, which most people leave out."""
PLAIN_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ŧ": "t", "ŋ": "n", "ё": "е"}
)
"""Letters that Unicode does not decompose, and their spellings on keyboards that lack them."""


def fold(text: str) -> str:
    """Return the folded text: NFKC, case-folded, and without invisible characters except zero-width spaces.

    The dotted and the dotless Turkish I fold to the same letter, because their case depends on the language of the
    text, which is unknown.
    """
    if text.isascii():
        return text.lower()
    seen = UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    folded = unicodedata.normalize("NFKC", seen.casefold())
    dotted = folded.replace("i\u0307", "i").translate(DOTLESS)
    return dotted if dotted == folded else unicodedata.normalize("NFKC", dotted)


def unaccented(folded: str) -> str:
    """Return a folded text without accents and strokes, for words: `cafe` finds `café`, and `lodz` finds `łódź`."""
    if folded.isascii():
        return folded
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFD", folded))).translate(PLAIN_LETTERS)
