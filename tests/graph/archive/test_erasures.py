"""Tests of the removal of a deleted user's texts from the archive."""

import orjson
import pytest

from graph.archive.archive import Archive
from graph.archive.name_codes import name_query
from graph.archive.rows import TEXTS, ArchiveChanged, Credential, EventRow, same_event, without_texts
from graph.paging import Window
from tests.graph.archive.events import STORE, append, followed, held, list_changed, list_created

ALICE, BOB = 1, 2
BODIES = {
    "UserCreated": '{"login":"secret","name":"secret","nonce":"secret","bio":"secret"}',
    "ProfileChanged": '{"bio":"secret"}',
    "PasswordChanged": '{"login":"secret","nonce":"secret"}',
    "ListCreated": '{"name":"secret","members":[2],"request":"secret"}',
    "ListChanged": '{"name":"secret","added":[2]}',
    "Reported": '{"reason":"SPAM","comment":"secret","author":3}',
    "ClosedReport": '{"reason":"SPAM","comment":"secret"}',
}
REDACTED = {kind: body.replace("secret", "") for kind, body in BODIES.items()}


def texts(user: int, first: int) -> list[EventRow]:
    """Return a row of each kind with texts of a user. The first one is the user's sign-up."""
    numbered = enumerate(BODIES.items(), first)
    return [EventRow(number, kind, user, None if number == first else 9, body) for number, (kind, body) in numbered]


def deleted(user: int, number: int) -> list[EventRow]:
    """Return the events that delete and erase a user."""
    return [
        EventRow(number, "UserDeleted", user, None, '{"login_hash":"ab"}'),
        EventRow(number + 1, "UserErased", user, None, "{}"),
    ]


def test_every_kind_with_texts_is_tested() -> None:
    assert BODIES.keys() == TEXTS.keys()


@pytest.mark.parametrize("kind", BODIES)
def test_an_event_without_its_texts_is_the_same_event(kind: str) -> None:
    """An event matches its row without texts. A damaged body is removed."""
    row = EventRow(5, kind, ALICE, 9, BODIES[kind])

    assert orjson.loads(without_texts(row).body or "") == orjson.loads(REDACTED[kind])
    assert same_event(without_texts(row), row)
    other = row._replace(body=BODIES[kind].replace("secret", "other"))
    assert same_event(other, row) is (kind == "ClosedReport")  # its body is never compared
    assert without_texts(row._replace(body='["secret"]')).body is None


async def test_the_texts_of_a_user_are_emptied_in_steps(archive: Archive) -> None:
    """Texts of other users stay. A repetition changes nothing."""
    await append(archive, *texts(ALICE, ALICE), followed(20, ALICE, BOB), *texts(BOB, 30))

    steps = []
    after = 0
    while numbers := await archive.erase_texts(ALICE, after, 3, STORE):
        steps.append(numbers)
        after = numbers[-1]

    assert steps == [[1, 2, 3], [4, 5, 6], [7]]
    assert await archive.erase_texts(ALICE, 0, 100, STORE) == [1, 2, 3, 4, 5, 6, 7]
    rows = await held(archive)
    assert {row.kind: row.body for row in rows if row.actor == ALICE and row.kind != "Followed"} == REDACTED
    assert [row for row in rows if row.actor == BOB] == texts(BOB, 30)


async def test_texts_of_an_erased_user_that_arrive_late_are_emptied(archive: Archive) -> None:
    """Texts may arrive late after a failover of the store. They do not enter the search index of names either."""
    await append(archive, *deleted(ALICE, 40), *deleted(BOB, 50)[:1], up_to=60)
    late = texts(ALICE, ALICE)
    await append(archive, *late[:4], *texts(BOB, 30), low=0, up_to=60)
    await archive.insert(late[4:], store=STORE)

    rows = await held(archive)
    assert {row.kind: row.body for row in rows if row.number < 10} == REDACTED
    assert [row for row in rows if 30 <= row.number < 40] == texts(BOB, 30)
    found = await archive.named(name_query("secret").codes(), Window(10, forward=True))
    assert ALICE not in found[0]


async def test_a_user_leaves_the_index_of_names(archive: Archive) -> None:
    await append(archive, *(row._replace(number=row.actor) for row in (texts(ALICE, ALICE)[0], texts(BOB, BOB)[0])))
    assert await archive.named(name_query("secret").codes(), Window(10, forward=True)) == ([BOB, ALICE], None)

    for _ in range(2):
        await archive.erase_names(ALICE, STORE)

    assert await archive.named(name_query("secret").codes(), Window(10, forward=True)) == ([BOB], None)


async def test_the_notifications_of_a_user_are_removed_in_steps(archive: Archive) -> None:
    """Notifications of other users stay."""
    follows = [followed(number << 44, 3, ALICE) for number in range(1, 503)]
    await append(archive, *follows, followed(503 << 44, 3, BOB))

    steps = [await archive.erase_notifications(ALICE, STORE) for _ in range(3)]

    assert steps == [True, True, False]
    assert (await archive.notifications([ALICE, BOB], 10)).keys() == {BOB}


async def test_only_the_process_of_the_store_erases(archive: Archive) -> None:
    await append(archive, *texts(ALICE, ALICE))

    with pytest.raises(ArchiveChanged):
        await archive.erase_texts(ALICE, 0, 10, "another store")
    assert (await held(archive))[0] == texts(ALICE, ALICE)[0]


async def test_a_deletion_replaces_the_login_in_the_credentials(archive: Archive) -> None:
    """The login's hash replaces the login. An earlier password change that arrives late does not restore it."""
    await append(archive, followed(1), credentials=[Credential(ALICE, "secret", "hash", 1)])
    await append(archive, followed(2), credentials=[Credential(ALICE, "ab", None, 9)])
    await append(archive, followed(3), credentials=[Credential(ALICE, "secret", "another", 5)])

    assert await archive.credentials([ALICE]) == {ALICE: Credential(ALICE, "ab", None, 9)}


async def test_the_lists_that_a_user_was_added_to_are_found_until_they_are_erased(archive: Archive) -> None:
    """The lists are found in pages. Late rows count; repetitions and lists of other users do not."""
    rows = [list_created(10, [ALICE, BOB, ALICE]), list_changed(11, [ALICE]), list_changed(12, [BOB])]
    await append(archive, *rows, EventRow(13, "ListDeleted", 1, 9, "{}"))
    await append(archive, *rows[:2], list_changed(9, [ALICE]), low=0)

    assert [row.number for row in await archive.list_additions(ALICE, 0, 2)] == [9, 10]
    assert await archive.list_additions(ALICE, 10, 2) == [rows[1]]

    await archive.erase_list_members(ALICE, 10, STORE)

    assert await archive.list_additions(ALICE, 0, 9) == [rows[1]]
    assert [row.number for row in await archive.list_additions(BOB, 0, 9)] == [10, 12]
    with pytest.raises(ArchiveChanged):
        await archive.erase_list_members(BOB, 12, "another store")


async def test_erased_users_who_may_be_members_of_lists_are_found(archive: Archive) -> None:
    await append(archive, list_created(10, [ALICE, BOB]), *deleted(ALICE, 11), *deleted(77, 13), list_changed(15, [3]))
    assert await archive.erased_list_members(9) == [ALICE]

    await archive.erase_list_members(ALICE, 10, STORE)

    assert await archive.erased_list_members(9) == []
