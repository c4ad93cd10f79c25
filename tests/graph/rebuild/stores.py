"""Stores to rebuild: their content, and how to lose it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from graph import Graph
from graph.archive.archive import Archive
from graph.archive.event_rows import event_row
from graph.archive.rows import Credential
from graph.log.events import Event, ProfileChanged, UserCreated
from graph.model import Location, Permission
from graph.store.store import Store
from graph.tuning import Tuning
from tests.graph.fold.histories import user_id
from tests.support.graph_worlds import PASSWORD, many_posts, people, posts, state
from tests.support.graphs import CHEAP, execute_at_once
from tests.support.raw import open_raw

AVATAR = "https://example.org/a.png"
SMALL = replace(CHEAP, hot_posts=4, hot_slack=0, hot_newest=2, push_limit=2)
"""A few posts fill the hot window, and three followers require pull."""

NOT_REBUILT = ("{log}", "{suspended}:version", "home:", "session:", "attempts:", "networks:", "rate:")


async def opened(url: str, archive_url: str, tuning: Tuning = SMALL, store: type[Store] = Store) -> Graph:
    """Open a graph on a store and an archive."""
    archive = Archive(archive_url)
    if archive.database.kind == "sqlite":
        execute_at_once(archive)
    return await Graph.open(url, archive, tuning, partial(store, single_slot=True))


async def empty_store(url: str) -> None:
    """Lose the store."""
    async with open_raw(url) as raw:
        await raw.flushall()


async def content(url: str) -> dict[str, Any]:
    """Return the content that a rebuild must restore, without differences that readers cannot see."""
    async with open_raw(url) as raw:
        found = await state(raw, NOT_REBUILT)
    for key, value in list(found.items()):
        if key.startswith("login:"):
            value.pop("winner", None)
        if key.startswith("delivery:") and value.startswith("pull:"):
            found[key] = "pull"
        if (key.startswith("posts:") and value == {"f": 0}) or (key.startswith("cold:") and value == "0"):
            del found[key]
    return found


async def populate(graph: Graph) -> list[int]:
    """Use every kind of event through the API, archive all of them, and return the users' ids."""
    users = await people(graph, "alice", "bob", "carol", "dave", "erin")
    alice, bob, carol, dave, erin = users
    await graph.passwords.change(bob, PASSWORD, "a new password")
    await graph.users.update_profile(alice, name="Alice the second", bio="é\n")
    await graph.commit([ProfileChanged(alice, avatar_url=AVATAR)])  # older versions did not check the host
    await graph.users.grant(bob, Permission.FIREHOSE)
    await graph.users.grant(carol, Permission.FIREHOSE)
    await graph.users.revoke(carol, Permission.FIREHOSE)
    await graph.moderation.suspend(erin)
    await graph.moderation.suspend(dave)
    await graph.moderation.unsuspend(dave)
    for follower in (bob, carol, dave):
        await graph.follows.follow(follower, [alice, *users[:2]])
    await graph.follows.unfollow(bob, [alice])
    await graph.follows.follow(bob, [alice])
    await graph.follows.unfollow(carol, [bob])
    await many_posts(graph, alice, 7)
    published = await posts(graph, bob, "first", "second", "third")
    located = await graph.posts.publish(bob, "here", platform="Web", location=Location(-12.5, 1e-07))
    await graph.posts.delete(bob, published[1])
    await graph.posts.delete(alice, (await many_posts(graph, alice, 2))[0])
    only = await posts(graph, dave, "only")
    await graph.posts.delete(dave, only[0])
    assert located.id > published[2]
    await archive_all(graph)
    return users


async def archive_all(graph: Graph) -> None:
    """Project and archive every event."""
    await graph.worker().drain()
    while (await graph.archive.state()).watermark < await graph.log.last():
        await graph.archiver.work()


async def write_archive(archive: Archive, events: Sequence[Event], passwords: dict[int, str] | None = None) -> None:
    """Write events into an unused archive, as the archiver of another store would."""
    assert await archive.bind("lost", replacing=None, unused_only=True)
    credentials = [
        Credential(event.number, event.body.login, (passwords or {}).get(event.number), event.number)
        for event in events
        if isinstance(event.body, UserCreated)
    ]
    rows, up_to = list(map(event_row, events)), max(event.number for event in events)
    await archive.append(rows, credentials, store="lost", watermark=0, up_to=up_to)


def signed_up(users: int) -> list[Event]:
    """Return sign-ups."""
    return [Event(user_id(place), UserCreated(f"user{place}", "", f"nonce{place}")) for place in range(users)]
