"""Checks of a graph at rest: the derived keys, the archive and the pages agree with the events."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import redis

from graph import Graph, keys
from graph.archive.rows import POSTS, EventRow
from graph.archive.tables import CREDENTIALS, EVENTS
from graph.expected.event_folds import fold
from graph.expected.stored import stored
from graph.fold.content import Content
from graph.fold.hot_window import Cut
from graph.log.account_events import UserDeleted
from graph.log.encoding import decode
from graph.log.events import PostPublished, publication_of
from graph.log.moderation_events import UserSuspended
from graph.log.numbers import entry_id
from graph.model import MAX_NUMBER
from graph.paging import Window
from graph.post_lists import POST_LISTS, QUOTES, REPLIED, REPLIES, REPOSTS, TIMELINE, PostList, lists_of
from graph.visibility.views import SYSTEM
from tests.properties.archives import Database
from tests.properties.deletions import check_nothing_left
from tests.properties.journal import Journal, Row
from tests.properties.likes import check_likes
from tests.properties.lists import check_lists
from tests.properties.notifications import check_notifications
from tests.properties.notified import Notified
from tests.properties.reading import whole_timeline
from tests.properties.suspensions import check_exits
from tests.support.graph_worlds import counts_of
from tests.support.world import World

FOLDED = (
    *("following:{", "followers:{", "posts:{", "cold:{", "post:{", "user:{", "login:{"),
    *("replied:{", "replies:{", "reposts:{", "quotes:{", "reposted:{", "blocking:{", "blockers:{", "muting:{"),
    *("lists:{", "list:{", keys.SUSPENDED),
)
"""The prefixes of the keys that the fold determines."""


@dataclass
class Rest:
    """A graph at rest, with its users and the journal of its events.

    `restored` is True if a backup of the archive was restored, `forgets_lost` if lost events have no effects, because
    everything was lost with them or a repair has removed them.
    """

    graph: Graph
    raw: redis.Redis
    database: Database
    journal: Journal
    users: Sequence[int]
    restored: bool = False
    forgets_lost: bool = False

    def __post_init__(self) -> None:
        self.rows = {row[0]: Row(*row[: len(Row._fields)]) for row in self.database.rows(EVENTS)}
        self.journal.lost -= self.rows.keys()  # a cut inserts the rows of posts that the log has lost
        self.live: dict[int, PostPublished] = {}
        for row in self.rows.values():
            if row.kind in POSTS and (body := publication_of(decode(*row[:5]).body)) is not None:
                self.live[row.number] = body
        self.world = self._world()

    def _world(self) -> World:
        """Return the world that the events produce. A lost post exists if the store listed it before it was lost."""
        if self.forgets_lost:
            return World.of(self.journal.events(but=self.journal.lost))
        world = World.of(self.journal.events())
        hot = {post for user in self.users for post_list in (TIMELINE, REPLIED) for post in self.hot(post_list, user)}
        world.posts = {post: body for post, body in world.posts.items() if post not in self.journal.lost or post in hot}
        return world

    def hot(self, post_list: PostList, owner: int) -> list[int]:
        """Return the hot posts of a list."""
        members: Any = self.raw.zrange(post_list.key(owner), 0, -1)
        return [int(post) for post in members if post != "f"]

    def floor(self, post_list: PostList, owner: int) -> int:
        """Return the archive floor of a list."""
        return int(self.raw.zscore(post_list.key(owner), "f") or 0)

    def owners(self, post_list: PostList) -> list[int]:
        """Return the owners who have a list of one kind or should have one."""
        if post_list.is_of_users:
            return [*self.users]
        prefix = post_list.key(0).partition("0")[0]
        held = {int(name[len(prefix) : -1]) for name in self.raw.scan_iter(f"{prefix}*}}")}
        bodies = (*self.live.values(), *self.world.posts.values())
        return sorted(held | {owner for body in bodies for kind, owner in lists_of(body) if kind is post_list})

    async def check(self) -> None:
        """Check everything."""
        self.check_log()
        self.check_rows()
        self.check_credentials()
        self.check_hot_windows()
        self.check_records()
        self.check_fold()
        check_nothing_left(self.raw, self.world, self.users)
        await asyncio.gather(*map(self._check_home, self.users))
        await self._check_lists()
        await check_likes(self.graph, self.raw, self.world, self.users)
        if not self.journal.rolled_back:
            await check_lists(self.graph, self.world, self.users)
            if self.world.blocks or self.journal.has(UserSuspended) or self.world.deleted:
                await check_exits(self.graph, self.world, self.users)
        if not self.journal.rolled_back and not self.journal.lost:
            notified = Notified.of(self.journal.events(), self.graph.tuning.notifications_kept)
            await check_notifications(self.graph, self.raw, notified, self.users)

    def check_log(self) -> None:
        """Check the watermarks, and that only events that may be discarded have left the log."""
        last = max(number for number in self.journal.encoded if number not in self.journal.lost)
        names = (keys.ARCHIVED, keys.WATERMARK, keys.TRIMMED)
        archived, watermark, trimmed = (int(self.raw.get(name) or 0) for name in names)
        assert archived == watermark == last
        entries: Any = self.raw.xrange(keys.LOG)
        held = {entry for entry, _ in entries}
        scrubbed = {row.subject for row in self.rows.values() if row.kind == "PostDeleted"}
        erased = self.journal.erased()
        no_gap = scrubbed | self.journal.lost | self.journal.late
        no_gap |= {number for number, row in self.rows.items() if row.actor in erased}
        for number in self.journal.encoded:
            if entry_id(number) not in held and number not in no_gap:
                assert number <= trimmed, f"event {number} is missing, but streams report no gap"

    def check_rows(self) -> None:
        """Check that the archive holds each event once, and no other rows."""
        expected = self.journal.rows()
        for number, row in expected.items():
            if self.restored and row.kind == "Redacted" and number not in self.rows:
                continue  # the log was scrubbed after the backup was made
            assert self.rows.get(number) == row
        assert self.rows.keys() <= expected.keys()

    def check_credentials(self) -> None:
        """Check that exactly the users with a valid sign-up have credentials. Deleted users have only a hash."""
        expected: dict[int, tuple[Any, ...]] = {}
        for event in self.journal.events():
            if isinstance(event.body, UserDeleted):
                expected[event.body.user] = (event.body.user, event.body.login_hash, None, event.number)
        for name in self.raw.scan_iter("login:{*}"):
            secret, user = self.raw.hmget(name, "secret", "user")
            if user is not None and int(user) not in self.journal.lost:
                expected[int(user)] = (int(user), name[len("login:{") : -1], secret or None, int(user))
        found = {row[0]: tuple(row) for row in self.database.rows(CREDENTIALS)}
        assert found == expected

    def check_hot_windows(self) -> None:
        """Check that the archive holds every live post, and the store exactly those above the floor."""
        expected: dict[PostList, Callable[[int], list[int]]] = {
            TIMELINE: self.world.own,
            REPLIED: self.world.replied,
            REPLIES: self.world.replies,
            REPOSTS: self.world.reposts,
            QUOTES: self.world.quotes,
        }
        for post_list, posts_of in expected.items():
            for owner in self.owners(post_list):
                hot, floor = self.hot(post_list, owner), self.floor(post_list, owner)
                archived = {post for post, body in self.live.items() if (post_list, owner) in lists_of(body)}
                assert {post for post in hot if post not in self.journal.lost} == {p for p in archived if p > floor}
                assert sorted({*hot, *archived}) == sorted(posts_of(owner))
                tuning = self.graph.tuning
                assert len(hot) <= tuning.hot_posts + tuning.hot_slack, "more posts are hot than should be"
                self.check_count(post_list, owner)

    def check_count(self, post_list: PostList, owner: int) -> None:
        """Check the number of a list's archived posts."""
        archived = [post for post, body in self.live.items() if (post_list, owner) in lists_of(body)]
        cold = sum(post <= self.floor(post_list, owner) for post in archived)
        assert int(self.raw.get(post_list.cold(owner)) or 0) == cold, "the number of archived posts is wrong"

    def check_records(self) -> None:
        """Check that the store holds the records of hot posts, and no others."""
        names = [*self.raw.scan_iter("post:{*}")]
        held = {int(name[len("post:{") : -1]) for name in names if {*self.raw.hkeys(name)} - {*keys.COUNT_FIELDS}}
        hot = {post for user in self.users for post in self.hot(TIMELINE, user)}
        unlisted = {post for user in self.users for post in self.hot(REPLIED, user) if not self.is_listed(post)}
        assert held == hot | unlisted, [self.raw.hgetall(keys.post(post)) for post in held - hot - unlisted]

    def is_listed(self, post: int) -> bool:
        """Return whether a live post is listed."""
        body = self.live.get(post) or self.world.posts.get(post)
        return body is not None and body.listed

    def check_fold(self) -> None:
        """Check that the store agrees with the fold of the archive's events."""
        if self.journal.lost:
            return
        secrets = {row[0]: row[2] for row in self.database.rows(CREDENTIALS)}
        rows = [EventRow(*row[:5]) for row in self.rows.values()]
        content = fold(
            Content(secrets=secrets), [decode(*row) for row in rows if row.kind not in ("Redacted", "EndedLike")]
        )
        cuts = {}
        for post_list in POST_LISTS:
            owners = self.owners(post_list)
            floors = {owner: self.floor(post_list, owner) for owner in owners}
            cuts[post_list] = Cut(floors, {owner: int(self.raw.get(post_list.cold(owner)) or 0) for owner in owners})
        expected = {
            key: {member: str(score) for member, score in value.items()} if isinstance(value, dict) else value
            for key, value in stored(content, MAX_NUMBER, cuts)
            if key.startswith(FOLDED) and not key.endswith(":gone")
        }
        found = self._stored()
        if self.journal.rolled_back:  # the claim of a login may be lost after its projection has begun
            found = {key: value for key, value in found.items() if key in expected or not key.startswith("user:{")}
        assert found == expected

    def is_deleted(self, post: int) -> bool:
        """Return whether the archive marks a post as deleted."""
        return post in self.rows and self.rows[post].kind == "Redacted"

    def _stored(self) -> dict[str, Any]:
        """Return the keys that the fold determines, except empty ones and the winner of a login."""
        found: dict[str, Any] = {}
        for key in self.raw.scan_iter(count=1000):
            if not key.startswith(FOLDED) or key.endswith(":gone") or key == keys.SUSPENDED_VERSION:
                continue
            if key.startswith("cold:{") or key.endswith(":cold"):
                found[key] = self.raw.get(key)
            elif key.startswith("post:{") and self.is_deleted(int(key[len("post:{") : -1])):
                continue  # a list under it has changed after its tombstone was dropped
            elif key.startswith(("post:{", "user:{", "login:{", keys.SUSPENDED)) or key.endswith(":names"):
                found[key] = {field: value for field, value in self.raw.hgetall(key).items() if field != "winner"}
            else:
                members: Any = self.raw.zrange(key, 0, -1, withscores=True)
                found[key] = {member: str(int(score)) for member, score in members}
        return {
            key: value
            for key, value in found.items()
            if value not in ("0", {"f": "0"}) and (not key.startswith("login:{") or "user" in value)
        }

    async def _check_home(self, viewer: int) -> None:
        """Check a home timeline with and without its cache, in both directions."""
        expected = self.world.home(viewer)
        for size, forward in ((3, True), (4, False), (2, True)):
            seen = await whole_timeline(self.graph, viewer, size, forward=forward)
            assert [post.id for post in seen] == expected
            if forward:
                await self.graph.timelines.wait_for_rebuilds()
        self.raw.unlink(keys.home(viewer))
        assert [post.id for post in await whole_timeline(self.graph, viewer, 7, forward=True)] == expected

    async def _check_lists(self) -> None:
        """Check user timelines in both directions, both sides of all follows, and all counts."""
        everything = Window(100, forward=True)
        own = await self.graph.timelines.user(SYSTEM, self.users, everything)
        upwards = await self.graph.timelines.user(SYSTEM, self.users, replace(everything, forward=False))
        followers = await self.graph.follows.followers(SYSTEM, self.users, everything)
        following = await self.graph.follows.following(SYSTEM, self.users, everything)
        counts = await counts_of(self.graph, self.users)
        for i, user in enumerate(self.users):
            assert [post.id for post in own[i].items] == self.world.own(user)
            assert upwards[i].items == own[i].items
            assert {(f.user, user) for f in followers[i].items} == {f for f in self.world.follows if f[1] == user}
            assert {(user, f.user) for f in following[i].items} == {f for f in self.world.follows if f[0] == user}
            assert {f.user: f.number for f in following[i].items}.items() <= self._versions(user).items()
            assert counts[i].followers == len(followers[i].items)
            assert counts[i].following == len(following[i].items)
            assert counts[i].posts == len(self.world.own(user))
        await self._check_conversations()

    async def _check_conversations(self) -> None:
        """Check the replies of users, and the replies, reposts and quotes of live posts with their counts."""
        everything = Window(100, forward=True)
        listed = self.graph.timelines.pages_of
        replied = await listed(SYSTEM, REPLIED, self.users, everything)
        assert [[post.id for post in page.items] for page in replied] == [*map(self.world.replied, self.users)]
        ids = [*self.world.posts]
        posts = await self.graph.posts.get_many(SYSTEM, ids)
        found = [await listed(SYSTEM, post_list, ids, everything) for post_list in (REPLIES, REPOSTS, QUOTES)]
        for id_, post, *pages in zip(ids, posts, *found, strict=True):
            assert post is not None
            lists = [[each.id for each in page.items] for page in pages]
            assert lists == [self.world.replies(id_), self.world.reposts(id_), self.world.quotes(id_)]
            assert [post.replies, post.reposts, post.quotes] == [*map(len, lists)]

    def _versions(self, user: int) -> dict[int, int]:
        """Return the version of each follow of a user, from the followees' sets."""
        return {
            other: int(score)
            for other in self.users
            if (score := self.raw.zscore(keys.followers(other), str(user))) is not None
        }
