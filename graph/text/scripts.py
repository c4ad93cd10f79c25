"""Classes of characters, for regular expressions with set operations (`(?V1)`)."""

SCRIPTS = "".join(
    rf"\p{{Script_Extensions={script}}}"
    for script in ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Hangul")
)
BEGINNING = r"\p{L}\p{N}_"
LETTERS = rf"{BEGINNING}\p{{Mn}}\p{{Mc}}"
"""Letters, digits, marks and underscores."""
UNSPACED = rf"[[\u4e00-\u9fff]||[[{SCRIPTS}]&&[{LETTERS}]]]"
"""Letters of scripts without spaces between words, and of Korean, whose words have particles attached. The most common
characters come first, which makes matching faster."""
SPACED = rf"[[{LETTERS}]--{UNSPACED}]"
"""Letters of the other scripts, which have spaces between words."""
WORD_BEFORE = rf"[[\p{{L}}\p{{Nd}}_]--{UNSPACED}]\p{{M}}*"
"""A letter, digit or underscore of scripts with spaces between words, with its marks, but not the marks of other
characters, such as emoji."""
IGNORABLE = r"\p{Default_Ignorable_Code_Point}"
"""Invisible characters."""
BREAK = "\u200b"
"""A zero-width space, which separates words (UAX #29). Other invisible characters do not."""
