"""Tests of appending to the archive in SQLite, PostgreSQL and MariaDB: the watermark, duplicates and failures."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from graph.archive.archive import Archive
from graph.archive.rows import ArchiveChanged, ConflictingEvent, Credential, EventRow, EventsRefused
from graph.errors import ArchiveUnavailable
from tests.graph.archive.events import STORE, append, deletion, followed, held, post, statements_of, unfollowed


async def test_a_new_archive_is_unbound_and_empty(archive: Archive) -> None:
    state = await archive.state()

    assert (state.store, state.watermark, state.note) == (None, 0, None)
    assert len(state.id) == 32
    assert await held(archive) == []


async def test_binding_replaces_the_expected_store_only(archive: Archive) -> None:
    """`unused_only` also requires that nothing was ever appended."""
    assert not await archive.bind("a", replacing="b", unused_only=False)
    assert await archive.bind("a", replacing=None, unused_only=True)
    assert not await archive.bind("b", replacing=None, unused_only=True)
    assert await archive.bind("a", replacing="a", unused_only=True)
    assert await archive.bind(STORE, replacing="a", unused_only=True)
    await append(archive, post(1))
    assert not await archive.bind("c", replacing=STORE, unused_only=True)
    assert (await archive.state()).store == STORE
    assert await archive.bind("c", replacing=STORE, unused_only=False)
    assert (await archive.state()).store == "c"


async def test_one_of_several_processes_binds_an_archive(archive: Archive, archive_url: str) -> None:
    others = [archive, *(Archive(archive_url) for _ in range(3))]
    won = await asyncio.gather(
        *(other.bind(str(who), replacing=None, unused_only=True) for who, other in enumerate(others))
    )
    assert sum(won) == 1
    assert (await archive.state()).store == str(won.index(True))
    for other in others[1:]:
        await other.close()


async def test_the_note_is_kept_until_it_is_set_again(archive: Archive) -> None:
    for note in ("seeding: ß 好", "x" * 10_000, None):
        await archive.set_note(note)
        assert (await archive.state()).note == note


async def test_appending_inserts_events_and_raises_the_watermark(archive: Archive) -> None:
    rows = [
        EventRow(3, "UserCreated", 3, None, '{"login":"bob"}'),
        post(5, 3, "déjà 好 😀 \u2028", platform="p"),
        followed(6, 3, 9),
        EventRow(7, "SessionsEnded", 3, None, None),
    ]

    await append(archive, *rows, up_to=10)

    assert await held(archive) == rows
    assert (await archive.state()).watermark == 10


async def test_an_empty_batch_raises_the_watermark(archive: Archive) -> None:
    """The log may hold only removed entries. An equal watermark is not an error, and a lower one changes nothing."""
    for up_to, expected in ((7, 7), (7, 7), (5, 7)):
        await append(archive, up_to=up_to)
        assert (await archive.state()).watermark == expected


@pytest.mark.parametrize(("store", "watermark"), [("other", 5), (STORE, 4), (STORE, 6), (STORE, 0), ("", 5)])
async def test_another_watermark_or_store_is_refused(archive: Archive, store: str, watermark: int) -> None:
    await append(archive, post(5))

    with pytest.raises(ArchiveChanged):
        await archive.append([post(8)], [], store=store, watermark=watermark, up_to=8)

    assert await held(archive) == [post(5)]
    assert (await archive.state()).watermark == 5


async def test_an_unbound_archive_refuses_events(archive: Archive) -> None:
    with pytest.raises(ArchiveChanged):
        await archive.append([post(1)], [], store=STORE, watermark=0, up_to=1)
    assert await held(archive) == []


async def test_one_of_several_concurrent_appends_wins(archive: Archive, archive_url: str) -> None:
    """The others raise ArchiveChanged, even if they arrive while the winner waits before its commit."""
    await append(archive)
    others = [archive, *(Archive(archive_url) for _ in range(3))]
    for turn in range(1, 4):
        outcomes = await asyncio.gather(
            *(
                other.append(
                    [post(turn, 1, str(who))],
                    [],
                    store=STORE,
                    watermark=turn - 1,
                    up_to=turn,
                    before_commit=lambda: asyncio.sleep(0.05),
                )
                for who, other in enumerate(others)
            ),
            return_exceptions=True,
        )
        assert [outcome for outcome in outcomes if not isinstance(outcome, ArchiveChanged)] == [None]
        [row] = await archive.range(turn - 1, turn, 9)
        assert row == post(turn, 1, str(outcomes.index(None)))
    for other in others[1:]:
        await other.close()


async def test_a_store_that_was_replaced_meanwhile_is_refused(archive: Archive) -> None:
    """If an append and a rebuild that binds another store run concurrently, the later one sees the other."""
    await append(archive, post(1))
    started, finish = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        await finish.wait()

    first = asyncio.create_task(archive.append([post(2)], [], store=STORE, watermark=1, up_to=2, before_commit=wait))
    await started.wait()
    bound = asyncio.create_task(archive.bind("new", replacing=STORE, unused_only=False))
    await asyncio.sleep(0.05)
    assert not bound.done()
    finish.set()
    await first
    assert await bound

    with pytest.raises(ArchiveChanged):
        await archive.append([post(3)], [], store=STORE, watermark=2, up_to=3)
    assert await held(archive) == [post(1), post(2)]


async def test_appending_twice_appends_once(archive: Archive) -> None:
    """Existing rows stay unchanged, and missing rows are added."""
    await append(archive, post(1), followed(3), up_to=5)

    await append(archive, post(1), post(2), followed(3), post(4), low=0)

    assert await held(archive) == [post(1), post(2), followed(3), post(4)]
    assert (await archive.state()).watermark == 5


@pytest.mark.parametrize(
    "other",
    [post(5, 1, "other"), post(5, 2), followed(5, 1), EventRow(5, "PostPublished", 1, 7, post(5).body)],
    ids=["body", "actor", "kind", "subject"],
)
async def test_another_event_under_the_same_number_is_refused(archive: Archive, other: EventRow) -> None:
    await append(archive, post(5))

    with pytest.raises(ConflictingEvent, match=r"Event 5 of the log differs from event 5 in the archive\.") as caught:
        await append(archive, post(4), other, post(6), low=0)

    assert caught.value.number == 5
    assert await held(archive) == [post(5)]
    assert (await archive.state()).watermark == 5


async def test_a_row_without_content_is_equal_to_its_event(archive: Archive) -> None:
    """Deleted posts are redacted, and the archive keeps refused events without a body."""
    refused = EventRow(3, "ProfileChanged", 1, None, None)
    await append(archive, post(1), deletion(2, 1), refused, refused._replace(number=4, kind="PostPublished"))
    before = await held(archive)

    profile = EventRow(3, "ProfileChanged", 1, None, '{"name":"x"}')
    await append(archive, post(1), deletion(2, 1), profile, post(4), low=0)

    assert await held(archive) == before
    assert [row.kind for row in before] == ["Redacted", "PostDeleted", "ProfileChanged", "Redacted"]
    with pytest.raises(ConflictingEvent):
        await append(archive, post(1, 2), low=0)
    with pytest.raises(ConflictingEvent):
        await append(archive, followed(1, 1), low=0)


async def test_events_above_the_new_watermark_are_refused(archive: Archive) -> None:
    with pytest.raises(ValueError, match="may have a number above 7"):
        await append(archive, post(8), up_to=7)
    assert (await archive.state()).watermark == 0


async def test_credentials_are_inserted_once(archive: Archive) -> None:
    """A user without a password has credentials without a hash. Credentials with the same number stay unchanged."""
    bob, alice = Credential(1, "bob", "$argon2id$" + "x" * 500, 1), Credential(2, "alice", None, 2)
    await append(archive, post(1), credentials=[bob, alice])
    await append(archive, post(2), credentials=[bob._replace(hash=None), Credential(3, "Bob", None, 3)])

    assert await archive.credentials([3, 1, 2, 9]) == {1: bob, 2: alice, 3: Credential(3, "Bob", None, 3)}
    assert await archive.credentials([]) == {}


async def test_the_credentials_with_the_highest_number_stay(archive: Archive) -> None:
    """The highest number wins within a batch and across batches. Other credentials are not affected."""
    bob, alice = Credential(1, "bob", "first", 1), Credential(2, "alice", "hers", 2)
    await append(archive, post(1), credentials=[bob._replace(hash="third", number=6), bob, alice])
    await append(archive, post(2), credentials=[bob._replace(hash="second", number=4)])
    assert await archive.credentials([1, 2]) == {1: bob._replace(hash="third", number=6), 2: alice}

    await append(archive, post(3), credentials=[bob._replace(hash="fourth", number=9), bob])

    assert await archive.credentials([1, 2]) == {1: bob._replace(hash="fourth", number=9), 2: alice}


async def test_a_login_of_another_user_is_refused(archive: Archive) -> None:
    """The batch is refused rather than skipped: without credentials, the account would silently be void."""
    await append(archive, post(1), credentials=[Credential(1, "bob", None, 1)])

    with pytest.raises(EventsRefused):
        await append(archive, post(2), credentials=[Credential(2, "bob", None, 2)])

    assert await held(archive) == [post(1)]
    assert await archive.credentials([1, 2]) == {1: Credential(1, "bob", None, 1)}


no_kind: Any = None


@pytest.mark.parametrize(
    "refused",
    [
        post(2)._replace(kind=no_kind),
        EventRow(2, "Noted", 2**63, None, "{}"),
        EventRow(2, "Noted", 1, None, '{"text":"\ud800"}'),
        EventRow(2, "PostPublished", 1, None, '{"text":'),
        EventRow(2, "PostPublished", 1, None, "{}"),
        EventRow(2, "PostDeleted", 1, 1, "terms"),
    ],
    ids=["null", "out of range", "not Unicode", "truncated JSON", "no text", "not JSON"],
)
async def test_a_batch_with_a_refused_row_writes_nothing(archive: Archive, refused: EventRow) -> None:
    """The same event without a body is accepted, so one event cannot stop the archive."""
    credentials = [Credential(1, "bob", None, 1)]
    with pytest.raises(EventsRefused):
        await append(archive, post(1), refused, followed(3), credentials=credentials)

    assert await held(archive) == []
    assert (await archive.state()).watermark == 0
    assert await archive.credentials([1]) == {}
    if refused.kind and refused.actor < 2**63:
        await append(archive, post(1), refused._replace(body=None), followed(3), credentials=credentials)
        assert [row.number for row in await held(archive)] == [1, 2, 3]


async def test_a_value_that_is_too_long_is_refused(archive: Archive) -> None:
    """PostgreSQL and MariaDB refuse the value. SQLite has no limit."""
    if archive.database.kind == "sqlite":
        pytest.skip("SQLite does not limit lengths")
    with pytest.raises(EventsRefused):
        await append(archive, post(1), post(2)._replace(kind="k" * 33))
    assert await held(archive) == []


async def test_a_missing_column_is_no_refusal(archive: Archive) -> None:
    """Otherwise the archiver would give up on one event after another."""
    await append(archive, post(1))
    async with archive.database.engine.begin() as connection:
        await connection.execute(text("ALTER TABLE credentials DROP COLUMN hash"))
    with pytest.raises((ProgrammingError, ArchiveUnavailable)):
        await append(archive, post(2), credentials=[Credential(1, "bob", None, 1)])
    assert await held(archive) == [post(1)]


async def test_an_error_before_the_commit_leaves_nothing(archive: Archive) -> None:
    """The rows are already written when `before_commit` is awaited, but no other connection sees them."""
    await append(archive, post(1))
    seen: list[Any] = []

    async def fail() -> None:
        seen.append(await held(archive))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await archive.append(
            [deletion(2, 1), post(3)],
            [Credential(1, "bob", None, 1)],
            store=STORE,
            watermark=1,
            up_to=3,
            before_commit=fail,
        )

    assert seen == [[post(1)]]
    assert await held(archive) == [post(1)]
    assert await archive.credentials([1]) == {}
    assert (await archive.state()).watermark == 1


async def test_a_process_killed_before_the_commit_leaves_nothing(archive: Archive) -> None:
    """A killed process leaves no rows, no watermark and no lock."""
    script = """
        import asyncio, os, signal, sys
        from graph.archive.archive import Archive
        from graph.archive.rows import EventRow

        async def kill():
            os.kill(os.getpid(), signal.SIGKILL)

        row = EventRow(5, "Followed", 1, 2, "{}")
        append = Archive(sys.argv[1]).append
        asyncio.run(append([row], [], store="store 1", watermark=0, up_to=5, before_commit=kill))
    """
    await append(archive)
    url = archive.database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", textwrap.dedent(script), url]
    assert (await asyncio.to_thread(subprocess.run, command, check=False)).returncode == -signal.SIGKILL

    assert await held(archive) == []
    assert (await archive.state()).watermark == 0
    await append(archive, post(5))


async def test_the_number_of_statements_does_not_depend_on_the_batch(archive: Archive) -> None:
    """A batch in order takes 2 statements, plus 7 for posts, 8 for deletions, 2 for users, and 2 for other events.

    Texts with more than 900 different terms take more.
    """
    await append(archive)
    posts = [post(number) for number in range(1, 801)]
    everything = [
        *(followed(number, number) for number in range(801, 900)),
        *(deletion(number, number - 800) for number in range(901, 1600)),
        *(unfollowed(number, number - 900) for number in range(1701, 1799)),
    ]
    users = [Credential(number, f"user{number}", None, number) for number in range(1, 1000)]

    async def cost(call: Callable[[], Awaitable[Any]]) -> int:
        with statements_of(archive) as sent:
            await call()
        return len(sent)

    async def send(rows: list[EventRow], low: int, up_to: int, credentials: list[Credential]) -> None:
        await archive.append(rows, credentials, store=STORE, watermark=low, up_to=up_to)

    assert await cost(lambda: send(posts, 0, 800, [])) == 9
    assert await cost(lambda: send(everything, 800, 1800, users)) == 14
