"""The list of common passwords, which nobody may choose."""

from functools import cache

MIN_PASSWORD = 8
MAX_PASSWORD = 128


def is_common(password: str) -> bool:
    """Return True if a password is among the 30,000 most common ones, in any case."""
    return password.strip().casefold() in _common_passwords()


def is_monotonous(password: str) -> bool:
    """Return True if a password is one character repeated, or white space alone."""
    return len(set(password)) < 2 or password.isspace()


@cache
def _common_passwords() -> frozenset[str]:
    """Read the list of `zxcvbn` (MIT), on the first sign-up: it takes 15 MB and 40 ms.

    Only the list is used. The estimator takes a time that grows with the square of the password's length.
    """
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(password for password in FREQUENCY_LISTS["passwords"] if len(password) >= MIN_PASSWORD)
