"""Texts without visible characters, and texts that change the direction of the text after them."""

from pathlib import Path

import pytest

from graph.errors import ProblemCode
from graph.text.showing import is_blank, turns_what_follows
from graph.text.validation import Check

BLANKS = (
    *("", " ", "\u200b", "\u2800", "\u3164", "\u115f", "\u1160", "\uffa0", "\u00ad", "\u2060", "\ufe0f", "\u200d"),
    *("\u200c", "\u061c", "\u180e", "\ufeff", "\u034f", "\u0301", "\u093f", "\u20dd", "\u3000", "\u00a0", "\u200e"),
    *("\U000e0020", "\U0001d173", "\u2800\u200b \u0301", "\u202e\u202c", "\u17b5", "\ufff9", "\u206a"),
)
NAMES = Path(__file__).with_name("names.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("text", BLANKS, ids=ascii)
def test_a_text_that_shows_nothing_is_refused_as_a_name_and_a_post(text: str) -> None:
    assert is_blank(text)
    name, post = Check(), Check()
    name.name(text)
    post.text(text)

    assert [(each.code, each.field) for each in name.problems][:1] == [(ProblemCode.INVALID, ("name",))]
    assert [(each.code, each.field) for each in post.problems] == [(ProblemCode.TEXT_EMPTY, ("text",))]


def test_the_names_are_many() -> None:
    assert len({*NAMES}) >= 200


@pytest.mark.parametrize("name", NAMES)
def test_real_names_are_accepted(name: str) -> None:
    check = Check()
    check.name(name)
    assert not check.problems


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        *((f"a{sign}b", True) for sign in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u061c"),
        *(
            (f"a{opening}b{closing}", False)
            for opening, closing in [*((each, "\u202c") for each in "\u202a\u202b\u202d\u202e"), ("\u2067", "\u2069")]
        ),
        ("a\u202cb\u2069", False),
        ("a\u202e\u2067b\u202c", True),
        ("a\u202e\u2067b\u2069", True),
        ("a\u2067\u202eb\u2069", False),
        ("a\u202e\u202eb\u202c", True),
        ("שלום a عربي \u200f", False),
        ("\u2067a b\u202ec\u2069 d", False),
    ],
    ids=ascii,
)
def test_directions_that_are_not_closed_are_refused_in_lines_and_descriptions(text: str, turns: bool) -> None:
    """They are refused in names, list names, alternative texts and report comments."""
    assert turns_what_follows(text) is turns
    name, comment, alt = Check(), Check(), Check()
    name.name(text)
    comment.comment(text)
    alt.words(text, "alternative text", 1000, "alt")
    for check in (name, comment, alt):
        assert [each.code for each in check.problems] == [ProblemCode.INVALID] * turns
    post = Check()
    post.text(text)
    assert not post.problems


def test_a_paragraph_closes_what_it_has_opened() -> None:
    """The last paragraph of a comment decides."""
    assert turns_what_follows("\u2067a\n\u202eb\u2069")
    assert not turns_what_follows("\u202ea\u2029b")
    assert turns_what_follows("\u202a\u2069" * 100_000)
