"""Relations of pairs: one kind of event adds a member to a set of the owner, and another one removes it.

Each is a `PairSet`. All of them together are one relation, so that a further `PairSet` adds no queries or round trips
to a rebuild, a repair or an erasure.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from graph.fold.content import Content, Part, VersionedSet
from graph.fold.reading import EventReader, FoldedBatch, last_number, names_of
from graph.fold.values import Stored, versioned_set_keys
from graph.log.events import EventBody
from graph.relations.relation import KeyCommand, Relation
from graph.relations.versioned_sets import additions, removals, replacements
from graph.store.batches import send_in_batches
from graph.store.commands import Command
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive

Members: TypeAlias = VersionedSet[str]
"""The members of one owner, as the store holds them."""

TEXT = "#"
"""The prefix of members that are texts, so that no text is taken for the member `f`, the floor of a set."""


@dataclass(frozen=True)
class PairSet:
    """A relation of pairs of an owner and a member, in one versioned set of the owner.

    `noun` names a pair in the reports of repairs, such as "mute"; it is unique among the sets. The owner is the actor
    of the events that begin and end a pair. The member is their subject; if they have none, it is the text in their
    first other field. `key` returns the key of the owner's set. With `drops_home`, a change deletes the owner's home
    cache.
    """

    noun: str
    begun: type[Any]
    ended: type[Any]
    key: Callable[[int], str]
    drops_home: bool = False

    @cached_property
    def _fields(self) -> tuple[str, str]:
        """The names of the event fields that hold the owner and the member."""
        owner = str(self.begun.ACTOR)
        return owner, self.begun.SUBJECT or next(name for name in self.begun.__slots__ if name != owner)

    def pair_of(self, body: Any) -> tuple[int, str]:
        """Return the owner of an event, and the member as the store holds it."""
        owner, member = (getattr(body, name) for name in self._fields)
        return owner, stored_member(member)

    def body_of(self, owner: int, member: str, *, begins: bool) -> EventBody:
        """Return the event that begins or ends a pair, given the member as the store holds it."""
        names = self._fields
        body: EventBody = (self.begun if begins else self.ended)(**{names[0]: owner, names[1]: value_of(member)})
        return body


def stored_member(value: int | str) -> str:
    """Return the form in which the store holds an id or a text as a member. The inverse of `value_of`."""
    return TEXT + value if isinstance(value, str) else str(value)


def value_of(member: str) -> int | str:
    """Return the id or the text that a member represents."""
    return member.removeprefix(TEXT) if member.startswith(TEXT) else int(member)


class PairSets(Relation):
    """Several `PairSet`s, as one relation. `by_begun` maps the name of each event that begins a pair to its set."""

    def __init__(self, *pair_sets: PairSet) -> None:
        self.pair_sets = pair_sets
        self.kinds = tuple(kind for each in pair_sets for kind in (each.begun, each.ended))
        self.by_begun = {each.begun.__name__: each for each in pair_sets}
        self._by_kind = {kind: each for each in pair_sets for kind in (each.begun, each.ended)}

    async def project(self, store: Store, events: Sequence[tuple[int, Any]], trim_up_to: int) -> None:
        """Add and remove members. One round trip. Tombstones with numbers up to `trim_up_to` are trimmed."""
        commands = []
        for each in self.pair_sets:
            begun = [(*each.pair_of(body), number) for number, body in events if isinstance(body, each.begun)]
            ended = [(*each.pair_of(body), number) for number, body in events if isinstance(body, each.ended)]
            added = ((owner, number, member) for owner, member, number in begun)
            commands += additions(store, each.key, added, unlink_home=each.drops_home)
            commands += removals(each.key, ended, trim_up_to, unlink_home=each.drops_home)
        await send_in_batches(store, commands)

    def fold(self, content: Content, number: int, body: Any) -> None:
        """Add the member to the owner's set, or remove it."""
        pair_set = self._by_kind[type(body)]
        owner, member = pair_set.pair_of(body)
        if content.includes(Part.PAIRS, owner):
            held = content.pairs.setdefault(pair_set.noun, {}).setdefault(owner, Members())
            (held.add if isinstance(body, pair_set.begun) else held.remove)(member, number)

    def stored(self, content: Content, tombstones_after: int) -> Stored:
        """Yield the keys of the sets."""
        for each in self.pair_sets:
            for owner, held in self.of(content, each).items():
                yield from versioned_set_keys(each.key, owner, held, tombstones_after)

    async def batches(self, reader: EventReader, users: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the sets of users."""
        kinds = names_of(self.kinds)
        async for owners, rows, is_page in reader.pages(reader.archive.by_actor, users, kinds):
            batch = FoldedBatch(Content(owners, parts=[Part.PAIRS]), self.fold, is_page=is_page)
            batch.add(rows)
            yield batch

    def replacements(self, content: Content) -> Iterator[KeyCommand]:
        """Yield the commands that remove the entries that earlier pages wrote for the same members."""
        for each in self.pair_sets:
            yield from replacements(each.key, self.of(content, each))

    def sets_of(self, user: int) -> Sequence[str]:
        """Return the keys of the user's sets."""
        return [each.key(user) for each in self.pair_sets]

    def ends(self, user: int, members: Sequence[Sequence[str]]) -> Iterator[EventBody]:
        """Yield the events that end the pairs of the user."""
        for each, some in zip(self.pair_sets, members, strict=True):
            yield from (each.body_of(user, member, begins=False) for member in some)

    async def ends_by_others(
        self, archive: "Archive", store: Store, user: int, after: int, limit: int
    ) -> tuple[list[EventBody], int | None]:
        """Return the events that end pairs of other owners whose member is the user."""
        rows = await archive.by_subject([user], tuple(self.by_begun), after, limit)
        pairs = sorted({(row.kind, row.actor) for row in rows})
        reads: list[Command] = [("ZSCORE", self.by_begun[kind].key(owner), str(user)) for kind, owner in pairs]
        ends = [
            self.by_begun[kind].body_of(owner, str(user), begins=False)
            for (kind, owner), score in zip(pairs, await store.read(reads) if reads else [], strict=True)
            if score is not None
        ]
        return ends, last_number(rows, limit)

    @staticmethod
    def of(content: Content, pair_set: PairSet) -> dict[int, Members]:
        """Return the sets of one kind in the content, by owner."""
        return content.pairs.get(pair_set.noun, {})
