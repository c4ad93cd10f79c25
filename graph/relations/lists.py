"""Lists of users: which lists a user has, their names, and their members. `graph.relations.list_changes` projects them.

Events about a list are few and concern many members, so the lists of one user are folded together.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from graph import keys
from graph.fold.content import Content, Part, UserLists
from graph.fold.reading import EventReader, FoldedBatch, last_number, names_of
from graph.fold.values import Hash, Stored, versioned_set_keys
from graph.log.events import EventBody, ListChanged, ListCreated, ListDeleted
from graph.relations.relation import KeyCommand, Relation
from graph.store.commands import Command
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive


class ListMemberships(Relation):
    """The lists of users and their members. Only the owner of a list sees it."""

    kinds = (ListCreated, ListChanged, ListDeleted)

    def fold(self, content: Content, number: int, body: ListCreated | ListChanged | ListDeleted) -> None:
        """Create, change or delete a list. A deletion replaces it with a tombstone."""
        if not content.includes(Part.LISTS, body.owner):
            return
        lists = content.lists.setdefault(body.owner, UserLists())
        match body:
            case ListCreated(_, name, members):
                lists.lists.add(number, number)
                lists.change(number, number, name, members)
            case ListChanged(_, list_id, name, added, removed):
                lists.change(list_id, number, name, added, removed)
            case ListDeleted(_, list_id):
                lists.delete(list_id, number)

    def stored(self, content: Content, tombstones_after: int) -> Stored:
        """Yield the keys of the lists."""
        for owner, lists in content.lists.items():
            yield from versioned_set_keys(keys.lists, owner, lists.lists, tombstones_after)
            if lists.names:
                yield keys.list_names(owner), list_names(lists)
            for list_id, members in lists.members.items():
                yield from versioned_set_keys(partial(keys.list_members, owner), list_id, members, tombstones_after)

    async def batches(self, reader: EventReader, users: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the lists of users. The lists of one user are in one batch: the last event about a member decides."""
        whole: FoldedBatch | None = None
        kinds = names_of(self.kinds)
        async for owners, rows, is_page in reader.pages(reader.archive.by_actor, users, kinds):
            if whole is not None and (not is_page or not whole.content.includes(Part.LISTS, owners[0])):
                yield whole
                whole = None
            whole = whole or FoldedBatch(Content(owners, parts=[Part.LISTS]), self.fold)
            whole.add(rows)
        if whole is not None:
            yield whole

    def replacements(self, content: Content) -> Iterator[KeyCommand]:
        """Yield nothing: lists are not folded in pages."""
        return iter(())

    def sets_of(self, user: int) -> Sequence[str]:
        """Return the key of the user's lists."""
        return [keys.lists(user)]

    def ends(self, user: int, members: Sequence[Sequence[str]]) -> Iterator[EventBody]:
        """Yield the deletions of the user's lists."""
        return (ListDeleted(user, int(list_id)) for list_id in members[0])

    async def ends_by_others(
        self, archive: "Archive", store: Store, user: int, after: int, limit: int
    ) -> tuple[list[EventBody], int | None]:
        """Return the events that remove the user from other users' lists."""
        rows = await archive.list_additions(user, after, limit)
        lists = sorted({(row.actor, row.number if row.subject is None else row.subject) for row in rows})
        reads: list[Command] = [("ZSCORE", keys.list_members(*each), user) for each in lists]
        scores = await store.read(reads) if reads else []
        ends: list[EventBody] = [
            ListChanged(owner, list_id, removed=(user,))
            for (owner, list_id), score in zip(lists, scores, strict=True)
            if score is not None
        ]
        return ends, last_number(rows, limit)


def list_names(lists: UserLists) -> Hash:
    """Return the names of lists, with the numbers of the events that set them."""
    fields = Hash()
    for list_id, (number, name) in lists.names.items():
        fields[str(list_id)], fields[f"{list_id}:at"] = name, str(number)
    return fields
