"""Validation of input. All problems of an input are reported at once, before anything is written.

Lengths are checked before normalisation, which takes O(n²) for n combining characters in a row.
"""

import math
import re
import unicodedata
from dataclasses import dataclass, field

import regex

from graph.errors import Problem, ProblemCode, Rejected
from graph.model import Location
from graph.passwords.common_passwords import MAX_PASSWORD, MIN_PASSWORD, is_common, is_monotonous
from graph.passwords.opaque import opaque
from graph.text.entities import MAX_ENTITIES
from graph.text.showing import is_blank, turns_what_follows
from graph.text.web_urls import MAX_URL, normal_url

MIN_LOGIN, MAX_LOGIN = 2, 30
LOGIN = re.compile(rf"[A-Za-z0-9_]{{{MIN_LOGIN},{MAX_LOGIN}}}")
MAX_KEY = 128
KEY = re.compile(rf"[\x20-\x7e]{{1,{MAX_KEY}}}")
MAX_NAME = 50
MAX_BIO = 300
MAX_COMMENT = 1000
MAX_TEXT = 1000
MAX_PLATFORM = 30
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters, except the tab and the line feed."""
DECOMPOSED = 4
"""The most characters that NFC composes into one (UAX #15). Before normalisation, a text within a limit has at most 4
times as many characters: Greek α with three marks has 4 characters, a Korean syllable or Vietnamese letter up to 3."""
MAX_MARKS = 30
"""The maximum number of combining characters in a row, as in Unicode's Stream-Safe Text Format: more than any language
uses."""
MARKS = regex.compile(rf"[^\p{{Canonical_Combining_Class=0}}]{{{MAX_MARKS + 1}}}")


def folded_login(login: str) -> str | None:
    """Return a login in lower case, or None if it is not 2 to 30 ASCII letters, digits and underscores."""
    return login.lower() if LOGIN.fullmatch(login) else None


def typed_login(login: str) -> str | None:
    """Return a login that a user typed, in lower case, without surrounding white space and without a leading `@`."""
    return folded_login(login.strip().removeprefix("＠").removeprefix("@"))


@dataclass(slots=True)
class Check:
    """Collects the problems with one input. `done` raises them together."""

    problems: list[Problem] = field(default_factory=list)

    def fail(self, code: ProblemCode, message: str, *path: str, **params: object) -> None:
        """Add a problem with the field at this path, with the values in its message."""
        self.problems.append(Problem.about(code, message, path, params))

    def done(self) -> None:
        """Raise Rejected if there is any problem."""
        if self.problems:
            raise Rejected(*self.problems)

    def login(self, login: str) -> str:
        """Check a login and return it in lower case."""
        folded = folded_login(login)
        if folded is None:
            self.fail(
                ProblemCode.LOGIN_INVALID,
                f"The login must consist of {MIN_LOGIN} to {MAX_LOGIN} characters from a-z, 0-9 and the underscore.",
                "login",
                min=MIN_LOGIN,
                max=MAX_LOGIN,
                length=len(login),
            )
        return folded or ""

    def password(self, password: str, login: str = "", name: str = "", *, field: str = "password") -> str:
        """Check a new password, and return it as typed.

        8 to 128 characters; not common, not monotonous, not the login or name. `field` is the name of its input field.
        """
        typed, password = password, comparable(password)
        if len(password) > MAX_PASSWORD:
            message = f"The password has {len(password)} characters; the limit is {MAX_PASSWORD}."
            self.fail(ProblemCode.INVALID, message, field, max=MAX_PASSWORD, length=len(password))
        elif not encodable(password):
            self.fail(ProblemCode.INVALID, "The password contains a lone surrogate, which is not valid Unicode.", field)
        elif len(password) < MIN_PASSWORD:
            message = f"The password has {len(password)} characters; the minimum is {MIN_PASSWORD}."
            self.fail(ProblemCode.PASSWORD_TOO_WEAK, message, field, min=MIN_PASSWORD, length=len(password))
        elif weakness := _weakness(password, login, name):
            self.fail(ProblemCode.PASSWORD_TOO_WEAK, weakness, field)
        return typed

    def name(self, name: str) -> str:
        """Check and return a normalised display name: 1 to 50 characters on one line."""
        return self._line(name, "name", 1, MAX_NAME)

    def bio(self, bio: str) -> str:
        """Check and return a normalised biography: at most 300 characters."""
        return self._words(bio, "bio", ProblemCode.INVALID, MAX_BIO)

    def comment(self, comment: str) -> str:
        """Check and return the normalised comment of a report: at most 1,000 characters; see `words`."""
        return self.words(comment, "comment", MAX_COMMENT)

    def url(self, url: str, *path: str) -> str:
        """Check and return the trimmed and normalised URL of the field at this path, or '' for an empty text.

        At most 500 characters, `https` and a domain name: see `graph.text.web_urls`.
        """
        url = url.strip()
        normal = normal_url(url) if len(url) <= MAX_URL else None
        if len(url) > MAX_URL:
            message = f"The URL has {len(url)} characters; the limit is {MAX_URL}."
            self.fail(ProblemCode.INVALID, message, *path, max=MAX_URL, length=len(url))
        elif url and normal is None:
            message = (
                "The URL must begin with https:// and a domain name, and must not contain spaces or other special "
                "characters. Percent-encode them."
            )
            self.fail(ProblemCode.INVALID, message, *path)
        return normal or ""

    def text(self, text: str, *, may_be_empty: bool = False) -> str:
        """Check and return a post's normalised text: up to 1000 characters after trimming, usually at least 1.

        A text without visible characters counts as empty.
        """
        cleaned = self._words(text, "text", ProblemCode.TEXT_TOO_LONG, MAX_TEXT)
        cleaned = "" if is_blank(cleaned) else cleaned
        if not cleaned and not self.problems and not may_be_empty:
            self.fail(
                ProblemCode.TEXT_EMPTY,
                "The text is empty. Write at least one visible character.",
                "text",
                min=1,
                max=MAX_TEXT,
                length=0,
            )
        return cleaned

    def entities(self, count: int) -> None:
        """Check the number of mentions, hashtags and links in a text: at most 50."""
        if count > MAX_ENTITIES:
            message = f"The text has {count} mentions, hashtags and links together; the limit is {MAX_ENTITIES}."
            self.fail(ProblemCode.TOO_MANY, message, "text", max=MAX_ENTITIES, length=count)

    def platform(self, platform: str | None) -> str | None:
        """Check and return the normalised name of a post's platform: 1 to 30 characters on one line."""
        return None if platform is None else self._line(platform, "platform", 1, MAX_PLATFORM)

    def location(self, location: Location | None) -> Location | None:
        """Check a location: latitude from -90 to 90, longitude from -180 to 180 degrees."""
        if location is not None:
            for name, value, limit in (
                ("latitude", location.latitude, 90),
                ("longitude", location.longitude, 180),
            ):
                if not math.isfinite(value) or abs(value) > limit:
                    self.fail(
                        ProblemCode.INVALID,
                        f"The {name} must be from -{limit} to {limit} degrees.",
                        "location",
                        name,
                        min=-limit,
                        max=limit,
                    )
        return location

    def idempotency_key(self, key: str | None) -> str | None:
        """Check an idempotency key: 1 to 128 printable ASCII characters."""
        if key is not None and not KEY.fullmatch(key):
            self.fail(
                ProblemCode.INVALID,
                f"The idempotency key must consist of 1 to {MAX_KEY} printable ASCII characters.",
                "idempotencyKey",
                min=1,
                max=MAX_KEY,
                length=len(key),
            )
        return key

    def _line(self, value: str, name: str, minimum: int, maximum: int) -> str:
        cleaned = self._words(value, name, ProblemCode.INVALID, maximum)
        if any(character in cleaned for character in "\t\n\u2028\u2029"):
            self.fail(ProblemCode.INVALID, f"The {name} contains a line break or tab. Write it on one line.", name)
        elif is_blank(cleaned) and not any(problem.field == (name,) for problem in self.problems):
            message = f"The {name} must have at least one visible character."
            self.fail(ProblemCode.INVALID, message, name, min=minimum, max=maximum, length=0)
        self._direction(cleaned, name)
        return cleaned

    def words(self, value: str, name: str, maximum: int, *path: str) -> str:
        """Check and return the normalised text of the field at this path: at most `maximum` characters.

        The text must not change the direction of text that an interface shows after it.
        """
        cleaned = self._words(value, name, ProblemCode.INVALID, maximum, *path)
        self._direction(cleaned, name, *path)
        return cleaned

    def _direction(self, value: str, name: str, *path: str) -> None:
        if turns_what_follows(value):
            message = f"The {name} changes the direction of the text after it. Remove or close the direction marks."
            self.fail(ProblemCode.INVALID, message, *(path or (name,)))

    def _words(self, value: str, name: str, too_long: ProblemCode, maximum: int, *path: str) -> str:
        where = path or (name,)
        if not encodable(value):
            message = f"The {name} contains a lone surrogate, which is not valid Unicode."
            self.fail(ProblemCode.INVALID, message, *where)
            return ""
        value = value.strip()
        if len(value) > maximum * DECOMPOSED:
            self._too_long(too_long, name, len(value), maximum, *where)
            return ""
        if has_many_marks(value):
            message = f"The {name} has too many combining characters in a row; the limit is {MAX_MARKS}."
            self.fail(ProblemCode.INVALID, message, *where)
            return ""
        cleaned = unicodedata.normalize("NFC", value.replace("\r\n", "\n").replace("\r", "\n")).strip()
        if CONTROL.search(cleaned):
            self.fail(ProblemCode.INVALID, f"The {name} contains control characters. Remove them.", *where)
        elif len(cleaned) > maximum:
            self._too_long(too_long, name, len(cleaned), maximum, *where)
        return cleaned

    def _too_long(self, code: ProblemCode, name: str, length: int, maximum: int, *path: str) -> None:
        message = f"The {name} has {length} characters; the limit is {maximum}."
        self.fail(code, message, *path, max=maximum, length=length)


def is_possible_password(password: str) -> bool:
    """Return True if `Check.password` could have accepted this password."""
    return encodable(password) and len(comparable(password)) <= MAX_PASSWORD


def comparable(password: str) -> str:
    """Return a password in the form that is hashed, or unchanged if converting it would take long or is impossible."""
    is_long = len(password) > MAX_PASSWORD * DECOMPOSED or has_many_marks(password)
    return password if is_long or not encodable(password) else opaque(password)


def _weakness(password: str, login: str, name: str) -> str | None:
    """Return the reason why a password is too weak, or None."""
    folded = password.strip().casefold()
    if is_monotonous(password):
        return "The password is one repeated character or white space. Choose another one."
    if folded in (login.casefold(), name.casefold()):
        return "The password is the login or the name. Choose another one."
    if is_common(password):
        return "The password is one of the most common ones. Choose another one."
    return None


def has_many_marks(value: str) -> bool:
    """Return True if a text has more than MAX_MARKS combining characters in a row, which are slow to normalise."""
    return not value.isascii() and MARKS.search(value) is not None


def encodable(value: str) -> bool:
    """Return True if a string has no lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
