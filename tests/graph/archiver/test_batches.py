"""Tests of the entries that the archiver reads: damaged and unknown ones, and the password hashes of sign-ups."""

import asyncio
from typing import Any

import pytest

from graph import keys
from graph.archive.rows import ConflictingEvent, Credential, EventRow
from graph.errors import ArchiverStopped, ArchiveUnavailable
from graph.log.events import Followed, UserCreated
from graph.log.numbers import number_of
from tests.graph.archiver.world import ArchiveWorld
from tests.support.graph_worlds import PASSWORD, PATIENCE, append_events, background, crowd, posts
from tests.support.stores import Fault


async def mark_projected(world: ArchiveWorld) -> int:
    """Set the watermark to the end of the log without projecting anything, and return it."""
    last = await world.graph.log.last()
    await world.raw.set(keys.WATERMARK, last)
    return last


async def test_events_that_are_not_projected_wait(world: ArchiveWorld) -> None:
    """The archiver never passes the watermark."""
    await world.graph.archiver.work()
    bodies = [Followed(world.carol, world.bob), Followed(world.carol, world.alice)]
    first, second = [event.number for event in await append_events(world.graph, bodies)]
    for watermark, waiting in ((first - 1, {first, second}), (first, {second}), (second, set())):
        await world.raw.set(keys.WATERMARK, watermark)

        await world.graph.archiver.work()

        assert {first, second} - {row.number for row in await world.rows()} == waiting
    await world.check()


async def test_damaged_entries_are_passed(world: ArchiveWorld) -> None:
    """An entry without the fields of an event has no row; an entry with a damaged body has a row without a body."""
    await world.graph.archiver.work()
    before = [row.number for row in await world.rows()]
    await world.raw.xadd(keys.LOG, {"kind": "Followed"})
    bad = await world.raw.xadd(keys.LOG, {"kind": "ProfileChanged", "actor": world.bob, "body": "{"})
    await world.raw.xadd(keys.LOG, {"what": "ever"})
    last = await mark_projected(world)

    await world.graph.archiver.work()

    assert await world.watermarks() == [last, last, last]
    [row] = [row for row in await world.rows() if row.number not in before]
    assert row == EventRow(number_of(str(bad)), "ProfileChanged", world.bob, None, None)


@pytest.mark.parametrize("field", ["kind", "actor", "body", "another"])
async def test_bytes_that_are_no_text_are_passed(world: ArchiveWorld, field: str) -> None:
    """The worker and the archiver skip an entry that was corrupted on disk, and keep it as a dead letter."""
    fields: dict[Any, Any] = {"kind": "ProfileChanged", "actor": world.bob, "body": '{"name":"Bob"}'}
    bad = await world.raw.xadd(keys.LOG, fields | {field: b"Pro\xff\x95file"})
    [good] = await posts(world.graph, world.bob, "good")

    await world.archive()

    assert good in [row.number for row in await world.rows()]
    assert (await world.graph.archive.state()).watermark >= good
    letters = [letter async for letter in world.graph.dead_letters.all()]
    assert [letter.entry for letter in letters] == ([] if field == "another" else [str(bad)])


async def test_a_full_batch_of_damaged_entries_is_passed(world: ArchiveWorld) -> None:
    """After an event that the archive refuses, batches are small."""
    await world.graph.archiver.work()
    await world.sql(
        "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.body LIKE '%poison%' "
        "BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
    )
    [refused] = await posts(world.graph, world.bob, "poison")
    for _ in range(6):
        await world.raw.xadd(keys.LOG, {"what": "ever"})
    [good] = await posts(world.graph, world.bob, "good")
    last = await mark_projected(world)

    await asyncio.wait_for(world.graph.archiver.work(), PATIENCE)

    assert await world.watermarks() == [last, last, last]
    assert [row.kind for row in await world.rows() if row.number >= refused] == ["Redacted", "PostPublished"]
    assert last == good


async def test_the_archiver_stops_at_an_event_of_an_unknown_kind(world: ArchiveWorld) -> None:
    """It archives all events before the unknown one and reports the kind. A later version will archive the event."""
    before = await world.graph.log.last()
    unknown = await world.raw.xadd(keys.LOG, {"kind": "PostPinned", "actor": 1, "subject": 2, "body": "{}"})
    await posts(world.graph, world.bob, "later")
    last = await mark_projected(world)

    with pytest.raises(ArchiverStopped, match=f"'PostPinned' of event {number_of(str(unknown))}. Upgrade"):
        await world.graph.archiver.work()

    assert await world.watermarks() == [before, last, before]


async def test_the_archiver_stops_if_the_archive_holds_another_event(world: ArchiveWorld) -> None:
    """Nothing is written."""
    await world.graph.archiver.work()
    changed = world.posts[world.carol][0]
    await world.sql("UPDATE events SET body = :body WHERE number = :number", body='{"text":"other"}', number=changed)
    await world.publish(world.bob, 1, drain=True)
    before, rows = await world.watermarks(), await world.rows()
    await world.raw.set(keys.ARCHIVED, 0)

    for _ in range(2):
        with pytest.raises(ConflictingEvent, match=str(changed)):
            await world.graph.archiver.work()

    assert (await world.watermarks())[1:] == before[1:]
    assert await world.rows() == rows


