"""Checks of how a text is shown: whether anything is visible, and whether it changes the direction of later text."""

import regex

BLANK = regex.compile(r"[\p{Z}\p{Cc}\p{Cf}\p{M}\p{Default_Ignorable_Code_Point}\u2800]*")
"""White space, format and invisible characters, fillers, the empty Braille pattern, and marks without a letter."""
DIRECTION = regex.compile(r"[\u202a-\u202e\u2066-\u2069\u061c]")
PARAGRAPH = regex.compile(r"[\n\r\x1c-\x1e\x85\u2029]")
EMBEDDINGS, ISOLATES = "\u202a\u202b\u202d\u202e", "\u2066\u2067\u2068"
POP_EMBEDDING, POP_ISOLATE = "\u202c", "\u2069"
ARABIC_MARK = "\u061c"


def is_blank(text: str) -> bool:
    """Return True if a text has no visible character. O(n)."""
    return BLANK.fullmatch(text) is not None


def turns_what_follows(text: str) -> bool:
    """Return True if a text has embeddings, overrides or isolates that it does not close, or an Arabic letter mark.

    They would change the order of the words that an interface shows after the text (UAX #9). O(n).
    """
    if ARABIC_MARK in text:
        return True
    last = PARAGRAPH.split(text)[-1]  # the end of a paragraph closes everything
    opened, isolates = [], 0
    for sign in DIRECTION.findall(last):
        if sign in EMBEDDINGS:
            opened.append(POP_EMBEDDING)
        elif sign in ISOLATES:
            opened.append(POP_ISOLATE)
            isolates += 1
        elif sign == POP_EMBEDDING and opened and opened[-1] == POP_EMBEDDING:
            opened.pop()
        elif sign == POP_ISOLATE and isolates:
            isolates -= 1
            while opened.pop() != POP_ISOLATE:
                pass
    return bool(opened)
