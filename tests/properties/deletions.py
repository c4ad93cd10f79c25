"""Deletion of accounts in the machine: rules that delete and erase users, and the check that nothing remains."""

import re
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import redis
from hypothesis.stateful import precondition, rule

from graph import Graph, keys
from graph.erasure.eraser import Progress
from graph.log.account_events import UserDeleted, login_hash
from tests.properties.disasters import Disaster
from tests.properties.model import Operation
from tests.properties.processes import ARCHIVERS, sign_up
from tests.properties.requests import apis, calls, users
from tests.properties.suspensions import SuspensionRules
from tests.support.world import World

NEW = ("create list", "log in")
"""Operations that always write something of their user."""
MOST_DELETIONS = 1


class DeletionRules(SuspensionRules):
    """The part of the machine in which users delete their accounts, and archivers erase what is left of them."""

    @precondition(lambda self: self.disaster is Disaster.NONE and len(self.history.deletions_begun()) < MOST_DELETIONS)
    @rule(process=apis, user=users, calls=calls)
    def delete_account(self, process: str, user: int, calls: int) -> None:
        """A user deletes their account while other requests by the user run."""
        subject = self.user_at(user)
        body = UserDeleted(subject, login_hash(self.login_of(subject)))
        self._launch(
            self.history.start(process, "delete account", subject), self.graph_of(process).commit([body]), calls
        )

    @precondition(lambda self: self.history.deletions_begun())
    @rule(process=st.sampled_from(ARCHIVERS), steps=st.integers(1, 6), calls=calls)
    def erase(self, process: str, steps: int, calls: int) -> None:
        """An archiver takes some steps to erase a deleted user."""
        if not self.history.runs(process, "erase"):
            work = some_steps(self.graph_of(process), steps)
            self._launch(self.history.start(process, "erase"), work, calls)

    @precondition(lambda self: self.history.deletions_begun())
    @rule(process=apis, calls=calls)
    def sign_up_again(self, process: str, calls: int) -> None:
        """Somebody tries to sign up with the login of a deleted user."""
        self.texts += 1
        user = self.history.deletions_begun()[0].subject[0]
        work = sign_up(self.graph_of(process), self.login_of(user), f"nonce {self.texts}", f"hash {self.texts}")
        self._launch(self.history.start(process, "take login", user), work, calls)

    def login_of(self, user: int) -> str:
        """Return the login of a user."""
        return f"user{self.users.index(user)}"

    def check_result(self, operation: Operation) -> None:
        super().check_result(operation)
        if not operation.done:
            return
        assert operation.kind != "take login" or operation.result is None, "the login of a deleted user is taken again"
        writes = operation.kind in NEW or (operation.kind == "publish" and "k" not in operation.subject[1].split()[-1])
        if writes and self.history.certainly_deleted(operation.subject[0], operation.started):
            raise AssertionError(f"{operation.kind} of a deleted user has succeeded")


async def some_steps(graph: Graph, steps: int) -> None:
    """Take some steps of the erasure."""
    for _ in range(steps):
        if await graph.eraser.step() is Progress.IDLE:
            return


async def erase_all(graph: Graph, settle: Any) -> None:
    """Run the erasure of all deleted users to the end."""
    for _ in range(100):
        if await graph.eraser.step() is Progress.IDLE:
            return
        await settle(graph)
    raise AssertionError("an erasure never ends")


def check_nothing_left(raw: redis.Redis, world: World, users: Sequence[int]) -> None:
    """Check that the store holds nothing of erased users but tombstones, floors and reservations."""
    for user in world.deleted:
        login = f"user{users.index(user)}"
        assert raw.exists(keys.reserved(login_hash(login))) == 1, "the login is not reserved"
        assert raw.hget(keys.login(login), "user") is None, "the login is not free"  # a dead process may hold a claim
        assert raw.hkeys(keys.user(user)) == ["deleted"]
        for key in raw.scan_iter(f"*{{{user}}}*"):
            if key != keys.user(user):
                assert is_floor(raw, key), f"{key} is left of a deleted user"


def is_floor(raw: redis.Redis, key: str) -> bool:
    """Return whether a key holds only a floor or a number."""
    if raw.type(key) == "zset":
        members: Any = raw.zrange(key, 0, -1)
        return list(members) == ["f"]
    return re.fullmatch("[0-9]+", str(raw.get(key))) is not None
