"""People: sign-up, passwords, profiles, look-ups and counts."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.log.events import UserCreated
from graph.model import User
from tests.support.graph_worlds import PASSWORD, Counts, Open, befriend, codes, counted, counts_of, people, posts, state
from tests.support.stores import Crashed, Death


async def everything(raw: Redis) -> str:
    """Give all that the store holds, the log included, as one string."""
    entries: list[Any] = await raw.xrange("{log}")
    return repr(entries) + repr(await state(raw, but=["{log}"]))


async def outcome(graph: Graph, login: str, password: str, name: str | None = None) -> User | list[ProblemCode]:
    try:
        return await graph.users.sign_up(login, password, name)
    except Rejected as rejected:
        return codes(rejected)


async def test_somebody_who_signed_up_is_there(graph: Graph) -> None:
    """The person can be looked up by id and by login in any case, and has joined now."""
    alice = await graph.users.sign_up("Alice", PASSWORD, " Alice A. ")

    assert (alice.login, alice.name, alice.bio) == ("alice", "Alice A.", "")
    assert await graph.users.get_many([alice.id]) == [alice]
    assert await graph.users.ids_of_logins(["alice", "ALICE"]) == [alice.id, alice.id]


async def test_without_a_name_the_login_is_the_name(graph: Graph) -> None:
    """A name is optional."""
    assert (await graph.users.sign_up("Bob", PASSWORD)).name == "bob"


async def test_look_ups_answer_in_order(graph: Graph) -> None:
    """Each place in the answer belongs to the same place in the question, None for nobody; one round trip."""
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
async def test_a_bad_sign_up_writes_nothing(
    graph: Graph, raw: Redis, login: str, password: str, name: str | None, expected: list[ProblemCode]
) -> None:
    """All problems are told at once, and the store is as it was."""
    assert await outcome(graph, login, password, name) == expected
    assert await raw.dbsize() == 0


async def test_a_login_is_taken_in_any_case(graph: Graph) -> None:
    """Logins differ in more than case, even for the same password."""
    await people(graph, "alice")

    assert await outcome(graph, "ALICE", PASSWORD) == [ProblemCode.LOGIN_TAKEN]


@pytest.mark.parametrize("same", [True, False], ids=["same password", "different passwords"])
async def test_of_forty_sign_ups_with_one_login_one_wins(graph: Graph, another: Open, raw: Redis, same: bool) -> None:
    """Over two instances at once, exactly one is told it has the login; it is that one's password that works."""
    instances = [graph, await another()]
    passwords = [PASSWORD if same else f"{PASSWORD} {n}" for n in range(40)]

    outcomes = await asyncio.gather(*(outcome(instances[n % 2], "alice", passwords[n]) for n in range(40)))
    await graph.worker().drain()

    winners = [n for n, user in enumerate(outcomes) if isinstance(user, User)]
    assert len(winners) == 1
    assert [o for o in outcomes if not isinstance(o, User)] == 39 * [[ProblemCode.LOGIN_TAKEN]]
    assert await graph.users.check_password("alice", passwords[winners[0]]) == outcomes[winners[0]]
    assert len([key async for key in raw.scan_iter("user:*")]) == 1


async def test_sign_ups_with_different_names_are_one_account(graph: Graph, another: Open) -> None:
    """Two that share login and password but not the name: one wins with its own name, the other is told."""
    other = await another()

    outcomes = await asyncio.gather(outcome(graph, "alice", PASSWORD, "A"), outcome(other, "alice", PASSWORD, "B"))

    [winner] = [user for user in outcomes if isinstance(user, User)]
    assert [ProblemCode.LOGIN_TAKEN] in outcomes
    assert await graph.users.get_many([winner.id]) == [winner]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(6))
async def test_a_crashed_sign_up_is_repeated_with_the_same_password(
    graph: Graph, another: Open, raw: Redis, step: int, after: bool
) -> None:
    """Killed at any step, it leaves a login that the same person gets: by signing up again, or by logging in."""
    dying = await another()
    await people(dying, "bob")  # which loads the scripts, so that the steps are the sign-up's own
    death = Death(dying.store, step, after=after)
    with pytest.raises(Crashed):
        await dying.users.sign_up("alice", PASSWORD)
    claimed = step > 1 or (step == 1 and after)

    again = await outcome(graph, "alice", PASSWORD)
    stranger = await outcome(graph, "alice", "another password")
    await graph.worker().drain()

    assert death.happened
    person = await graph.users.check_password("alice", PASSWORD)
    assert again in (person, [ProblemCode.LOGIN_TAKEN])
    assert claimed or again == person
    assert stranger == [ProblemCode.LOGIN_TAKEN]
    assert len([key async for key in raw.scan_iter("user:*")]) == 2


@pytest.mark.parametrize("step", [2, 3])
async def test_a_crashed_sign_up_keeps_strangers_out(graph: Graph, another: Open, step: int) -> None:
    """Until the claim runs out, another password does not get the login, and does not spoil it either."""
    dying = await another()
    await people(dying, "bob")
    Death(dying.store, step, after=False)
    with pytest.raises(Crashed):
        await dying.users.sign_up("alice", PASSWORD)

    assert await outcome(graph, "alice", "another password") == [ProblemCode.LOGIN_TAKEN]
    assert isinstance(await outcome(graph, "alice", PASSWORD), User)


