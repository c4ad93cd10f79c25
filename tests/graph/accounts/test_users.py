"""Users: sign-up, passwords, profiles, look-ups and counts."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ProblemCode, Rejected
from graph.log.events import UserCreated
from graph.model import User
from tests.support.graph_worlds import (
    PASSWORD,
    Counts,
    Open,
    append_events,
    befriend,
    codes,
    counted,
    counts_of,
    people,
    posts,
    state,
)
from tests.support.stores import Crashed, Death


async def everything(raw: Redis) -> str:
    """Return everything in the store as a string, including the log."""
    entries: Any = await raw.xrange("{log}")
    return repr(entries) + repr(await state(raw, but=["{log}"]))


async def outcome(graph: Graph, login: str, password: str, name: str | None = None) -> User | list[ProblemCode]:
    try:
        return await graph.users.sign_up(login, password, name)
    except Rejected as rejected:
        return codes(rejected)


async def test_a_new_user_is_found_by_id_and_login(graph: Graph) -> None:
    """A new user is found by id and by login, whatever the case of the login."""
    alice = await graph.users.sign_up("Alice", PASSWORD, " Alice A. ")

    assert (alice.login, alice.name, alice.bio) == ("alice", "Alice A.", "")
    assert await graph.users.get_many([alice.id]) == [alice]
    assert await graph.users.ids_of_logins(["alice", "ALICE"]) == [alice.id, alice.id]


async def test_without_a_name_the_login_is_the_name(graph: Graph) -> None:
    assert (await graph.users.sign_up("Bob", PASSWORD)).name == "bob"


async def test_look_ups_return_users_in_order(graph: Graph) -> None:
    """Unknown users are None. Each look-up takes 1 round trip."""
    alice, bob = await people(graph, "alice", "bob")

    async with counted(graph) as cost:
        found = await graph.users.get_many([bob, 7, alice, bob])
        logins = await graph.users.ids_of_logins(["bob", "nobody", "not a login", "alice", "bob", "Kate\n"])

    assert [user and user.login for user in found] == ["bob", None, "alice", "bob"]
    assert logins == [bob, None, None, alice, bob, None]
    assert cost.round_trips == 2


@pytest.mark.parametrize(
    ("login", "password", "name", "expected"),
    [
        ("alice!", PASSWORD, None, [ProblemCode.LOGIN_INVALID]),
        ("alice", "short", None, [ProblemCode.PASSWORD_TOO_WEAK]),
        ("alice", PASSWORD, "", [ProblemCode.INVALID]),
        ("", "", "\n", [ProblemCode.LOGIN_INVALID, ProblemCode.INVALID, ProblemCode.PASSWORD_TOO_WEAK]),
        ("Fanline__User", "fanline__user", None, [ProblemCode.PASSWORD_TOO_WEAK]),
        ("alice", "Alice Liddell", " Alice Liddell", [ProblemCode.PASSWORD_TOO_WEAK]),
    ],
)
async def test_an_invalid_sign_up_writes_nothing(
    graph: Graph, raw: Redis, login: str, password: str, name: str | None, expected: list[ProblemCode]
) -> None:
    """A sign-up reports all its problems at once and writes nothing."""
    assert await outcome(graph, login, password, name) == expected
    assert [key async for key in raw.scan_iter()] == [keys.BINDING]


async def test_a_login_is_taken_in_any_case(graph: Graph) -> None:
    """A login is taken in any letter case, even with the same password."""
    await people(graph, "alice")

    assert await outcome(graph, "ALICE", PASSWORD) == [ProblemCode.LOGIN_TAKEN]


@pytest.mark.parametrize("same", [True, False], ids=["same password", "different passwords"])
async def test_one_of_many_concurrent_sign_ups_succeeds(graph: Graph, another: Open, raw: Redis, same: bool) -> None:
    """One sign-up succeeds, and its password works afterwards."""
    instances = [graph, await another()]
    passwords = [PASSWORD if same else f"{PASSWORD} {n}" for n in range(40)]

    outcomes = await asyncio.gather(*(outcome(instances[n % 2], "alice", passwords[n]) for n in range(40)))
    await graph.worker().drain()

    winners = [n for n, user in enumerate(outcomes) if isinstance(user, User)]
    assert len(winners) == 1
    assert [o for o in outcomes if not isinstance(o, User)] == 39 * [[ProblemCode.LOGIN_TAKEN]]
    assert await graph.users.check_password("alice", passwords[winners[0]]) == outcomes[winners[0]]
    assert len([key async for key in raw.scan_iter("user:*")]) == 1


async def test_concurrent_sign_ups_with_different_names_make_one_account(graph: Graph, another: Open) -> None:
    """Of two sign-ups with the same login and password, one succeeds and the other is refused with LOGIN_TAKEN."""
    other = await another()

    outcomes = await asyncio.gather(outcome(graph, "alice", PASSWORD, "A"), outcome(other, "alice", PASSWORD, "B"))

    [winner] = [user for user in outcomes if isinstance(user, User)]
    assert [ProblemCode.LOGIN_TAKEN] in outcomes
    assert await graph.users.get_many([winner.id]) == [winner]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(7))
async def test_a_crashed_sign_up_can_be_repeated_with_the_same_password(
    graph: Graph, another: Open, raw: Redis, step: int, after: bool
) -> None:
    """After a crash at any step, the user gets the account by signing up again or by logging in."""
    dying = await another()
    await people(dying, "bob")  # loads the scripts, so that the steps are those of the sign-up
    death = Death(dying.store, step, after=after)
    with pytest.raises(Crashed):
        await dying.users.sign_up("alice", PASSWORD)
    claimed = step > 1 or (step == 1 and after)

    again = await outcome(graph, "alice", PASSWORD)
    stranger = await outcome(graph, "alice", "another password")
    await graph.worker().drain()

    assert death.happened
    account = await graph.users.check_password("alice", PASSWORD)
    assert again in (account, [ProblemCode.LOGIN_TAKEN])
    assert claimed or again == account
    assert stranger == [ProblemCode.LOGIN_TAKEN]
    assert len([key async for key in raw.scan_iter("user:*")]) == 2


@pytest.mark.parametrize("step", [2, 3])
async def test_a_crashed_sign_up_reserves_the_login(graph: Graph, another: Open, step: int) -> None:
    """Until the claim expires, a sign-up with another password is refused."""
    dying = await another()
    await people(dying, "bob")
    Death(dying.store, step, after=False)
    with pytest.raises(Crashed):
        await dying.users.sign_up("alice", PASSWORD)

    assert await outcome(graph, "alice", "another password") == [ProblemCode.LOGIN_TAKEN]
    assert isinstance(await outcome(graph, "alice", PASSWORD), User)


async def test_the_worker_completes_a_committed_sign_up(graph: Graph) -> None:
    await graph.users.claim_many([("alice", "nonce", await graph.users.hash_password(PASSWORD))])
    [event] = await append_events(graph, [UserCreated("alice", "Alice", "nonce")])

    await graph.worker().drain()

    assert (await graph.users.check_password("alice", PASSWORD)).id == event.number
    assert await outcome(graph, "alice", PASSWORD) == [ProblemCode.LOGIN_TAKEN]


async def test_an_event_without_its_claim_creates_no_user(graph: Graph, raw: Redis) -> None:
    await graph.commit([UserCreated("alice", "Alice", "lost nonce")])
    await graph.worker().drain()

    assert [key async for key in raw.scan_iter("user:*")] == []
    assert isinstance(await outcome(graph, "alice", PASSWORD), User)


async def test_a_claim_expires_but_an_account_does_not(graph: Graph, raw: Redis) -> None:
    await graph.users.claim_many([("bob", "n", None)])
    await people(graph, "alice")

    assert 0 < await raw.ttl("login:{bob}") <= 900
    assert await raw.ttl("login:{alice}") == -1


async def test_claims_for_an_import_return_which_succeeded(graph: Graph) -> None:
    """The same claim can be repeated."""
    await people(graph, "alice")

    first = await graph.users.claim_many([("alice", "a", None), ("bob", "b", None), ("carol", "c", None)])
    again = await graph.users.claim_many([("bob", "b", None), ("carol", "other", None)])

    assert (first, again) == ([False, True, True], [True, False])


async def test_passwords_are_stored_as_argon2id_hashes_in_one_place(graph: Graph, raw: Redis) -> None:
    """Neither the log nor any other key contains the password."""
    await people(graph, "alice")
    await graph.users.check_password("alice", PASSWORD)
    await graph.worker().drain()

    stored = await everything(raw)
    assert PASSWORD not in stored
    assert stored.count("$argon2") == 1
    assert str(await raw.hget("login:{alice}", "secret")).startswith("$argon2id$")


async def test_the_right_password_returns_the_user(graph: Graph) -> None:
    """The case of the login does not matter; the case of the password does."""
    [alice] = await people(graph, "alice")

    assert (await graph.users.check_password("ALICE", PASSWORD)).id == alice
    with pytest.raises(Rejected):
        await graph.users.check_password("alice", PASSWORD.upper())


async def test_nobody_signs_up_with_a_reserved_login(another: Open) -> None:
    """Reserved logins are refused in any letter case. Other problems are reported too."""
    graph = await another(reserved_logins=frozenset({"admin"}))
    with pytest.raises(Rejected, match="reserved") as refused:
        await graph.users.sign_up("Admin", "short")

    assert [(each.code, each.field) for each in refused.value.problems] == [
        (ProblemCode.LOGIN_TAKEN, ("login",)),
        (ProblemCode.PASSWORD_TOO_WEAK, ("password",)),
    ]
    assert await graph.users.ids_of_logins(["admin"]) == [None]
    await graph.users.sign_up("admin2", "correct horse battery")


async def test_a_claimed_login_cannot_log_in(graph: Graph) -> None:
    await graph.users.claim_many([("alice", "n", await graph.users.hash_password(PASSWORD))])

    with pytest.raises(Rejected) as rejected:
        await graph.users.check_password("alice", PASSWORD)

    assert codes(rejected.value) == [ProblemCode.WRONG_CREDENTIALS]


async def test_a_profile_changes_field_by_field(another: Open) -> None:
    """Omitted fields stay unchanged. A biography can be emptied, and a URL removed."""
    graph = await another(media_hosts=frozenset({"example.org"}))
    [alice] = await people(graph, "alice")

    changed = [
        await graph.users.update_profile(alice, name=" 爱丽丝 "),
        await graph.users.update_profile(alice, bio="hi\nthere"),
        await graph.users.update_profile(alice),
        await graph.users.update_profile(alice, bio=""),
    ]

    assert [(user.name, user.bio) for user in changed] == [
        ("爱丽丝", ""),
        ("爱丽丝", "hi\nthere"),
        ("爱丽丝", "hi\nthere"),
        ("爱丽丝", ""),
    ]
    assert await graph.users.get_many([alice]) == [changed[-1]]
    with_urls = await graph.users.update_profile(
        alice, avatar_url=" HTTPS://Example.ORG/a.png ", website_url="https://example.org"
    )
    assert with_urls == changed[-1]._replace(avatar_url="https://example.org/a.png", website_url="https://example.org")
    assert await graph.users.update_profile(alice, name="爱") == with_urls._replace(name="爱")
    removed = await graph.users.update_profile(alice, avatar_url="")
    assert removed == with_urls._replace(name="爱", avatar_url=None)
    assert await graph.users.get_many([alice]) == [removed]


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        (
            {"media.example.org", "example.org:8443"},
            "Files from this host are not accepted. Use one of these: example.",
        ),
        ((), "This server accepts no pictures."),
    ],
)
async def test_a_picture_is_on_a_host_that_the_operator_lists(
    another: Open, hosts: Iterable[str], message: str
) -> None:
    """Every reader loads a picture from its host. A website may have any host, because readers choose to open it."""
    graph = await another(media_hosts=frozenset(hosts))
    [alice] = await people(graph, "alice")
    last = await graph.log.last()
    for url in (
        "https://evil.example/a",
        "https://example.org/a",
        "https://media.example.org.evil.example/",
        "https://a.media.example.org/",
    ):
        with pytest.raises(Rejected, match=message) as rejection:
            await graph.users.update_profile(alice, name="Alice", avatar_url=url)
        assert [(each.code, each.field) for each in rejection.value.problems] == [(ProblemCode.INVALID, ("avatarUrl",))]
    assert await graph.log.last() == last
    changed = await graph.users.update_profile(alice, avatar_url="", website_url="https://evil.example/a")
    assert (changed.avatar_url, changed.website_url) == (None, "https://evil.example/a")


async def test_a_look_up_that_evicts_a_login_does_not_hide_it_from_another(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids that are cached when a look-up begins are part of its result."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    monkeypatch.setattr("graph.accounts.users.MAX_REMEMBERED_LOGINS", 1)
    other = await another()
    await other.users.ids_of_logins(["alice"])

    evicting, found = await asyncio.gather(
        other.users.ids_of_logins(["carol"]), other.users.ids_of_logins(["alice", "bob", "nobody", "?", "ALICE"])
    )

    assert evicting == [carol]
    assert found == [alice, bob, None, None, alice]


async def test_an_invalid_profile_changes_nothing(graph: Graph) -> None:
    [alice] = await people(graph, "alice")

    with pytest.raises(Rejected) as rejected:
        await graph.users.update_profile(alice, name="x" * 51, bio="fine", website_url="http://example.org")

    assert [problem.field for problem in rejected.value.problems] == [("name",), ("websiteUrl",)]
    assert (await graph.users.get_many([alice]))[0] == User(alice, "alice", "alice", "")


async def test_the_profile_of_an_unknown_user_is_not_written(graph: Graph, raw: Redis) -> None:
    with pytest.raises(Rejected) as rejected:
        await graph.users.update_profile(7, name="Nobody")

    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
    assert [key async for key in raw.scan_iter()] == [keys.BINDING]


async def test_the_last_change_of_a_profile_wins(graph: Graph, another: Open) -> None:
    """Concurrent changes end in the state of the highest number, before and after a drain."""
    [alice] = await people(graph, "alice")
    tabs = [graph, await another()]
    await asyncio.gather(*(tabs[n % 2].users.update_profile(alice, name=f"name {n}") for n in range(50)))
    [before] = await graph.users.get_many([alice])

    await graph.worker().drain()

    events = [event.body async for event in graph.log.replay(0, await graph.log.last())]
    assert before is not None
    assert before.name == events[-1].name  # type: ignore[union-attr] # all but the first are changes of profiles
    assert await graph.users.get_many([alice]) == [before]


async def test_counts_are_exact(graph: Graph) -> None:
    """Counts are right even after deletions and repetitions. They take 1 round trip."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    await befriend(graph, bob, carol)
    await graph.follows.follow(alice, [carol])
    await graph.follows.unfollow(bob, [carol])
    first, *_ = await posts(graph, carol, "one", "two", "three")
    await graph.posts.delete(carol, first)

    async with counted(graph) as cost:
        counts = await counts_of(graph, [alice, bob, carol, 7])

    assert counts == [Counts(0, 2, 0), Counts(1, 0, 0), Counts(1, 0, 2), Counts(0, 0, 0)]
    assert cost.round_trips == 1
    await graph.posts.delete(carol, (await posts(graph, carol, "four"))[0])
    assert await counts_of(graph, [alice, bob, carol, 7]) == counts
