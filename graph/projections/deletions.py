"""The projection of deleted accounts.

A process may stop between any two steps, and earlier events of the user may be projected later. So the profile, which
tells the login, is replaced last, by a tombstone at which all scripts of its slot stop. The login is reserved before it
is free: a sign-up that has claimed a login and then finds no reservation may have the login.
"""

from collections.abc import Sequence

from graph import keys
from graph.log.account_events import UserDeleted, UserErased
from graph.projections.accounts import free_login, hide
from graph.projections.batches import send_in_batches
from graph.store.commands import Command, script
from graph.store.store import Store


async def delete_users(store: Store, events: Sequence[tuple[int, UserDeleted]]) -> None:
    """Reserve and free the logins of users, hide the users, and end their sessions. Four round trips, if any."""
    if not events:
        return
    logins = await store.read([("HGET", keys.user(body.user), "login") for _, body in events])
    reserve, delete = script("set"), script("delete_user")
    await send_in_batches(store, [reserve.call([keys.reserved(body.login_hash)], n, 0) for n, body in events])
    freed = [free_login(login, body.user) for login, (_, body) in zip(logins, events, strict=True) if login is not None]
    numbers = [(body.user, number) for number, body in events]
    await send_in_batches(store, [*freed, hide(numbers)])
    tombstones = [
        delete.call([keys.user(user), keys.sessions(user), keys.session_details(user)], number)
        for user, number in numbers
    ]
    await send_in_batches(store, [*tombstones, note(numbers)])


async def finish_users(store: Store, events: Sequence[tuple[int, UserErased]]) -> None:
    """Note that nothing of the users is left to erase. One round trip, if any."""
    if events:
        await store.send([note([(body.user, -number) for number, body in events])])


def note(numbers: Sequence[tuple[int, int]]) -> Command:
    """Return the command that notes deleted users for appends and for the erasure; negative numbers: erased ones."""
    return script("note_deleted").call([keys.DELETED, keys.ERASING], *(word for pair in numbers for word in pair))
