"""Comparison of the lists that belong to posts (replies, reposts and quotes), and their lengths in the posts' records.

The records and deletions of the posts in these lists are compared with the lists of their authors.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace

from graph import keys
from graph.archive.rows import REDACTED
from graph.post_lists import QUOTES, REPLIES, REPOSTS
from graph.projections.posts import counted_keys
from graph.repair import defects
from graph.repair.posts import Record, readable, set_listing
from graph.repair.report import Difference
from graph.repair.timelines import AuthorTimeline, TimelineComparison
from graph.store.commands import Command, script


class ReplyComparison(TimelineComparison):
    """Compares the replies to each post, and their number in the record of the post.

    Costs two round trips and one query more than `TimelineComparison` for 500 posts.
    """

    of_users = False
    key = staticmethod(keys.replies)
    post_list = REPLIES

    def subjects(self) -> AsyncIterator[list[int]]:
        """Yield the posts that have a list in the archive or in the store."""
        return self.scope.list_owners(self.post_list)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in the lists of these posts. A correction also counts the list again."""
        found = [
            each
            if callable(each.correction)
            else replace(each, correction=[*each.correction, self._recount(each.subject)])
            for each in await super().compare(subjects)
        ]
        return [*found, *await self._lengths(subjects)]

    def _recount(self, owner: int) -> Command:
        name, _, cold, record = counted_keys(self.post_list, owner)
        return script("count_list").call([name, cold, record], self.post_list.count or "")

    async def _lengths(self, owners: Sequence[int]) -> list[Difference]:
        """Return the differences between the lengths of lists and the lengths in the records of their owners."""
        commands: list[Command] = []
        for owner in owners:
            name, _, cold, record = counted_keys(self.post_list, owner)
            commands += [("ZCARD", name), ("ZSCORE", name, "f"), ("GET", cold)]
            commands.append(("HMGET", record, self.post_list.count or "", "deleted"))
        replies = await self.scope.send(commands)
        kinds = await self.scope.archive.kinds_of(owners)
        found = []
        for place, owner in enumerate(owners):
            if kinds.get(owner) == REDACTED:
                continue  # nothing shows the counts of a deleted post
            size, floor, cold, (count, deleted) = replies[4 * place : 4 * place + 4]
            length = 0 if deleted is not None else size - (floor is not None) + int(cold or 0)
            if int(count or 0) != length:
                text = f"post {owner} has {length} {self.post_list.name}, not {count}"
                found.append(Difference(defects.LENGTH_WRONG, owner, "length", text, [self._recount(owner)]))
        return found

    def _deletions(
        self, t: AuthorTimeline, records: Mapping[int, Record], kinds: Mapping[int, str]
    ) -> Iterator[Difference]:
        return iter(())

    def _surplus(
        self, t: AuthorTimeline, records: Mapping[int, Record], kinds: Mapping[int, str], deleted: Mapping[int, int]
    ) -> Iterator[Difference]:
        """Yield a difference for each post in a list that the archive does not have above the floor.

        A post that is not in the archive stays listed if its record can be read: the comparison of its author's list
        adds the post to the archive.
        """
        for post, score in t.members.items():
            if post in t.posts or post > self.scope.up_to:
                continue
            deletion, kind = deleted.get(post), kinds.get(post)
            if kind is None and readable(post, records[post]) is not None:
                continue
            if kind != REDACTED or deletion is not None or post <= t.floor:
                unlist = set_listing(
                    t.author, post, score, None if deletion is None else -deletion, t.right_floor, self.post_list
                )
                text = f"post {post} in the {self.post_list.name} of post {t.author}"
                yield Difference(defects.POST_LISTED, t.author, post, text, [unlist])


class RepostComparison(ReplyComparison):
    """Compares the plain reposts of each post, and their number in the record of the post."""

    key = staticmethod(keys.reposts)
    post_list = REPOSTS


class QuoteComparison(ReplyComparison):
    """Compares the quotes of each post, and their number in the record of the post."""

    key = staticmethod(keys.quotes)
    post_list = QUOTES
