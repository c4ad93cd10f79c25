"""The projection of lists of users. All keys of a list are in the slot of its owner, so one script applies an event."""

from collections.abc import Sequence
from typing import TypeAlias

from graph import keys
from graph.log.events import ListChanged, ListCreated, ListDeleted
from graph.store.batches import send_in_batches
from graph.store.commands import Command, Word, script
from graph.store.store import Store

ListEvent: TypeAlias = ListCreated | ListChanged | ListDeleted


async def change_lists(store: Store, events: Sequence[tuple[int, ListEvent]], trim_up_to: int) -> None:
    """Create, change and delete lists. One round trip for every 500 events.

    Tombstones with numbers up to `trim_up_to` are trimmed.
    """
    await send_in_batches(store, [change(number, body, trim_up_to) for number, body in events])


def change(number: int, body: ListEvent, trim_up_to: int) -> Command:
    """Return the command that applies one event."""
    list_id = number if isinstance(body, ListCreated) else body.list_id
    members = keys.list_members(body.owner, list_id)
    names = [keys.lists(body.owner), keys.gone(keys.lists(body.owner)), keys.list_names(body.owner)]
    return script("change_list").call([*names, members, keys.gone(members)], list_id, number, *words(body, trim_up_to))


def words(body: ListEvent, trim_up_to: int) -> list[Word]:
    """Return the arguments of the script that depend on the event."""
    match body:
        case ListCreated(_, name, members):
            return ["create", trim_up_to, name, len(members), *members]
        case ListChanged(_, _, name, added, removed):
            return ["change", trim_up_to, name or "", len(added), *added, *removed]
        case ListDeleted():
            return ["delete", trim_up_to, "", 0]
