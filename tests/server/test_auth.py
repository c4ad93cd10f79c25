"""Access tokens: verification, key rotation and weak keys."""

import base64
import hashlib
import hmac
import json
import secrets
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import jwt
import pytest

from graph import Graph
from graph.model import Credentials
from resolvers.context import Viewer
from server.auth import BadToken, Tokens
from server.settings import Settings
from server.signing_keys import key_id, weakness
from tests.server.conftest import serving

OLD, NEW, OTHER = (f"{name} key of the tests, long enough to sign" for name in ("old", "new", "other"))
LATER = 4_000_000_000  # in the year 2096: the same whenever, and by whichever process, the tests are collected
SESSION = Credentials("abc-DEF_1", 42, datetime.now(UTC).replace(microsecond=0) + timedelta(days=30))


def signed(key: str = NEW, algorithm: str = "HS256", drop: str = "", **claims: Any) -> str:
    """Return a token that is valid except for the given claims."""
    good = {"sub": "42", "sid": "abc", "exp": LATER}
    header = {"kid": key_id(NEW)}
    return jwt.encode({k: v for k, v in (good | claims).items() if k != drop}, key, algorithm, header)


def forged(header: bytes, claims: bytes = b'{"sub":"42","sid":"abc","exp":4000000000}', key: str = NEW) -> str:
    """Return a token with an arbitrary header and claims, signed with HMAC-SHA256."""
    parts = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (header, claims))
    mac = hmac.digest(key.encode(), parts, "sha256")
    return b".".join([parts, base64.urlsafe_b64encode(mac).rstrip(b"=")]).decode()


def with_kid(kid: object, key: str = NEW) -> str:
    """Return a forged token with a key id."""
    return forged(json.dumps({"alg": "HS256", "typ": "JWT", "kid": kid}).encode(), key=key)


def test_a_token_identifies_user_session_and_expiry() -> None:
    viewer = Tokens([NEW]).verify(Tokens([NEW]).issue(SESSION))
    assert (viewer.user, viewer.session, viewer.expires_at) == (42, "abc-DEF_1", SESSION.expires_at)


def test_keys_rotate_without_ending_sessions() -> None:
    """A token signed with the old key is valid while that key is listed; the first key signs new tokens."""
    old = Tokens([OLD]).issue(SESSION)
    assert Tokens([NEW, OLD]).verify(old).user == 42
    assert Tokens([NEW]).verify(Tokens([NEW, OLD]).issue(SESSION)).user == 42
    with pytest.raises(BadToken, match="not issued by this server"):
        Tokens([NEW]).verify(old)


def test_a_rotation_refuses_no_token_at_any_step() -> None:
    """Instances at two neighbouring steps verify each other's tokens."""
    steps = [[OLD], [OLD, NEW], [NEW, OLD]]
    for before, after in pairwise(steps):
        for signer in (before, after):
            for verifier in (before, after):
                assert Tokens(verifier).verify(Tokens(signer).issue(SESSION)).user == 42
    with pytest.raises(BadToken, match="not issued by this server"):
        Tokens(steps[0]).verify(Tokens(steps[2]).issue(SESSION))  # so the step in between must reach all


def test_a_token_is_verified_only_with_the_key_of_its_id() -> None:
    """One signature is computed, whatever the number of keys."""
    tokens = Tokens([f"{NEW} {n}" for n in range(50)] + [NEW])
    token = Tokens([NEW]).issue(SESSION)

    with patch("jwt.algorithms.hmac.new", wraps=hmac.new) as macs:
        assert tokens.verify(token).user == 42
        with pytest.raises(BadToken):
            tokens.verify(with_kid(key_id(f"{NEW} 7")))
        with pytest.raises(BadToken):
            tokens.verify(with_kid("00000000"))

    assert macs.call_count == 2


def test_the_id_of_a_key_does_not_reveal_it() -> None:
    """The id is short, stable, and not a plain hash of the key."""
    assert key_id(NEW) == key_id(NEW) != key_id(OLD)
    assert len(key_id(NEW)) == 8
    assert not hashlib.sha256(NEW.encode()).hexdigest().startswith(key_id(NEW))
    assert jwt.get_unverified_header(Tokens([NEW, OLD]).issue(SESSION))["kid"] == key_id(NEW)