async def test_a_sign_up_that_only_the_log_knows_becomes_an_account(graph: Graph) -> None:
    """Killed right after the commit, the sign-up is finished by the worker."""
    await graph.users.claim_many([("alice", "nonce", await graph.users.hash_password(PASSWORD))])
    [event] = await graph.log.append([UserCreated("alice", "Alice", "nonce")])

    await graph.worker().drain()

    assert (await graph.users.check_password("alice", PASSWORD)).id == event.number
    assert await outcome(graph, "alice", PASSWORD) == [ProblemCode.LOGIN_TAKEN]


async def test_a_event_without_its_claim_is_void(graph: Graph, raw: Redis) -> None:
    """A late event of a claim that ran out creates nobody."""
    await graph.commit([UserCreated("alice", "Alice", "lost nonce")])
    await graph.worker().drain()

    assert [key async for key in raw.scan_iter("user:*")] == []
    assert isinstance(await outcome(graph, "alice", PASSWORD), User)


async def test_a_claim_runs_out_but_an_account_does_not(graph: Graph, raw: Redis) -> None:
    """An abandoned claim frees its login after a quarter of an hour."""
    await graph.users.claim_many([("bob", "n", None)])
    await people(graph, "alice")

    assert 0 < await raw.ttl("login:{bob}") <= 900
    assert await raw.ttl("login:{alice}") == -1


async def test_claims_for_an_import_tell_which_succeeded(graph: Graph) -> None:
    """A login that is taken or claimed by somebody else is refused; one's own claim is confirmed."""
    await people(graph, "alice")

    first = await graph.users.claim_many([("alice", "a", None), ("bob", "b", None), ("carol", "c", None)])
    again = await graph.users.claim_many([("bob", "b", None), ("carol", "other", None)])

    assert (first, again) == ([False, True, True], [True, False])


async def test_no_secret_leaves_the_login(graph: Graph, raw: Redis) -> None:
    """Neither the log nor any other key holds the password, and the hash is argon2id in one place."""
    await people(graph, "alice")
    await graph.users.check_password("alice", PASSWORD)
    await graph.worker().drain()

    stored = await everything(raw)
    assert PASSWORD not in stored
    assert stored.count("$argon2") == 1
    assert (await raw.hget("login:{alice}", "secret")).startswith("$argon2id$")


async def test_the_right_password_gives_the_person(graph: Graph) -> None:
    """The login may be in any case, the password may not."""
    [alice] = await people(graph, "alice")

    assert (await graph.users.check_password("ALICE", PASSWORD)).id == alice
    with pytest.raises(Rejected):
        await graph.users.check_password("alice", PASSWORD.upper())


async def test_a_claimed_login_does_not_log_in(graph: Graph) -> None:
    """Before the account is settled there is none."""
    await graph.users.claim_many([("alice", "n", await graph.users.hash_password(PASSWORD))])

    with pytest.raises(Rejected) as rejected:
        await graph.users.check_password("alice", PASSWORD)

    assert codes(rejected.value) == [ProblemCode.WRONG_CREDENTIALS]


async def test_a_profile_changes_field_by_field(graph: Graph) -> None:
    """What is not given stays; a biography can be emptied."""
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


async def test_a_look_up_that_evicts_a_login_does_not_hide_it_from_another(
    graph: Graph, another: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids that are remembered when a look-up begins are part of its result."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    monkeypatch.setattr("graph.users.MAX_REMEMBERED_LOGINS", 1)
    other = await another()
    await other.users.ids_of_logins(["alice"])

    found = await asyncio.gather(
        other.users.ids_of_logins(["carol"]), other.users.ids_of_logins(["alice", "bob", "nobody", "?", "ALICE"])
    )

    assert found == [[carol], [alice, bob, None, None, alice]]


async def test_a_bad_profile_changes_nothing(graph: Graph) -> None:
    """If one field is wrong the other is not written either."""
    [alice] = await people(graph, "alice")

    with pytest.raises(Rejected) as rejected:
        await graph.users.update_profile(alice, name="x" * 51, bio="fine")

    assert [problem.field for problem in rejected.value.problems] == [("name",)]
    assert (await graph.users.get_many([alice]))[0] == User(alice, "alice", "alice", "")


async def test_the_profile_of_nobody_is_not_written(graph: Graph, raw: Redis) -> None:
    """NOT_FOUND means that nothing was written."""
    with pytest.raises(Rejected) as rejected:
        await graph.users.update_profile(7, name="Nobody")

    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
    assert await raw.dbsize() == 0


async def test_the_last_change_of_a_profile_stands_everywhere(graph: Graph, another: Open) -> None:
    """Tabs that change a name at once end in the state of the highest number, before and after a drain."""
    [alice] = await people(graph, "alice")
    tabs = [graph, await another()]
    await asyncio.gather(*(tabs[n % 2].users.update_profile(alice, name=f"name {n}") for n in range(50)))
    [before] = await graph.users.get_many([alice])

    await graph.worker().drain()

    events = [event.body async for event in graph.log.replay(0, await graph.log.last())]
    assert before is not None
    assert before.name == events[-1].name  # type: ignore[union-attr] # all but the first are changes of profiles
    assert await graph.users.get_many([alice]) == [before]


async def test_counts_are_those_of_the_sets(graph: Graph) -> None:
    """Followers, followings and live posts are counted exactly, deletions and repetitions included, in one trip."""
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
