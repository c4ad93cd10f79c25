"""Validation of input."""

import math
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import ProblemCode, Rejected
from graph.model import Location
from graph.text.validation import DECOMPOSED, Check, folded_login


def problems(check: Check) -> list[tuple[ProblemCode, tuple[str, ...]]]:
    return [(problem.code, problem.field) for problem in check.problems]


@pytest.mark.parametrize(
    ("typed", "folded"), [("alice", "alice"), ("ALICE", "alice"), ("a_1", "a_1"), ("__", "__"), ("x" * 30, "x" * 30)]
)
def test_logins_are_folded(typed: str, folded: str) -> None:
    check = Check()

    assert check.login(typed) == folded
    assert problems(check) == []


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "a",
        "x" * 31,
        "alice\n",
        "\nalice",
        " alice",
        "al ice",
        "al-ice",
        "al.ice",
        "ali\u212ae",  # the Kelvin sign folds to k
        "\u0131rma",  # dotless i
        "аlice",  # Cyrillic a
        "伟伟",
        "ａｌｉｃｅ",  # full width
        "١٢٣",  # Arabic digits
        "al\u0000ice",
        "\ud800\udc00",
    ],
)
def test_invalid_logins_are_refused(typed: str) -> None:
    """These include look-alikes, trailing line breaks, and letters of other alphabets that fold to ASCII."""
    check = Check()

    check.login(typed)

    assert problems(check) == [(ProblemCode.LOGIN_INVALID, ("login",))]
    assert folded_login(typed) is None


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("1234567", ProblemCode.PASSWORD_TOO_WEAK),
        (" horses ", None),
        ("correct horse", None),
        ("fanline-demo", None),
        ("密码密码密码很长", None),
        ("xy" * 64, None),
        ("xy" * 64 + "x", ProblemCode.INVALID),
        ("passwor\ud800", ProblemCode.INVALID),
    ],
)
def test_passwords_are_eight_to_128_characters(password: str, code: ProblemCode | None) -> None:
    """White space is part of a password."""
    check = Check()

    assert check.password(password) == password
    assert problems(check) == ([] if code is None else [(code, ("password",))])


@pytest.mark.parametrize(
    ("password", "sentence"),
    [
        ("12345678", "one of the most common ones"),
        ("PassWord1", "one of the most common ones"),
        (" iloveyou\n", "one of the most common ones"),
        ("        ", "one repeated character"),
        (" \t\u3000 \u2003\n  ", "one repeated character"),
        ("😀" * 9, "one repeated character"),
        ("ALICE_IN_WONDERLAND", "is the login or the name"),
        (" alice_in_wonderland ", "is the login or the name"),
        ("Älice LIDDELL", "is the login or the name"),
    ],
)
def test_weak_passwords_are_refused(password: str, sentence: str) -> None:
    """They are refused regardless of case. The message gives the reason and not the password."""
    check = Check()

    check.password(password, "alice_in_wonderland", "Älice Liddell")

    [problem] = check.problems
    assert problem.code is ProblemCode.PASSWORD_TOO_WEAK
    assert sentence in problem.message
    assert password not in problem.message


@pytest.mark.parametrize(
    ("typed", "cleaned"),
    [
        ("hello", "hello"),
        ("  hello\n", "hello"),
        ("one\n\ttwo\r\nthree", "one\n\ttwo\nthree"),
        ("e\u0301", "é"),
        ("你好，世界", "你好，世界"),
        ("👩‍👩‍👧", "👩‍👩‍👧"),
        ("x" * 1000, "x" * 1000),
        (" " + "x" * 1000 + " ", "x" * 1000),
        ("e\u0301" * 1000, "é" * 1000),
        (unicodedata.normalize("NFD", "대한민국" * 250), "대한민국" * 250),
        (unicodedata.normalize("NFD", "Việt Nam, nước tôi ấy! " * 40), ("Việt Nam, nước tôi ấy! " * 40).strip()),
        (unicodedata.normalize("NFD", "\u1f82" * 1000), "\u1f82" * 1000),  # four characters each
        (" " * 50_000 + "hello" + "\n" * 50_000, "hello"),
        ("a" + "\u0323" * 30, "ạ" + "\u0323" * 29),
        ("𝒳" * 1000, "𝒳" * 1000),
    ],
)
def test_texts_are_trimmed_and_composed(typed: str, cleaned: str) -> None:
    """Texts have 1 to 1,000 characters after trimming and NFC. Line breaks and tabs are allowed."""
    check = Check()

    assert check.text(typed) == cleaned
    assert problems(check) == []


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("", ProblemCode.TEXT_EMPTY),
        (" \n\t\u3000\u2003", ProblemCode.TEXT_EMPTY),
        ("x" * 1001, ProblemCode.TEXT_TOO_LONG),
        ("\u0958" * 501, ProblemCode.TEXT_TOO_LONG),  # one character that NFC makes two
        ("\u0301" * 100_000, ProblemCode.TEXT_TOO_LONG),
        ("a" + "\u0323\u0301" * 16, ProblemCode.INVALID),  # 32 combining characters in a row
        ("\ud800", ProblemCode.INVALID),
        ("fine \udfff not", ProblemCode.INVALID),
        ("bell\u0007", ProblemCode.INVALID),
        ("nul\u0000nul", ProblemCode.INVALID),
        ("del\u007f", ProblemCode.INVALID),
    ],
)
def test_invalid_texts_are_refused(typed: str, code: ProblemCode) -> None:
    """Each is refused with one problem."""
    check = Check()

    check.text(typed)

    assert problems(check) == [(code, ("text",))]


