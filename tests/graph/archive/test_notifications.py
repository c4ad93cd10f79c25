"""The archive's table of notifications, in SQLite, PostgreSQL and MariaDB."""

from sqlalchemy import insert

from graph.archive.archive import Archive
from graph.archive.rows import READ, EventRow
from graph.archive.tables import NOTIFICATIONS
from graph.log.notification_groups import Group, NotificationKind
from tests.graph.archive.events import append, deletion, followed, post, statements_of, unfollowed

FOLLOW, MENTION, REPLY = NotificationKind.FOLLOW, NotificationKind.MENTION, NotificationKind.REPLY
DAY = 86_400_000 << 12
FIRST = 18_262
"""The day of the lowest numbers: 2020-01-01."""


def read(number: int, up_to: int, user: int = 2) -> EventRow:
    """Return the row of a mark."""
    return EventRow(number, READ, user, None, f'{{"upto":{up_to}}}')


async def test_a_group_keeps_the_highest_number(archive: Archive) -> None:
    """The highest number stays in one batch and across batches, in any order."""
    await append(archive, followed(3, 7), followed(5, 8), followed(4, 9), up_to=10)
    assert await archive.notifications([2], 10) == {2: {Group(FOLLOW, FIRST): 5}}
    await append(archive, followed(11, 7), unfollowed(12, 7))
    await append(archive, followed(2, 6), low=1, up_to=12)
    assert await archive.notifications([2], 10) == {2: {Group(FOLLOW, FIRST): 11}}


async def test_the_newest_groups_of_each_user(archive: Archive) -> None:
    """Groups are newest first. Users without groups are left out."""
    rows = [post(number, 1, mentions=[number % 3 + 10]) for number in range(1, 31)]
    await append(archive, *rows, followed(DAY, 1, 10))
    found = await archive.notifications([10, 11, 99], 3)
    assert {user: list(groups.items()) for user, groups in found.items()} == {
        10: [(Group(FOLLOW, FIRST + 1), DAY), (Group(MENTION, 30), 30), (Group(MENTION, 27), 27)],
        11: [(Group(MENTION, post), post) for post in (28, 25, 22)],
    }
    assert await archive.notifications([], 3) == {}


async def test_groups_of_unknown_kinds_are_left_out(archive: Archive) -> None:
    """A later version archived the groups, and this version rebuilds the store."""
    await append(archive, followed(3, 7))
    unknown = insert(NOTIFICATIONS).values(subject=5, kind=99, recipient=2, number=9)
    await archive._transaction(lambda connection: connection.execute(unknown))
    assert await archive.notifications([2], 10) == {2: {Group(FOLLOW, FIRST): 3}}


async def test_many_users_at_once(archive: Archive) -> None:
    """Reading more users than fit into one statement works."""
    users = range(1000, 1600)
    await append(archive, *(followed(number, 1, user) for number, user in enumerate(users, 1)))
    with statements_of(archive) as sent:
        found = await archive.notifications(users, 5)
    assert {user: [*groups.values()] for user, groups in found.items()} == {
        user: [number] for number, user in enumerate(users, 1)
    }
    assert len(sent) == 3


async def test_the_groups_of_a_deleted_post_are_deleted(archive: Archive) -> None:
    """The groups are deleted whichever of the two events arrives first. A day with the same number stays."""
    await append(archive, post(5, 1, mentions=[2, 3], reply_to=4, reply_to_author=3), followed(6, 1, 3))
    assert await archive.notifications([2, 3], 9) == {
        2: {Group(MENTION, 5): 5},
        3: {Group(FOLLOW, FIRST): 6, Group(REPLY, 5): 5},
    }
    await append(archive, deletion(7, 5), deletion(8, FIRST))
    assert await archive.notifications([2, 3], 9) == {3: {Group(FOLLOW, FIRST): 6}}
    await append(archive, deletion(20, 15))
    await append(archive, post(15, 1, mentions=[2]), low=14, up_to=20)
    assert await archive.notifications([2], 9) == {}


async def test_a_mark_keeps_the_highest_number_up_to_its_event(archive: Archive) -> None:
    await append(archive, read(10, 5), read(11, 3), read(12, 2**52, user=7), followed(13, 1, 2))
    assert await archive.notifications_read([2, 7, 99]) == {2: 5, 7: 12}
    assert await archive.notifications_read([]) == {}
    assert await archive.notifications([2, 7], 1) == {2: {Group(FOLLOW, FIRST): 13}}


async def test_rows_are_found_by_the_indexes(archive: Archive) -> None:
    """Statements use the indexes even without statistics, however many rows there are."""
    await append(archive, *(post(number, 1, mentions=[number % 50]) for number in range(60, 3060)))
    for call in (
        lambda: archive.notifications([7, 8], 5),
        lambda: archive.notifications_read([7, 8]),
        lambda: append(archive, deletion(4000, 100)),
    ):
        with statements_of(archive) as sent:
            await call()
        asked = [(statement, values) for statement, values in sent if " notifications" in statement]
        explain = "EXPLAIN QUERY PLAN" if archive.database.kind == "sqlite" else "EXPLAIN"
        async with archive.database.engine.connect() as connection:
            for statement, values in asked:
                rows = await connection.exec_driver_sql(f"{explain} {statement}", values)
                plan = "\n".join("|".join(map(str, row)) for row in rows)
                assert "Seq Scan on notifications" not in plan
                assert "SCAN notifications" not in plan
                assert "|notifications|ALL|" not in plan
        assert asked
