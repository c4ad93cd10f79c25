"""The export of a user's data: every kind of event, from the archive and from the log, each once."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from graph import Graph
from graph.export import ABOUT_USER, WITHHELD, Line, concerns
from graph.log.encoding import KINDS
from graph.log.events import Event, EventBody
from tests.graph.log.test_events import ENCODINGS
from tests.support.graph_worlds import PASSWORD, append_events, archive_log, befriend, people, posts

BODIES: dict[str, EventBody] = {encoded.kind: body for body, encoded in ENCODINGS}
OTHERS_DATA = {
    "ListChanged",
    "ListDeleted",
    "Reported",
    "ReportsClosed",
    "Liked",
    "Bookmarked",
    "BookmarkRemoved",
    "Unliked",
    "PostDeleted",
    "Blocked",
    "Unblocked",
    "Muted",
    "Unmuted",
    "Reposted",
    "Unreposted",
}
"""Kinds with a subject that are exported for their actor only: the subject is a post, or a user who must not know."""


async def exported(graph: Graph, user: int) -> list[Line]:
    """Return the lines of an export, which are JSON."""
    lines = [line async for line in graph.export().lines(user)]
    assert json.loads(json.dumps(lines)) == lines
    return lines


def kinds(lines: list[Line]) -> list[str]:
    """Return the kinds of lines."""
    return [line["kind"] for line in lines]


async def test_everything_of_a_user_is_exported(graph: Graph) -> None:
    """Archived or not, the lines are the same. Actions of others are left out, except follows of the user."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    first, second = await posts(graph, alice, "the first", "the second 你好")
    await posts(graph, bob, "by bob")
    await graph.posts.delete(alice, second)
    await befriend(graph, alice, bob)
    await befriend(graph, bob, alice)
    await befriend(graph, carol, bob)
    await graph.follows.unfollow(alice, [bob])
    await graph.users.update_profile(alice, bio="hi", website_url="https://example.org")
    await graph.sessions.start(alice, "Phone")

    in_log = await exported(graph, alice)
    await graph.worker().drain()
    await archive_log(graph)
    in_archive = await exported(graph, alice)

    assert in_log[0] == in_archive[0]
    assert (in_log[0]["kind"], in_log[0]["login"], in_log[0]["website_url"]) == (
        "Profile",
        "alice",
        "https://example.org",
    )
    assert (in_log[1]["kind"], in_log[1]["user_agent"]) == ("Session", "Phone")
    expected = {"UserCreated", "PostPublished", "PostDeleted", "Followed", "Unfollowed", "ProfileChanged"}
    assert set(kinds(in_log[2:])) == set(kinds(in_archive[2:])) == expected
    texts = {line["text"] for line in in_archive if line["kind"] == "PostPublished"}
    assert texts == {"the first"}
    follows = {(line["follower"], line["followee"]) for line in in_archive if line["kind"] == "Followed"}
    assert follows == {(alice, bob), (bob, alice)}
    numbers = [line["id"] for line in in_archive[2:]]
    assert len(set(numbers)) == len(numbers)
    assert set(numbers) == {line["id"] for line in in_log[2:]} - {second}
    assert first in numbers


async def test_archived_posts_are_exported_in_pages(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that are archived during the export are exported too, each once."""
    monkeypatch.setattr("graph.export.PAGE", 3)
    [alice] = await people(graph, "alice")
    ids = await posts(graph, alice, *map(str, range(8)))
    await graph.worker().drain()
    await archive_log(graph)
    found = []
    async for line in graph.export().lines(alice):
        if line["kind"] == "PostPublished":
            found.append(line["id"])
            if len(found) == 4:
                ids += await posts(graph, alice, "meanwhile")
                await graph.worker().drain()
                await archive_log(graph)
                ids += await posts(graph, alice, "later")

    assert found == ids


async def test_what_ends_during_an_export_is_exported_once(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind of its archive row changes before or after the row is read."""
    monkeypatch.setattr("graph.export.PAGE", 1)
    alice, bob = await people(graph, "alice", "bob")
    liked = await posts(graph, bob, "1", "2", "3")
    for post in liked:
        await graph.likes.like(alice, post)
    await graph.worker().drain()
    await archive_log(graph)
    found: list[tuple[str, int]] = []
    async for line in graph.export().lines(alice):
        found += [(line["kind"], line["post"])] if line["kind"] in ("Liked", "Unliked") else []
        if len(found) == 1:
            for post in liked[:2]:
                await graph.likes.unlike(alice, post)
            await graph.worker().drain()
            await archive_log(graph)

    assert sorted(found) == [*(("Liked", post) for post in liked), *(("Unliked", post) for post in liked[:2])]


async def test_an_unknown_user_has_no_lines(graph: Graph) -> None:
    await people(graph, "alice")
    assert await exported(graph, 7) == []


async def test_no_secret_is_exported(graph: Graph) -> None:
    """No hash, no nonce and no session id is exported."""
    [alice] = await people(graph, "alice")
    session = await graph.passwords.change(alice, PASSWORD, "a new password")
    await graph.sessions.end(alice, session.id)
    last = await graph.sessions.start(alice)

    text = json.dumps(await exported(graph, alice))

    assert all(word not in text for word in ("argon2", "nonce", session.id, last.id))


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"ReportsClosed", "StoreRepaired", "UserDeleted", "UserErased"}))
async def test_every_kind_of_event_is_exported(graph: Graph, kind: str) -> None:
    """It is exported for the user who acted, from the log and the archive, with all fields that are not withheld.

    A deleted user has no export.
    """
    [alice] = await people(graph, "alice")
    body: Any = BODIES[kind]
    if kind == "UserCreated":
        number = alice
    else:
        [event] = await append_events(graph, [replace(body, **{body.ACTOR: alice})])
        number = event.number
        assert concerns(event, alice)
    for archived in (False, True):
        if archived:
            await graph.worker().drain()
            await archive_log(graph)
        [line] = [line for line in await exported(graph, alice) if line.get("id") == number and line["kind"] == kind]
        names = {field.name for field in fields(body)} - {body.ACTOR, body.SUBJECT} - WITHHELD
        given = {name for name in names if getattr(body, name) not in (None, (), False)}
        assert given - {"bio", "terms"} <= set(line), kind


def test_each_kind_with_a_subject_is_the_data_of_known_users() -> None:
    """A new kind with a subject must be added to `ABOUT_USER` if its events are also data of the subject."""
    with_subject = {kind for kind, body in KINDS.items() if body.SUBJECT is not None}
    assert with_subject <= set(ABOUT_USER) | OTHERS_DATA
    assert not set(ABOUT_USER) & OTHERS_DATA


def test_an_event_of_another_user_does_not_concern_a_user() -> None:
    assert [kind for kind, body in BODIES.items() if concerns(Event(99, body), 98)] == []
