"""The laws of every relation of the register, each with histories of its own events.

`tests/graph/fold`, `tests/graph/projections`, `tests/graph/rebuild` and `tests/graph/repair` test the same laws for all
events together.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.expected.event_folds import fold
from graph.expected.stored import stored
from graph.fold.content import Content
from graph.log.account_events import UserDeleted, UserErased, login_hash
from graph.log.events import Event, EventBody, ListChanged, ListCreated, ListDeleted, UserCreated
from graph.rebuild.rebuild import Rebuild
from graph.relations.register import FOLLOWS_AND_BLOCKS, LISTS, PAIRS, RELATIONS
from tests.graph.fold.histories import USERS, members_of, shuffled, user_id
from tests.graph.fold.test_fold import SECRETS, projected
from tests.graph.rebuild.stores import content, empty_store, opened, signed_up, write_archive
from tests.graph.rebuild.test_content import FOREVER
from tests.support.erasures import ends_of
from tests.support.raw import open_raw

KINDS: dict[str, Collection[type[Any]]] = {
    "follows and blocks": FOLLOWS_AND_BLOCKS.kinds,
    "lists": LISTS.kinds,
    **{each.noun: (each.begun, each.ended) for each in PAIRS.pair_sets},
}
EXAMPLES = 3


def test_every_relation_has_its_laws_tested() -> None:
    assert {kind for kinds in KINDS.values() for kind in kinds} == {kind for each in RELATIONS for kind in each.kinds}


@st.composite
def histories_of(draw: st.DrawFn, relation: str) -> list[Event]:
    """Return sign-ups of a few users, and many events of one relation between them."""
    events = signed_up(USERS)
    created: list[tuple[int, int]] = []
    users = st.integers(0, USERS - 1).map(user_id)
    for _ in range(draw(st.integers(10, 40))):
        number, user, other = user_id(len(events)), draw(users), draw(users)
        if relation == "lists":
            body: EventBody = draw(list_changes(user, other, created))
            created += [(number, user)] if isinstance(body, ListCreated) else []
        elif relation == "follows and blocks":
            body = draw(st.sampled_from(FOLLOWS_AND_BLOCKS.kinds))(user, other)
        else:
            [pair_set] = [each for each in PAIRS.pair_sets if each.noun == relation]
            body = pair_set.body_of(user, draw(members_of(pair_set)), begins=draw(st.booleans()))
        events.append(Event(number, body))
    return events


@st.composite
def list_changes(draw: st.DrawFn, user: int, other: int, created: Sequence[tuple[int, int]]) -> EventBody:
    """Return the creation of a list, or a change or deletion of a created one."""
    kind = draw(st.sampled_from(["create", "add", "add", "remove", "rename", "delete"])) if created else "create"
    if kind == "create":
        return ListCreated(user, "list", (other,))
    list_id, owner = draw(st.sampled_from(created))
    changes: dict[str, dict[str, Any]] = {
        "add": {"added": (other,)},
        "remove": {"removed": (other,)},
        "rename": {"name": f"list {other}"},
    }
    return ListDeleted(owner, list_id) if kind == "delete" else ListChanged(owner, list_id, **changes[kind])


def keys_of(events: list[Event]) -> dict[str, Any]:
    """Return the keys that the events store, without those of the sign-ups."""
    signed_up = [each for each in events if isinstance(each.body, UserCreated)]
    without = dict(stored(fold(Content(secrets=SECRETS), signed_up)))
    return {key: value for key, value in stored(fold(Content(secrets=SECRETS), events)) if key not in without}


@pytest.mark.parametrize("relation", KINDS)
def test_order_repetition_pages_and_the_way_do_not_matter(
    store_url: str, tmp_path: Path, relation: str, long_profile: bool
) -> None:
    """Fold, projections, a rebuild in pages or as a whole, and a repair of a store without the relation all agree."""

    @settings(max_examples=500 if long_profile else EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data(), histories_of(relation), st.integers(1, USERS), st.integers(2, 6))
    def run(data: st.DataObject, events: list[Event], users: int, rows: int) -> None:
        expected, mixed = keys_of(events), data.draw(shuffled(events))
        assert keys_of([each for batch in mixed for each in batch]) == expected
        found = asyncio.run(projected(store_url, mixed))
        assert {key: value for key, value in found.items() if key in expected} == expected
        archive = tmp_path / "archive.sqlite"
        for suffix in ("", "-wal", "-shm"):
            archive.with_name(archive.name + suffix).unlink(missing_ok=True)
        asyncio.run(check_restored(store_url, f"sqlite:///{archive}", events, expected, users, rows))

    run()


async def check_restored(
    url: str, archive_url: str, events: list[Event], expected: dict[str, Any], users: int, rows: int
) -> None:
    """Assert that a rebuild in pages, one as a whole, and a repair of what was lost give the expected keys."""
    await empty_store(url)
    graph = await opened(url, archive_url, FOREVER)
    try:
        await write_archive(graph.archive, events)
        await Rebuild(graph.store, graph.archive, FOREVER, users=users, rows=rows).run()
        paged = await content(url)
        assert {key: value for key, value in paged.items() if key in expected} == expected

        async with open_raw(url) as raw:
            for key in expected:
                await raw.delete(key)
        graph.binding.forget()
        await replace(graph.repair(), timeout=0.0).run(correct=True)  # no worker runs that it could wait for
        live = {key: value for key, value in expected.items() if not key.endswith(":gone")}
        found = await content(url)
        assert {key: value for key, value in found.items() if key in live} == live
        assert (await replace(graph.repair(), timeout=0.0).run(correct=False)).clean

        await empty_store(url)
        await Rebuild(graph.store, graph.archive, FOREVER).run()
        assert await content(url) == paged
    finally:
        await graph.close()


@pytest.mark.parametrize("relation", KINDS)
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_an_erasure_leaves_nothing(data: st.DataObject, relation: str) -> None:
    """Nothing is left in the user's own keys, or of the user in the keys of others."""
    events = data.draw(histories_of(relation))
    user = user_id(data.draw(st.integers(0, USERS - 2)))
    bodies = [UserDeleted(user, login_hash("user")), *ends_of(user, events), UserErased(user)]
    events += [Event(user_id(100 + place), body) for place, body in enumerate(bodies)]

    for key, value in keys_of(events).items():
        if key.endswith(":gone") or not isinstance(value, dict):
            continue
        members = {member for member in value if member != "f"}
        assert not members or f"{{{user}}}" not in key or key.startswith("user:"), key
        assert str(user) not in members or key.startswith("{"), key
