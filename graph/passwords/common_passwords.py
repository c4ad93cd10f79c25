"""Password rules: lengths, common passwords, and single repeated characters."""

from functools import cache

MIN_PASSWORD = 8
MAX_PASSWORD = 128


def is_common(password: str) -> bool:
    """Return True if a password is among the 30,000 most common ones, ignoring case."""
    return password.strip().casefold() in _common_passwords()


def is_monotonous(password: str) -> bool:
    """Return True if a password is one repeated character, or white space only."""
    return len(set(password)) < 2 or password.isspace()


@cache
def _common_passwords() -> frozenset[str]:
    """Return the password list of `zxcvbn` (MIT), loaded at the first sign-up: 15 MB, 40 ms.

    Only the list is used: zxcvbn's estimator takes O(n²) for a password of n characters.
    """
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(password for password in FREQUENCY_LISTS["passwords"] if len(password) >= MIN_PASSWORD)
