"""The notifications of a few users, after any actions in two processes, against a model in plain sets.

Lists are short, so that groups are dropped often. Events are projected again, late and out of order, and posts, reposts
and likes are archived. At the end the store is compared with its events.
"""

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import hypothesis.strategies as st
import pytest
import redis
from hypothesis import HealthCheck, given, settings

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.log.notification_groups import Group, NotificationKind
from graph.model import MAX_NUMBER, FollowOutcome, FollowRefusal
from graph.projections.mode import Mode
from tests.conftest import CHEAP
from tests.properties.notifications import check_notifications, has_floor
from tests.properties.notified import Notified
from tests.support.graph_worlds import archive_log, codes, crowd
from tests.support.graphs import empty, open_graph
from tests.support.raw import lasting_client
from tests.support.stores import HookedStore

pytestmark = pytest.mark.slow

PEOPLE = 4
KEPT = 4
TUNING = replace(CHEAP, notifications_kept=KEPT, hot_posts=3, hot_slack=1, hot_newest=2)

Step = tuple[Any, ...]

person = st.integers(0, PEOPLE - 1)
post = st.integers(0, 4)
step = st.one_of(
    *[st.tuples(st.just("publish"), person, st.none() | post, st.none() | post, st.sets(person, max_size=2))] * 4,
    *[st.tuples(st.just("like or unlike"), person, post)] * 3,
    *[st.tuples(st.just("repost or take back"), person, post)] * 3,
    *[st.tuples(st.just("follow or unfollow"), person, person)] * 3,
    st.tuples(st.just("take back and renew"), st.sampled_from(["like or unlike", "repost or take back"]), person, post),
    st.tuples(st.just("mute or unmute"), person, person),
    st.tuples(st.just("block or unblock"), person, person),
    st.tuples(st.just("delete"), post),
    *[st.tuples(st.just("read"), person, st.integers(0, 6))] * 2,
    st.tuples(st.just("again"), st.integers(0, 9)),
    st.tuples(st.just("archive")),
    st.tuples(st.just("check")),
)
steps = st.lists(step, min_size=10, max_size=50)


