"""The projection of deleted accounts.

A process may stop between any two steps, and earlier events of the user may be projected later. So the profile, which
contains the login, is replaced last, by a tombstone that makes all scripts of its slot do nothing. The login is
reserved before it is freed: a sign-up that has claimed a login and then finds no reservation may keep the login.
"""

from collections.abc import Sequence

from graph import keys
from graph.log.account_events import UserDeleted, UserErased
from graph.post_lists import REPLIED, TIMELINE
from graph.projections.accounts import free_login, hide
from graph.relations.versioned_sets import set_keys
from graph.store.batches import send_in_batches
from graph.store.commands import Command, script
from graph.store.store import Store


async def delete_users(store: Store, events: Sequence[tuple[int, UserDeleted]]) -> None:
    """Reserve and free the logins of users, hide the users, and end their sessions.

    Four round trips if there are events.
    """
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
    """Delete the remaining data in the slots of erased users, and note that nothing is left to erase.

    Two round trips if there are events. The sets of a user keep only their floors, so that late events change nothing.
    """
    if not events:
        return
    await send_in_batches(store, [erase(number, body.user) for number, body in events])
    await send_in_batches(store, [note([(body.user, -number) for number, body in events])])


def erase(number: int, user: int) -> Command:
    """Return the command that deletes the remaining data in the slot of an erased user."""
    sets = [name for key in keys.USER_SETS for name in set_keys(key, user)]
    others = [keys.held(keys.following(user)), keys.held(keys.followers(user)), keys.list_names(user)]
    others += [post_list.cold(user) for post_list in (TIMELINE, REPLIED)]
    others += [keys.delivery(user), keys.home(user), keys.sessions(user), keys.session_details(user)]
    names = [keys.notifications(user), keys.notifications_read(user), *sets, *others]
    return script("erase_user").call(names, number, 2 + len(sets))


def note(numbers: Sequence[tuple[int, int]]) -> Command:
    """Return the command that notes users as deleted, or as erased (negative numbers), for appends and the eraser."""
    return script("note_deleted").call([keys.DELETED, keys.ERASING], *(word for pair in numbers for word in pair))