def test_the_last_of_repeated_claims_counts() -> None:
    """This holds in verification and in the cache."""
    header = b'{"alg":"HS256","kid":"%b"}' % key_id(NEW).encode()
    token = forged(header, b'{"sub":"41","sub":"42","sid":"abc","exp":4000000000}')
    tokens = Tokens([NEW])

    viewers = [tokens.verify(token), tokens.viewer(f"Bearer {token}"), tokens.viewer(f"Bearer {token}")]

    assert [viewer and viewer.user for viewer in viewers] == [42, 42, 42]


def test_refused_tokens_are_not_cached() -> None:
    """A forged token does not affect the valid one."""
    tokens, good = Tokens([NEW]), signed()
    tokens.viewer(f"Bearer {good}")
    head, claims, mac = good.split(".")
    other = signed(sub="43").split(".")[1]

    for bad in (f"{head}.{other}.{mac}", f"{head}.{claims}.{mac[::-1]}", f"{head}.{claims}.", signed(OTHER)):
        for _ in range(2):
            with pytest.raises(BadToken):
                tokens.viewer(f"Bearer {bad}")
    viewer = tokens.viewer(f"Bearer {good}")
    assert viewer is not None
    assert viewer.user == 42


def test_the_cache_of_verified_tokens_is_bounded() -> None:
    with patch("server.auth.VERIFIED", 10):
        tokens = Tokens([NEW])
    for n in [*range(1, 30), 1]:
        viewer = tokens.viewer(f"Bearer {signed(sub=str(n))}")
        assert viewer is not None
        assert viewer.user == n
    assert len(tokens._verified) == 10


def test_a_cached_token_expires() -> None:
    tokens = Tokens([NEW])
    expiry = datetime.now(UTC) - timedelta(minutes=1)
    token = signed(exp=int(expiry.timestamp()))
    tokens._verified[token] = Viewer(42, "abc", expiry)

    with pytest.raises(BadToken, match="expired"):
        tokens.viewer(f"Bearer {token}")


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ("short", "at least 32 bytes"),
        ("", "at least 32 bytes"),
        ("k" * 64, "at least 8 different"),
        ("changeme" * 8, "at least 8 different"),
        ("Fanline! changeme " * 8, "must not repeat itself"),
        ("secret-" + "0123456789" * 8, "must not repeat itself"),
        ("a phrase of eight words can be guessed, too", None),
        ("0123456789abcdef" * 2, "must not repeat itself"),
        (("0123456789abcdef" * 4)[:50], "must not repeat itself"),
        ("a" * 31 + "b", "at least 8 different"),
        ("ab" * 20 + "c", "at least 8 different"),
        ("密" * 11, "at least 8 different"),
    ],
)
def test_weak_keys_are_detected(key: str, complaint: str | None) -> None:
    """Weak keys are short, repetitive or monotonous."""
    found = weakness(key)
    assert found == complaint if complaint is None else complaint in str(found)


def test_random_keys_are_strong() -> None:
    """This holds in every common notation."""
    for _ in range(200):
        for key in (secrets.token_urlsafe(48), secrets.token_hex(32), secrets.token_hex(16)):
            assert weakness(key) is None


