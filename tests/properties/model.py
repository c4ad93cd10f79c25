"""The reference model: what a read may and must show while operations overlap. `World` is the content of the log."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from graph.errors import AccountDeleted, ArchiveUnavailable, Overloaded, Rejected
from graph.model import FollowRefusal, Post
from tests.support.world import World

REFUSED = {FollowRefusal.BLOCKED, FollowRefusal.NOT_FOUND}


@dataclass(eq=False)
class Operation:
    """A request to a process, with the logical times of its start and, if it returned, of its return.

    `result` is the value that it returned or the error that it raised.
    """

    process: str
    kind: str
    subject: tuple[Any, ...]
    started: int
    returned: int | None = None
    died: bool = False
    result: Any = None

    @property
    def is_refused(self) -> bool:
        """Whether the operation was refused, so that it has changed nothing."""
        outcomes = self.result if self.kind in ("follow", "unfollow") and isinstance(self.result, list) else ()
        return isinstance(self.result, Rejected | Overloaded | AccountDeleted) or not REFUSED.isdisjoint(outcomes)

    @property
    def done(self) -> bool:
        """Whether the operation returned without an error, from a process that did not die."""
        return self.returned is not None and not self.died and not isinstance(self.result, Exception)

    def done_before(self, time: int) -> bool:
        """Return True if the operation was done before a logical time."""
        return self.done and self.returned is not None and self.returned < time


@dataclass
class History:
    """All operations so far, in logical time. The operation of a dead process may still take effect until a drain.

    Between a disaster and the next rest, reads are not checked.
    """

    operations: list[Operation] = field(default_factory=list)
    now: int = 0
    after_disaster: bool = False

    def tick(self) -> int:
        """Advance the logical time, and return it."""
        self.now += 1
        return self.now

    def start(self, process: str, kind: str, *subject: Any) -> Operation:
        """Record that an operation started."""
        operation = Operation(process, kind, subject, self.tick())
        self.operations.append(operation)
        return operation

    def drained(self) -> None:
        """Record a drain: operations of dead processes have taken effect by now, or never will."""
        now = self.tick()
        for operation in self.operations:
            if operation.died and operation.returned is None:
                operation.returned = now

    def died(self, process: str) -> None:
        """Record that a process died with all its operations."""
        for operation in self.operations:
            if operation.process == process and operation.returned is None:
                operation.died = True

    def begin_anew(self, world: World, posts: list[Post]) -> None:
        """Forget all operations and start from this world: a disaster has undone some of them."""
        self.operations = [op for op in self.operations if op.returned is None and not op.died]
        self.after_disaster = False
        for pair in world.follows:
            self.start("before", "follow", *pair).returned = self.tick()
        for post in posts:
            operation = self.start("before", "publish", post.author, post.text)
            operation.result, operation.returned = post, self.tick()

    def runs(self, process: str, kind: str) -> bool:
        """Return whether a process is performing an operation of this kind."""
        return any(
            op.process == process and op.kind == kind and op.returned is None and not op.died
            for op in reversed(self.operations)
        )

    def of(self, kind: str, *subject: Any) -> list[Operation]:
        """Return the operations of a kind on a subject."""
        return [op for op in self.operations if op.kind == kind and op.subject == subject]

    def certainly_follows(self, follower: int, followee: int, start: int, end: int) -> bool | None:
        """Return True if a follow existed throughout a period, False if it never existed, None if that is uncertain."""
        if any(self.certainly_deleted(user, end) is not False for user in (follower, followee)):
            return None
        changes = [op for kind in ("block", "unblock") for op in self.of(kind, follower, followee)]
        changes += [op for kind in ("block", "unblock") for op in self.of(kind, followee, follower)]
        if any(op.started < end for op in changes):
            return False if self.certainly_apart(follower, followee, start, end) else None
        return self.certainly(("follow", "unfollow"), (follower, followee), start, end)

    def certainly_silenced(self, viewer: int, user: int, start: int, end: int, *, mutes: bool = True) -> bool | None:
        """Return True if a user was hidden or muted throughout a period, False if never, None if that is uncertain."""
        found = [self.certainly_apart(viewer, user, start, end), self.certainly_suspended(user, start, end)]
        found += [self.certainly_deleted(user, start) or (self.certainly_deleted(user, end) and None)]
        found += [self.certainly(("mute", "unmute"), (viewer, user), start, end)] if mutes else []
        return True if True in found else None if None in found else False

    def certainly_apart(self, user: int, other: int, start: int, end: int) -> bool | None:
        """Return True if a block separated two users throughout a period, False if never, None if uncertain."""
        found = [self.certainly(("block", "unblock"), pair, start, end) for pair in ((user, other), (other, user))]
        return True if True in found else None if None in found else False

    def certainly_suspended(self, user: int, start: int, end: int) -> bool | None:
        """Return True if a user was suspended throughout a period, False if never, None if that is uncertain."""
        return self.certainly(("suspend", "unsuspend"), (user,), start, end)

    def certainly_deleted(self, user: int, time: int) -> bool | None:
        """Return True if a user's account was deleted before a time, False if not, None if that is uncertain."""
        begun = [op for op in self.of("delete account", user) if op.started < time and not op.is_refused]
        return True if any(op.done_before(time) for op in begun) else None if begun else False

    def deletions_begun(self) -> list[Operation]:
        """Return the deletions of accounts that were not refused."""
        return [op for op in self.operations if op.kind == "delete account" and not op.is_refused]

    def certainly(self, kinds: tuple[str, str], subject: tuple[int, ...], start: int, end: int) -> bool | None:
        """Return True if the first of two kinds held throughout a period, False if the second, None if uncertain."""
        touching = [op for kind in kinds for op in self.of(kind, *subject)]
        return decided(touching, lambda last: last.kind == kinds[0], start, end)

    def deletions(self, post: Post) -> list[Operation]:
        """Return the deletions that end a post: its own and, for a plain repost, those of its original. Quotes stay."""
        originals = self.of("delete", post.repost_of) if post.is_plain_repost else []
        return [*self.of("delete", post.id), *originals]

    def authors(self, post: Post) -> set[int]:
        """Return the author of a post and, for a plain repost, the author of its original."""
        original = post.repost_of if post.is_plain_repost else None
        published = (op.result for op in self.operations if op.kind == "publish" and op.done)
        return {post.author, *(each.author for each in published if each.id == original)}

    def check_home(self, read: Operation, *, complete_fan_out: bool) -> None:
        """Check the home timeline that a read returned."""
        [viewer] = read.subject

        def includes(author: int, start: int, end: int) -> bool | None:
            return author == viewer or self.certainly_follows(viewer, author, start, end)

        self.check_timeline(read, includes, is_complete=complete_fan_out)

    def check_timeline(
        self, read: Operation, includes: Callable[[int, int, int], bool | None], *, is_complete: bool
    ) -> None:
        """Check the posts that a viewer's read returned against the facts that were certain throughout the read.

        `includes` returns True if the timeline included an author throughout a period, False if not, None if uncertain.
        """
        if self.after_disaster or not read.done or self.certainly_deleted(read.subject[0], self.now) is not False:
            return
        viewer, seen, start, end = read.subject[0], read.result, read.started, read.returned or self.now
        ids = [post.id for post in seen]
        assert ids == sorted(set(ids), reverse=True), f"not strictly descending: {ids}"
        for post in seen:
            self.check_existed(post, start)
            for author in self.authors(post):
                silenced = self.certainly_silenced(viewer, author, start, end)
                assert not silenced, f"post {post.id} of {author} was shown, who is muted or hidden"
            assert includes(post.author, start, end) is not False, f"post {post.id} of {post.author} was shown"
        for publication in self.operations:
            if publication.kind not in ("publish", "repost") or not publication.done_before(start):
                continue
            post = publication.result
            ends = [*self.deletions(post), *self.of("unrepost", post.author, post.repost_of)]
            if any(end_of_post.started < end for end_of_post in ends):
                continue
            if not post.listed:
                assert post.id not in ids, f"reply {post.id} of {post.author} was shown to {viewer}"
            elif any(self.certainly_silenced(viewer, author, start, end) is not False for author in self.authors(post)):
                continue
            elif includes(post.author, start, end) and is_complete:
                assert post.id in ids, f"post {post.id} of {post.author} was missing for {viewer}"

    def check_look(self, look: Operation) -> None:
        """Check that a look-up showed no post that was deleted before it, and no post of a hidden user."""
        viewer, start, end = look.subject[0], look.started, look.returned or self.now
        for post in () if self.after_disaster else look.result:
            self.check_existed(post, start)
            if self.certainly_deleted(viewer, self.now) is False:
                hidden = self.certainly_silenced(viewer, post.author, start, end, mutes=False)
                assert not hidden, f"post {post.id} of {post.author} was shown, who is hidden from {viewer}"

    def check_existed(self, post: Post, start: int) -> None:
        """Check that a post that was shown after a time was not deleted, or taken back, before that time.

        In the machine, tombstones are dropped at any age. A publication that is projected again after its post's
        tombstone was dropped writes the record, and a later call frees it, or the scan does if the process dies.
        """
        if any(not repeat.done_before(start) for repeat in self.of("repeat", post.id)):
            return
        for deletion in self.deletions(post):
            assert not deletion.done_before(start), f"deleted post {post.id} was shown"
        for undo in self.of("unrepost", post.author, post.repost_of):
            is_undone = undo.done and undo.result == post.id and undo.done_before(start)
            assert not is_undone, f"repost {post.id} was shown after it was taken back"


def decided(operations: Collection[Operation], holds: Callable[[Operation], bool], start: int, end: int) -> bool | None:
    """Return whether a fact held throughout a period after some operations; None if that is uncertain.

    The fact does not hold at first. An operation that met an outage of the archive may have taken effect.
    """
    touching = [op for op in operations if op.started < end and not op.is_refused]
    if not touching:
        return False
    if any(isinstance(op.result, ArchiveUnavailable) for op in touching):
        return None
    last = max(touching, key=lambda op: op.started)
    others = [op for op in touching if op is not last]
    finished = last.returned is not None and last.returned < start and not last.died
    if not finished or any(op.returned is None or op.returned > last.started for op in others):
        return None
    return holds(last)
