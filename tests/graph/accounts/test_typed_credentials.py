"""Logins and passwords as users type them, on different keyboards and with pasted characters."""

import unicodedata
from typing import Literal, TypeAlias

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import Rejected

Form: TypeAlias = Literal["NFC", "NFD"]


@pytest.mark.parametrize("typed", [" alice ", "@alice", " @Alice\n"])
async def test_a_login_is_trimmed_when_a_user_logs_in(graph: Graph, typed: str) -> None:
    user = await graph.users.sign_up("alice", "correct horse battery")
    assert await graph.users.check_password(typed, "correct horse battery") == user


@pytest.mark.parametrize(("first", "second"), [("NFC", "NFD"), ("NFD", "NFC")])
async def test_a_password_may_be_typed_on_another_keyboard(graph: Graph, first: Form, second: Form) -> None:
    """Passwords are prepared with the OpaqueString profile of RFC 8265. Case matters."""
    password = "Ñandú\u00a0überfährt\u3000Straße"
    user = await graph.users.sign_up("alice", unicodedata.normalize(first, password))

    for typed in (
        unicodedata.normalize(second, password),
        unicodedata.normalize(second, password).replace("\u3000", " "),
    ):
        assert await graph.users.check_password("alice", typed) == user
    with pytest.raises(Rejected):
        await graph.users.check_password("alice", password.casefold())


@pytest.mark.parametrize("form", ["NFC", "NFD"])
async def test_hashes_of_passwords_as_they_were_typed_still_hold(graph: Graph, raw: Redis, form: Form) -> None:
    """Hashes of earlier versions, which hashed the password as typed, still work."""
    password = "Ñandú überfährt"
    user = await graph.users.sign_up("alice", "correct horse battery")
    secret = graph.users.hashing._hasher.hash(unicodedata.normalize(form, password))
    await raw.hset(keys.login("alice"), "secret", secret)

    for typed in (unicodedata.normalize("NFC", password), unicodedata.normalize("NFD", password)):
        assert await graph.users.check_password("alice", typed) == user
