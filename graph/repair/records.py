"""Comparison of records: those in the store that no timeline leads to."""

from collections.abc import Iterator, Mapping, Sequence

from graph import keys
from graph.archive.rows import POST, REDACTED
from graph.repair.posts import Record, deletion_unknown, deletions, post_unknown, readable, record_left, set_listing
from graph.repair.report import Difference, Part
from graph.repair.scope import Comparison, number, set_fields
from graph.store.commands import script


class Records(Comparison):
    """Finds records of deleted, archived and unknown posts. `Timelines` compares those of hot and of listed posts.

    One query and four round trips for 500 records, and two more queries if there are deleted posts with records, or
    tombstones of posts that are not deleted.
    """

    part = Part.POSTS
    key = staticmethod(keys.post)
    of_users = False

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the records that contradict the archive."""
        scope = self.scope
        kinds = await scope.archive.kinds_of([post for post in subjects if post <= scope.upto])
        held = await scope.records([post for post in dict.fromkeys(subjects) if post <= scope.upto])
        redacted = {post for post in held if kinds.get(post) == REDACTED}
        alive = [post for post in redacted if held[post] and "deleted" not in held[post]]
        found = [record_left(post, held[post], first) for post, first in (await deletions(scope, alive)).items()]
        others = {post: record for post, record in held.items() if record and post not in redacted}
        authors = await self._authors(others, kinds)
        states = await scope.states(keys.posts, [(author, post) for post, author in authors.items()])
        floors = await scope.scores(keys.posts, [(author, "f") for author in authors.values()])
        for post, record in others.items():
            author = authors.get(post, 0)
            if states.get((author, post)) is None:
                found += self._unlisted(author, post, record, kinds.get(post), *floors.get((author, "f"), [None]))
        return found

    async def _authors(self, records: Mapping[int, Record], kinds: Mapping[int, str]) -> dict[int, int]:
        """Return the authors of posts as far as the records or the archive know them."""
        authors = {post: body.author for post, held in records.items() if (body := readable(post, held)) is not None}
        unread = [post for post in records if post not in authors and kinds.get(post) == POST]
        found = (await self.scope.archive.look_up(unread)).posts if unread else {}
        return authors | {post: row.author for post, row in found.items()}

    def _unlisted(
        self, author: int, post: int, held: Record, kind: str | None, floor: int | None
    ) -> Iterator[Difference]:
        """Yield the difference of a record whose post is neither redacted nor in its author's timeline, if any."""
        is_archived = floor is not None and post <= floor
        if "deleted" in held:
            if kind == POST and is_archived and number(held["deleted"]) <= self.scope.upto:
                yield deletion_unknown(self.scope, post, author, post)
        elif kind == POST:
            if is_archived:
                yield record_left(post, held, None)
        else:
            then = [] if floor is None else [set_listing(author, post, None, post, floor)]
            if is_archived:
                then = [script("free_post").call([keys.post(post)])]
            body = readable(post, held) if kind is None else None
            yield post_unknown(self.scope, post, post, body, then, set_fields(keys.post(post), held, {}))
