"""The projection of accounts: users, profiles, permissions, passwords, suspensions and sessions."""

import secrets
from collections.abc import Sequence

import orjson

from graph import keys
from graph.log.events import (
    PasswordChanged,
    PermissionGranted,
    PermissionRevoked,
    ProfileChanged,
    SessionsEnded,
    UserCreated,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.store.batches import send_in_batches
from graph.store.commands import Command, script
from graph.store.store import Store

USERS_PER_SCRIPT = 1000


async def create_users(store: Store, events: Sequence[tuple[int, UserCreated]]) -> None:
    """Bind logins to new users and write the profiles of the users who won their login. Two round trips.

    If a user is deleted, a third round trip frees the login again.
    """
    groups = list(store.together(events, lambda event: keys.login(event[1].login), USERS_PER_SCRIPT))
    commands = []
    for group in groups:
        words = [word for number, body in group for word in (body.nonce, number)]
        commands.append(script("settle_login").call([keys.login(body.login) for _, body in group], "", *words))
    replies = await send_in_batches(store, commands)
    won = [
        event
        for group, outcomes in zip(groups, replies, strict=True)
        for event, outcome in zip(group, outcomes, strict=True)
        if outcome == "won"
    ]
    deleted = await _set_profiles(
        store,
        [
            (number, [str(number), "id", str(number), "login", body.login, "name", body.name, "bio", body.bio])
            for number, body in won
        ],
    )
    await send_in_batches(store, [free_login(body.login, number) for number, body in won if number in deleted])


def free_login(login: str, user: int) -> Command:
    """Return the command that deletes the login of a deleted user."""
    return script("free_login").call([keys.login(login), keys.attempts(login), keys.networks(login)], user)


async def change_profiles(store: Store, events: Sequence[tuple[int, ProfileChanged]]) -> None:
    """Set the fields that the events change. One round trip."""
    await _set_profiles(
        store,
        [
            (body.user, [str(number), *(word for change in body.changes() for word in change)])
            for number, body in events
        ],
    )


async def _set_profiles(store: Store, changes: Sequence[tuple[int, list[str]]]) -> set[int]:
    """Set fields of profiles, and return the users who are deleted.

    A change is a user and a flat list: the event's number, then fields and values.
    """
    groups = list(store.together(changes, lambda change: keys.user(change[0]), USERS_PER_SCRIPT))
    commands = []
    for group in groups:
        names = [keys.user(user) for user, _ in group]
        commands.append(script("set_profile").call(names, orjson.dumps([words for _, words in group])))
    replies = await send_in_batches(store, commands)
    return {group[place - 1][0] for group, places in zip(groups, replies, strict=True) for place in places}


async def change_permissions(store: Store, events: Sequence[tuple[int, PermissionGranted | PermissionRevoked]]) -> None:
    """Grant and revoke permissions. One round trip."""
    commands = []
    for group in store.together(events, lambda event: keys.user(event[1].user), USERS_PER_SCRIPT):
        names = [keys.user(body.user) for _, body in group]
        words = [
            word
            for number, body in group
            for word in (keys.permission(body.permission), number if isinstance(body, PermissionGranted) else -number)
        ]
        commands.append(script("set_permission").call(names, *words))
    await send_in_batches(store, commands)


async def change_passwords(store: Store, events: Sequence[tuple[int, PasswordChanged]]) -> None:
    """Set the new password hashes, and then end the sessions that began with earlier passwords. Two round trips."""
    settle, end = script("settle_secret"), script("end_old_sessions")
    await send_in_batches(
        store,
        [
            settle.call([keys.login(body.login), keys.next_secret(body.login, body.nonce)], body.user, number)
            for number, body in events
        ],
    )
    await send_in_batches(
        store,
        [
            end.call([keys.user(body.user), keys.sessions(body.user), keys.session_details(body.user)], number)
            for number, body in events
        ],
    )


async def change_suspensions(store: Store, events: Sequence[tuple[int, UserSuspended | UserUnsuspended]]) -> None:
    """Suspend users and end their sessions, and lift suspensions. One round trip.

    The user's key decides whether a session may begin. Processes learn from the shared hash which users are hidden.
    """
    changes = [(body.user, number if isinstance(body, UserSuspended) else -number) for number, body in events]
    suspend = script("suspend")
    commands = [
        suspend.call([keys.user(user), keys.sessions(user), keys.session_details(user)], number)
        for user, number in changes
    ]
    if changes:
        commands.append(hide(changes))
    await send_in_batches(store, commands)


def hide(changes: Sequence[tuple[int, int]]) -> Command:
    """Return the command that updates the hash of suspended users. A negative number ends a suspension."""
    words = [word for change in changes for word in change]
    return script("set_suspended").call([keys.SUSPENDED, keys.SUSPENDED_VERSION], secrets.token_hex(8), *words)


async def end_sessions(store: Store, events: Sequence[tuple[int, SessionsEnded]]) -> None:
    """Delete the sessions that the events name. One round trip."""
    commands: list[Command] = []
    for _, body in events:
        if body.sessions:
            details = [field for session in body.sessions for field in keys.session_fields(session)]
            commands.append(("HDEL", keys.sessions(body.user), *body.sessions))
            commands.append(("HDEL", keys.session_details(body.user), *details))
    await send_in_batches(store, commands)
