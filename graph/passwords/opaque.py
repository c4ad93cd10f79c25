"""The form in which passwords are compared: the OpaqueString profile of RFC 8265.

Keyboards and operating systems write the same password in different ways: `é` as one character or two, and a no-break
space for a space. The profile maps all spaces to one, and composes characters (NFC). It preserves case.
"""

import unicodedata
from collections.abc import Iterator

import regex

SPACES = regex.compile(r"[\p{Zs}--\x20]", regex.V1)


def opaque(password: str) -> str:
    """Return the form in which a password is hashed."""
    return password if password.isascii() else unicodedata.normalize("NFC", SPACES.sub(" ", password))


def spellings(password: str) -> Iterator[str]:
    """Yield the forms of a password that may have been hashed, each once, beginning with the form of the profile.

    Hashes from before the profile was introduced are hashes of the password as it was typed.
    """
    yield from dict.fromkeys((opaque(password), password, unicodedata.normalize("NFD", password)))