@pytest.mark.parametrize(
    ("token", "complaint"),
    [
        (signed(exp=1), "expired"),
        (signed(OTHER), "not issued by this server"),
        (signed(drop="exp"), "malformed"),
        (signed(drop="sid"), "malformed"),
        (signed(drop="sub"), "malformed"),
        (signed(sub=42), "malformed"),
        (signed(sub="0"), "does not identify a user"),
        (signed(sub="42\n"), "does not identify a user"),
        (signed(sub="٤٢"), "does not identify a user"),
        (signed(sub="9" * 16), "does not identify a user"),
        (signed(sub="9" * 400), "does not identify a user"),
        (signed(sid=7), "does not name a session"),
        (signed(sid=""), "does not name a session"),
        (signed(sid="a b"), "does not name a session"),
        (signed(exp=10**18), "no valid expiry"),
        (signed(exp="soon"), "malformed"),
        (signed(algorithm="HS512", key=NEW * 2), "malformed"),
        (jwt.encode({"sub": "42", "sid": "abc", "exp": LATER}, None, "none", {"kid": key_id(NEW)}), "malformed"),
        (jwt.encode({"sub": "42", "sid": "abc", "exp": LATER}, NEW), "not issued by this server"),
        (with_kid(key_id(OTHER)), "not issued by this server"),
        (with_kid(key_id(OTHER), OTHER), "not issued by this server"),
        (with_kid(key_id(NEW), OTHER), "not issued by this server"),
        (with_kid(key_id(NEW).upper()), "not issued by this server"),
        (with_kid(key_id(NEW) + "\n"), "not issued by this server"),
        (with_kid("../../../../dev/null", ""), "not issued by this server"),
        (with_kid("' UNION SELECT 'key", "key"), "not issued by this server"),
        (with_kid("\u0000"), "not issued by this server"),
        (with_kid("0" * 1000), "not issued by this server"),
        (with_kid("０" * 8), "not issued by this server"),
        (with_kid(""), "not issued by this server"),
        (with_kid(None), "malformed"),
        (with_kid(12345678), "malformed"),
        (with_kid([key_id(NEW)]), "malformed"),
        (with_kid({"key": 1}), "malformed"),
        (forged(b'{"alg":"HS256","kid":"%b","kid":"00000000"}' % key_id(NEW).encode()), "not issued by this server"),
        (forged(b'{"alg":"none","kid":"%b"}' % key_id(NEW).encode()), "malformed"),
        (forged(b'{"alg":"RS256","kid":"%b"}' % key_id(NEW).encode()), "malformed"),
        (forged(b'{"alg":["HS256"],"kid":"%b"}' % key_id(NEW).encode()), "malformed"),
        (forged(b'{"alg":"HS256","kid":"%b","crit":["x"],"x":1}' % key_id(NEW).encode()), "malformed"),
        (forged(b'{"alg":"HS256","kid":"%b","b64":false}' % key_id(NEW).encode()), "malformed"),
        (forged(b"[" * 1390, b"{}"), "malformed"),
        (forged(b'["HS256"]'), "malformed"),
        (forged(b"\xff"), "malformed"),
        (forged(b'{"alg":"HS256","kid":"%b"}' % key_id(NEW).encode(), b"[" * 1300), "malformed"),
        (forged(b'{"alg":"HS256","kid":"%b"}' % key_id(NEW).encode(), b"[]"), "malformed"),
        (forged(b'{"alg":"HS256","kid":"%b"}' % key_id(NEW).encode(), b'{"exp":' + b"9" * 800 + b"}"), "malformed"),
        ("", "malformed"),
        ("a.b.c", "malformed"),
        ("ü.ü.ü", "malformed"),
        ("\ud800.a.b", "malformed"),
        ("a" * 5000, "malformed"),
    ],
)
def test_a_bad_token_is_refused(token: str, complaint: str) -> None:
    """The error has the reason, which does not contain the token."""
    with pytest.raises(BadToken, match=complaint) as caught:
        Tokens([NEW]).verify(token)
    assert not token or token not in str(caught.value)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b", 7, {}, [], True])
def test_a_header_without_a_bearer_token_is_refused(header: object) -> None:
    """An invalid header never makes a request anonymous."""
    with pytest.raises(BadToken, match="Bearer"):
        Tokens([NEW]).viewer(header)


def test_no_header_means_anonymous_and_the_scheme_has_any_case() -> None:
    tokens = Tokens([NEW])
    assert tokens.viewer(None) is None
    viewer = tokens.viewer(f"bearer {signed()}")
    assert viewer is not None
    assert viewer.user == 42


LOG_IN = """mutation ($login: String!, $password: String!) { logIn(input: {login: $login, password: $password}) {
    credentials { viewer { user { login } } } userErrors { code } } }"""


async def test_failed_log_ins_count_for_the_clients_address(settings: Settings, graph: Graph) -> None:
    """Another address can still log in; in IPv6, all addresses of a /64 network count as one."""
    async with serving(settings.model_copy(update={"trusted_proxies": ("127.0.0.1/32",)}), graph) as api:
        await api.session("alice")

        async def log_in(address: str, password: str) -> list[str]:
            body = {"query": LOG_IN, "variables": {"login": "alice", "password": password}}
            answer = await api.client.post("/graphql", json=body, headers={"x-forwarded-for": address})
            return [error["code"] for error in answer.json()["data"]["logIn"]["userErrors"]]

        for n in range(10):
            assert await log_in(f"2001:db8::{n}", "wrong horse") == ["WRONG_CREDENTIALS"]

        assert await log_in("2001:db8::ffff", "correct horse") == ["TOO_MANY_ATTEMPTS"]
        assert await log_in("2001:db8:0:1::1", "correct horse") == []
        assert await log_in("192.0.2.1", "correct horse") == []
