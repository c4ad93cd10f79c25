"""Access tokens: only what was signed here, names a person and a session, and has not ended, counts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from graph.model import Session
from server.auth import BadToken, Tokens

OLD, NEW, OTHER = "o" * 48, "n" * 48, "x" * 48
LATER = 4_000_000_000  # in the year 2096: the same whenever, and by whichever process, the tests are collected
SESSION = Session("abc-DEF_1", 42, datetime.now(UTC).replace(microsecond=0) + timedelta(days=30))


def signed(key: str = NEW, algorithm: str = "HS256", drop: str = "", **claims: Any) -> str:
    """Sign a token whose claims are good, but for those given."""
    good = {"sub": "42", "sid": "abc", "exp": LATER}
    return jwt.encode({k: v for k, v in (good | claims).items() if k != drop}, key, algorithm)


def test_a_token_says_whose_session_it_is_and_when_it_ends() -> None:
    """What is issued verifies to the same person, session and time."""
    viewer = Tokens([NEW]).verify(Tokens([NEW]).issue(SESSION))
    assert (viewer.user, viewer.session, viewer.expires_at) == (42, "abc-DEF_1", SESSION.expires_at)


def test_keys_rotate_without_ending_sessions() -> None:
    """A token signed with the old key is good while that key is listed; the first key signs new ones."""
    old = Tokens([OLD]).issue(SESSION)
    assert Tokens([NEW, OLD]).verify(old).user == 42
    assert Tokens([NEW]).verify(Tokens([NEW, OLD]).issue(SESSION)).user == 42
    with pytest.raises(BadToken, match="not issued here"):
        Tokens([NEW]).verify(old)


@pytest.mark.parametrize(
    ("token", "complaint"),
    [
        (signed(exp=1), "expired"),
        (signed(OTHER), "not issued here"),
        (signed(drop="exp"), "malformed"),
        (signed(drop="sid"), "malformed"),
        (signed(drop="sub"), "malformed"),
        (signed(sub=42), "malformed"),
        (signed(sub="0"), "names no person"),
        (signed(sub="42\n"), "names no person"),
        (signed(sub="٤٢"), "names no person"),
        (signed(sub="9" * 16), "names no person"),
        (signed(sub="9" * 400), "names no person"),
        (signed(sid=7), "names no session"),
        (signed(sid=""), "names no session"),
        (signed(sid="a b"), "names no session"),
        (signed(exp=10**18), "no valid end"),
        (signed(exp="soon"), "malformed"),
        (signed(algorithm="HS512", key=NEW * 2), "malformed"),
        (jwt.encode({"sub": "42", "sid": "abc", "exp": LATER}, None, "none"), "malformed"),
        ("", "malformed"),
        ("a.b.c", "malformed"),
        ("ü.ü.ü", "malformed"),
        ("\ud800.a.b", "malformed"),
        ("a" * 5000, "malformed"),
    ],
)
def test_a_bad_token_is_refused(token: str, complaint: str) -> None:
    """Each is refused with its reason, and the reason does not repeat the token."""
    with pytest.raises(BadToken, match=complaint) as caught:
        Tokens([NEW]).verify(token)
    assert not token or token not in str(caught.value)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b", 7, {}, [], True])
def test_whatever_is_not_a_bearer_token_is_refused_not_ignored(header: object) -> None:
    """A header that is there but useless never makes a request anonymous."""
    with pytest.raises(BadToken, match="Bearer"):
        Tokens([NEW]).viewer(header)


def test_no_header_means_anonymous_and_the_scheme_has_any_case() -> None:
    """Only the absence of the header is anonymity."""
    tokens = Tokens([NEW])
    assert tokens.viewer(None) is None
    viewer = tokens.viewer(f"bearer {signed()}")
    assert viewer is not None
    assert viewer.user == 42