async def test_a_running_archiver_raises_the_alarm_when_it_stops(
    world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archiver releases its lease, so that another process, perhaps of a later version, can try."""
    monkeypatch.setattr("graph.archiver.archiver.RETRY_SECONDS", 0.01)
    await world.raw.xadd(keys.LOG, {"kind": "PostPinned", "actor": 1, "body": "{}"})
    await mark_projected(world)

    async with background(world.graph.archiver.run()), asyncio.timeout(PATIENCE):
        while not world.graph.archiver.failures:  # noqa: ASYNC110 - the archiver sends no notification
            await asyncio.sleep(0.01)

    assert "'PostPinned'" in str(await world.raw.get(keys.ALARM))
    assert 0 < await world.raw.ttl(keys.ALARM) <= 60


async def test_only_one_running_archiver_is_active(world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another archiver takes over when the lease of the first has expired."""
    monkeypatch.setattr("graph.archiver.archiver.INTERVAL_SECONDS", 0.01)
    await world.raw.set(keys.ARCHIVER, "another")
    async with background(world.graph.archiver.run()), asyncio.timeout(PATIENCE):
        await asyncio.sleep(0.1)
        assert await world.rows() == []

        await world.raw.delete(keys.ARCHIVER)
        while not world.graph.archiver.archived:  # noqa: ASYNC110 - the archiver sends no notification
            await asyncio.sleep(0.01)
        assert await world.raw.get(keys.ARCHIVER) not in (None, "another")

    assert await world.raw.get(keys.ARCHIVER) is None, "an archiver that ends gives up its lease"


@pytest.mark.parametrize("failure", [ArchiveUnavailable("no answer"), RuntimeError("a bug")])
async def test_an_archiver_that_fails_lets_another_one_try(
    world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """A process that cannot reach the archive does not stop other processes from archiving."""
    monkeypatch.setattr("graph.archiver.archiver.INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr("graph.archiver.archiver.RETRY_SECONDS", 0.01)
    broken = world.process()
    Fault(broken.store, lambda command: command[0] == "ARCHIVE", failure, times=10_000)
    async with background(broken.archiver.run()), asyncio.timeout(PATIENCE):
        while not broken.archiver.failures:  # noqa: ASYNC110 - the archiver sends no notification
            await asyncio.sleep(0.01)
        async with background(world.graph.archiver.run()):
            while not world.graph.archiver.archived:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_password_hashes_are_archived_but_are_not_in_events(world: ArchiveWorld) -> None:
    [quiet] = await crowd(world.graph, 1)
    await world.archive()

    users = {"alice": world.alice, "bob": world.bob, "carol": world.carol}
    found = await world.graph.archive.credentials([*users.values(), quiet])

    for login, user in users.items():
        secret = str(await world.raw.hget(keys.login(login), "secret"))
        assert secret.startswith("$argon2id$")
        assert found.pop(user) == Credential(user, login, secret, user)
    assert found == {quiet: Credential(quiet, "fan0", None, quiet)}, "a user without a password has no hash"
    assert [row for row in await world.rows() if "argon2" in (row.body or "")] == []


async def test_a_changed_password_is_archived(world: ArchiveWorld) -> None:
    """The change is archived even in one batch with the sign-up, and after a failover has lost its projection."""
    await world.graph.passwords.change(world.alice, PASSWORD, "a new password")
    await world.archive()
    await world.graph.passwords.change(world.alice, "a new password", "a newer password")
    await world.graph.passwords.change(world.bob, PASSWORD, "a new password")
    secret = str(await world.raw.hget(keys.login("bob"), "secret"))
    lost = str(await world.raw.hget(keys.login("bob"), "secret:at"))
    await world.raw.hdel(keys.login("bob"), "secret:at")

    await world.archive()

    found = await world.graph.archive.credentials([world.alice, world.bob])
    held = await world.raw.hgetall(keys.login("alice"))
    assert found[world.alice] == Credential(world.alice, "alice", str(held["secret"]), int(held["secret:at"]))
    assert found[world.bob] == Credential(world.bob, "bob", secret, int(lost))
    assert [row for row in await world.rows() if "argon2" in (row.body or "")] == []


async def test_a_sign_up_that_lost_its_login_has_no_credentials(world: ArchiveWorld) -> None:
    """The sign-up's event is archived, and a rebuild treats it as void."""
    await world.graph.users.claim_many([("erin", "winner", None)])
    sign_ups = [UserCreated("erin", "Erin", nonce) for nonce in ("loser", "winner", "winner")]
    lost, won, second = [event.number for event in await append_events(world.graph, sign_ups)]

    await world.archive()

    assert set(await world.graph.archive.credentials([lost, won, second])) == {won}
    assert {lost, won, second} <= {row.number for row in await world.rows()}


async def test_a_sign_up_is_settled_before_it_is_archived(world: ArchiveWorld) -> None:
    """A failover of the login's shard has lost the projection, and the claim would otherwise expire."""
    await world.graph.users.claim_many([("erin", "nonce", "hash")])
    [event] = await append_events(world.graph, [UserCreated("erin", "Erin", "nonce")])
    await mark_projected(world)

    await world.graph.archiver.work()

    assert await world.graph.archive.credentials([event.number]) == {
        event.number: Credential(event.number, "erin", "hash", event.number)
    }
    assert await world.raw.hget(keys.login("erin"), "user") == str(event.number)
    assert await world.raw.ttl(keys.login("erin")) == -1