class Acting:
    """Two processes, and the model of the users' actions in them."""

    def __init__(self, graphs: list[Graph], raw: redis.Redis, people: list[int]) -> None:
        self.graphs = graphs
        self.raw = raw
        self.people = people
        self.model = Notified(KEPT)
        self.done: set[tuple[str, int, int]] = set()
        self.turn = 0

    @property
    def graph(self) -> Graph:
        """The process that acts now. The processes take turns."""
        return self.graphs[self.turn % len(self.graphs)]

    async def step(self, name: str, *arguments: Any) -> None:
        """Take one step."""
        self.turn += 1
        await getattr(self, "_" + name.replace(" ", "_"))(*arguments)

    def _again_done(self, name: str, user: int, subject: int) -> bool:
        """Return whether a user has done this before, even if it was undone. Record that it is done."""
        renewed = (name, user, subject) in self.done
        self.done.add((name, user, subject))
        return renewed

    def _post_at(self, which: int | None) -> int | None:
        """Return one of the newest posts."""
        newest = sorted(self.model.posts, reverse=True)
        return newest[which % len(newest)] if newest and which is not None else None

    async def _publish(self, who: int, parent: int | None, original: int | None, mentioned: set[int]) -> None:
        user, above, quoted = self.people[who], self._post_at(parent), self._post_at(original)
        text = " ".join(["text", *(f"@fan{each}" for each in sorted(mentioned))])
        targets = [self.model.posts[each].author for each in (above, quoted) if each is not None]
        work = self.graph.posts.publish(user, text, reply_to=above, quote_of=quoted)
        published = await self._unless_blocked(work, user, *targets)
        if published is not None:
            others = {self.people[each] for each in mentioned}
            self.model.publish(user, published.id, above, quoted, others)

    async def _like_or_unlike(self, who: int, which: int) -> None:
        user, liked = self.people[who], self._post_at(which)
        if liked is None:
            return
        is_liked, author = (user, liked) in self.model.likes, self.model.posts[liked].author
        act = self.graph.likes.unlike if is_liked else self.graph.likes.like
        if await self._unless_blocked(act(user, liked), user, author) is None:
            return
        if is_liked:
            del self.model.likes[user, liked]
        else:
            renewed = self._again_done("like", user, liked)
            self.model.like(user, liked, await self.graph.log.last(), renewed=renewed)

    async def _repost_or_take_back(self, who: int, which: int) -> None:
        user, original = self.people[who], self._post_at(which)
        if original is None:
            return
        view = self.graph.visibility.of(user)
        if self.model.reposts.pop((user, original), None) is not None:
            await self.graph.reposts.unrepost(view, user, original)
            return
        work = self.graph.reposts.repost(view, user, original)
        repost = await self._unless_blocked(work, user, self.model.posts[original].author)
        if repost is not None:
            self.model.repost(user, original, repost.id, renewed=self._again_done("repost", user, original))

    async def _follow_or_unfollow(self, who: int, whom: int) -> None:
        user, other = self.people[who], self.people[whom]
        if user == other:
            return
        if self.model.follows.pop((user, other), None) is not None:
            await self.graph.follows.unfollow(user, [other])
            return
        [outcome] = await self.graph.follows.follow(user, [other])
        assert (outcome is FollowRefusal.BLOCKED) == self.model.are_apart(user, other)
        if outcome is FollowOutcome.FOLLOWED:
            renewed = self._again_done("follow", user, other)
            self.model.follow(user, other, await self.graph.log.last(), renewed=renewed)

    async def _take_back_and_renew(self, name: str, who: int, which: int) -> None:
        """A user acts, undoes the action and repeats it; or undoes it, repeats it and undoes it again."""
        for _ in range(3):
            await self.step(name, who, which)

    async def _mute_or_unmute(self, who: int, whom: int) -> None:
        user, other = self.people[who], self.people[whom]
        if user == other:
            return
        if (user, other) in self.model.mutes:
            await self.graph.blocks.unmute(user, other)
        else:
            await self.graph.blocks.mute(user, other)
        self.model.mutes ^= {(user, other)}

    async def _block_or_unblock(self, who: int, whom: int) -> None:
        user, other = self.people[who], self.people[whom]
        if user == other:
            return
        if (user, other) in self.model.blocks:
            await self.graph.blocks.unblock(user, other)
            self.model.blocks.remove((user, other))
        else:
            await self.graph.blocks.block(user, other)
            self.model.block(user, other)

    async def _delete(self, which: int) -> None:
        gone = self._post_at(which)
        if gone is not None:
            await self.graph.posts.delete(self.model.posts[gone].author, gone)
            self.model.delete(gone)

    async def _read(self, who: int, which: int) -> None:
        """A user marks notifications as read, up to one that may no longer exist or may be in the future."""
        user = self.people[who]
        numbers = [*sorted(self.model.groups.get(user, {}).values(), reverse=True), MAX_NUMBER]
        up_to = numbers[which % len(numbers)]
        await self.graph.notifications.mark_read(user, up_to)
        self.model.read(user, min(up_to, await self.graph.log.last()))

    async def _again(self, seed: int) -> None:
        """Some events are projected again, out of order."""
        events = [event async for event in self.graph.log.replay(0, await self.graph.log.last())]
        rng = random.Random(seed)  # noqa: S311 - reproducible
        await self.graph.projections.project(rng.sample(events, min(len(events), 9)), Mode.WORKER)

    async def _archive(self) -> None:
        """Everything is projected and archived. Only a few posts, reposts and likes stay in the store."""
        await self.graph.worker().drain()
        await archive_log(self.graph)
        await self.graph.scan.run_pass()

    async def _unless_blocked(self, work: Any, user: int, *others: int) -> Any:
        """Return the result of an action that concerns other users, or None if a block forbids it."""
        are_apart = any(self.model.are_apart(user, other) for other in others)
        result, refused = None, set[ProblemCode]()
        try:
            result = await work
        except Rejected as refusal:
            refused = {*codes(refusal)}
        assert refused == ({ProblemCode.BLOCKED} if are_apart else set())
        return result

    async def _check(self) -> None:
        """Check each user's pages, number of unread notifications, and single notifications."""
        await check_notifications(self.graph, self.raw, self.model, self.people)
        for user in self.people:
            groups = [Group(NotificationKind[kind], subject) for kind, subject in self.model.groups.get(user, {})]
            found = await self.graph.notifications.get_many(self.graph.visibility.of(user), groups)
            shown = {(each.kind, each.subject) for each in self.model.entries(user) if not has_floor(self.raw, each)}
            assert shown <= {(each.kind.name, each.subject) for each in found if each is not None}

    async def finish(self) -> None:
        """Check that the archived store shows the same notifications, and agrees with its events."""
        await self._check()
        await self._archive()
        await self._check()
        report = await self.graph.repair().run(correct=False)
        assert report.clean, report.examples


async def run(url: str, steps_taken: list[Step]) -> None:
    """Take the steps in an empty store."""
    async with AsyncExitStack() as stack:
        graphs = []
        for _ in range(2):
            graphs.append(await open_graph(url, TUNING, partial(HookedStore, single_slot=True)))
            stack.push_async_callback(graphs[-1].close)
        acting = Acting(graphs, lasting_client(url), await crowd(graphs[0], PEOPLE))
        for name, *arguments in steps_taken:
            await acting.step(name, *arguments)
        await acting.finish()


@pytest.mark.timeout(300)
def test_users_see_what_others_did(store_url: str, long_profile: bool) -> None:
    """The list has the newest groups in which visible users act. Groups only move up, and not for renewed actions."""

    @settings(
        max_examples=10_000 if long_profile else 8,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(steps)
    def example(steps_taken: list[Step]) -> None:
        empty(store_url)
        asyncio.run(run(store_url, steps_taken))

    example()
