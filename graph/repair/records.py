"""Comparison of the records of posts that are in no timeline of the store."""

from collections.abc import Iterator, Mapping, Sequence

from graph import keys
from graph.archive.rows import POSTS, REDACTED
from graph.post_lists import REPLIED, TIMELINE, Listable, PostList, lists_of
from graph.repair import defects
from graph.repair.posts import Record, deletion_unknown, deletions, post_unknown, readable, record_left, set_listing
from graph.repair.report import Difference
from graph.repair.scope import Comparison, number, set_fields
from graph.store.commands import script


class RecordComparison(Comparison):
    """Finds records of deleted, archived and unknown posts.

    `TimelineComparison` compares the records of hot posts and of listed posts. One query and up to five round trips for
    500 records, and up to four more queries if some records belong to deleted posts or are unreadable, as tombstones
    are.
    """

    part = defects.POSTS
    key = staticmethod(keys.post)
    of_users = False

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return a difference for each record that contradicts the archive."""
        scope = self.scope
        kinds = await scope.archive.kinds_of([post for post in subjects if post <= scope.up_to])
        held = await scope.records([post for post in dict.fromkeys(subjects) if post <= scope.up_to])
        redacted = {post for post in held if kinds.get(post) == REDACTED}
        alive = [post for post in redacted if held[post] and "deleted" not in held[post]]
        found = [record_left(post, held[post], first) for post, first in (await deletions(scope, alive)).items()]
        others = {post: record for post, record in held.items() if record and post not in redacted}
        homes = await self._homes(others, kinds)
        for post_list in (TIMELINE, REPLIED):
            authors = {post: author for post, (listed_in, author) in homes.items() if listed_in is post_list}
            states = await scope.states(post_list.key, [(author, post) for post, author in authors.items()])
            floors = await scope.scores(post_list.key, [(author, "f") for author in authors.values()])
            for post, author in authors.items():
                if states.get((author, post)) is None:
                    floor = floors.get((author, "f"), [None])[0]
                    found += self._unlisted(post_list, author, post, others[post], kinds.get(post), floor)
        for post in others.keys() - homes.keys():
            found += self._unlisted(TIMELINE, 0, post, others[post], kinds.get(post), None)
        return found

    async def _homes(self, records: Mapping[int, Record], kinds: Mapping[int, str]) -> dict[int, tuple[PostList, int]]:
        """Return, by post, the kind of list its record depends on, and the author, from the record or the archive."""
        bodies = {post: body for post, held in records.items() if (body := readable(post, held)) is not None}
        unread = [post for post in records if post not in bodies and kinds.get(post) in POSTS]
        found = (await self.scope.archive.look_up(unread)).posts if unread else {}
        known: dict[int, Listable] = {**bodies, **found}
        return {post: next(lists_of(each)) for post, each in known.items()}

    def _unlisted(
        self, post_list: PostList, author: int, post: int, held: Record, kind: str | None, floor: int | None
    ) -> Iterator[Difference]:
        """Yield the difference, if any, of a record whose post is neither redacted nor in the list it belongs to."""
        is_archived = floor is not None and post <= floor
        if "deleted" in held:
            if kind in POSTS and is_archived and number(held["deleted"]) <= self.scope.up_to:
                yield deletion_unknown(self.scope, post, author, post)
        elif kind in POSTS:
            if is_archived:
                yield record_left(post, held, None)
        else:
            then = [] if floor is None else [set_listing(author, post, None, post, floor, post_list)]
            if is_archived:
                then = [script("free_post").call([keys.post(post)], "")]
            body = readable(post, held) if kind is None else None
            yield post_unknown(self.scope, post, post, body, then, set_fields(keys.post(post), held, {}))