@pytest.mark.parametrize("name", ["wei", " 伟 ", "x" * 50, "Ana María"])
def test_names_are_one_line(name: str) -> None:
    check = Check()

    assert check.name(name) == name.strip()
    assert problems(check) == []


@pytest.mark.parametrize(
    "name", ["", "  ", "x" * 51, "a\nb", "a\tb", "a\u2028b", "a\u2029b", "a\u0085b", "\ud800", "a\u0000"]
)
def test_invalid_names_are_refused(name: str) -> None:
    """Each is refused with one problem."""
    check = Check()

    check.name(name)

    assert problems(check) == [(ProblemCode.INVALID, ("name",))]


@pytest.mark.parametrize(("bio", "valid"), [("", True), ("x" * 300, True), ("a\nb", True), ("x" * 301, False)])
def test_a_biography_may_be_empty_or_have_lines(bio: str, valid: bool) -> None:
    """A biography has at most 300 characters."""
    check = Check()

    check.bio(bio)

    assert problems(check) == ([] if valid else [(ProblemCode.INVALID, ("bio",))])


@pytest.mark.parametrize(("platform", "valid"), [(None, True), ("web", True), ("x" * 30, True), ("x" * 31, False)])
def test_a_platform_is_optional(platform: str | None, valid: bool) -> None:
    """A platform has 1 to 30 characters."""
    check = Check()

    assert check.platform(platform) == platform
    assert problems(check) == ([] if valid else [(ProblemCode.INVALID, ("platform",))])


@pytest.mark.parametrize("place", [(0, 0), (90, 180), (-90, -180), (-0.0, 1e-300), (39.9, 116.4)])
def test_valid_locations_are_accepted(place: tuple[float, float]) -> None:
    """The poles and the date line are included."""
    check = Check()

    assert check.location(Location(*place)) == Location(*place)
    assert problems(check) == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 90.001, -181.0, 1e308])
def test_invalid_locations_are_refused(value: float) -> None:
    """Each invalid coordinate has its problem."""
    check = Check()

    check.location(Location(value, value * 2))

    assert problems(check) == [
        (ProblemCode.INVALID, ("location", "latitude")),
        (ProblemCode.INVALID, ("location", "longitude")),
    ]


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        (None, True),
        ("k", True),
        (" ~", True),
        ("x" * 128, True),
        ("", False),
        ("x" * 129, False),
        ("k\n", False),
        ("é", False),
        ("\u0000", False),
    ],
)
def test_idempotency_keys_are_printable_ascii(key: str | None, valid: bool) -> None:
    """A key has 1 to 128 characters, or is absent."""
    check = Check()

    check.idempotency_key(key)

    assert problems(check) == ([] if valid else [(ProblemCode.INVALID, ("idempotencyKey",))])


def test_all_problems_are_raised_together() -> None:
    check = Check()
    check.login("!")
    check.password("")
    check.name("")

    with pytest.raises(Rejected) as rejected:
        check.done()

    assert [problem.field for problem in rejected.value.problems] == [("login",), ("password",), ("name",)]


@given(st.text(alphabet=st.characters(), max_size=1100))
def test_any_text_is_normalised_or_refused(text: str) -> None:
    """Normalising a text again does not change it."""
    check = Check()

    cleaned = check.text(text)

    if not check.problems:
        assert 1 <= len(cleaned) <= 1000
        assert Check().text(cleaned) == cleaned
        cleaned.encode()


def test_nfc_composes_at_most_four_characters_into_one() -> None:
    """Therefore, a text within the limit after composition is never refused for its length before composition."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]

    assert max(len(unicodedata.normalize("NFD", character)) for character in characters) == DECOMPOSED


@pytest.mark.parametrize("marks", [100_000, 3_990, 999])
@pytest.mark.parametrize("check", [Check.name, Check.bio, Check.text, Check.platform])
def test_combining_characters_cost_no_more_than_plain_ones(check: Callable[[Check, str], object], marks: int) -> None:
    """Composition of n of them in a row takes O(n²)."""
    hostile = "a" + "\u0345\u0323" * (marks // 2)
    longest = "hello " * 166

    spent = cpu_time(lambda: check(Check(), hostile))

    assert spent < max(0.003, 5 * cpu_time(lambda: Check().text(longest)))


def test_the_longest_allowed_runs_of_combining_characters_are_cheap() -> None:
    text = ("a" + "\u0345\u0323" * 15) * 129

    assert len(text) <= 4000
    assert cpu_time(lambda: Check().text(text)) < 0.005


def cpu_time(work: Callable[[], object]) -> float:
    """Return the lowest CPU time of five runs."""
    times = []
    for _ in range(5):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize(
    ("check_value", "expected"),
    [
        (lambda check: check.login("x"), {"min": "2", "max": "30", "length": "1"}),
        (lambda check: check.password("short"), {"min": "8", "length": "5"}),
        (lambda check: check.password("x" * 129), {"max": "128", "length": "129"}),
        (lambda check: check.name(""), {"min": "1", "max": "50", "length": "0"}),
        (lambda check: check.bio("x" * 301), {"max": "300", "length": "301"}),
        (lambda check: check.text(" "), {"min": "1", "max": "1000", "length": "0"}),
        (lambda check: check.text("x" * 5000), {"max": "1000", "length": "5000"}),
        (lambda check: check.location(Location(91, 0)), {"min": "-90", "max": "90"}),
        (lambda check: check.idempotency_key(""), {"min": "1", "max": "128", "length": "0"}),
    ],
)
def test_a_problem_has_the_limit_that_was_broken(
    check_value: Callable[[Check], object], expected: dict[str, str]
) -> None:
    check = Check()

    check_value(check)

    assert [dict(problem.params) for problem in check.problems] == [expected]
