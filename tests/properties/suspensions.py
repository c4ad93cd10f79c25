"""Suspensions in the machine: rules that change them and visit exits, and the check of the content of every exit."""

from collections.abc import Sequence
from typing import NamedTuple

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule

from graph import Graph
from graph.paging import Window
from graph.post_lists import QUOTES, REPLIED, REPLIES, REPOSTS, TIMELINE, PostList
from graph.search.post_search import post_filter
from graph.visibility.views import View
from tests.properties.disasters import Disaster
from tests.properties.lists import ListRules
from tests.properties.model import Operation
from tests.properties.processes import PROCESSES
from tests.properties.requests import apis, calls, users
from tests.support.world import World

EVERYTHING = Window(100, forward=True)


class Shown(NamedTuple):
    """The content of an exit: lists of users and lists of posts, each in the exit's order."""

    users: list[list[int]]
    posts: list[list[int]]


class Exits:
    """The exits of a graph, where a viewer sees some users and posts."""

    def __init__(self, graph: Graph, view: View, users: Sequence[int], posts: Sequence[int]) -> None:
        self.graph = graph
        self.view = view
        self.users = users
        self.posts = posts

    async def profiles(self) -> Shown:
        found = await self.graph.users.visible(self.view, self.users)
        return Shown([[user.id for user in found if user is not None]], [])

    async def nodes(self) -> Shown:
        found = await self.graph.posts.get_many(self.view, self.posts)
        return Shown([], [[post.id for post in found if post is not None]])

    async def timelines(self) -> Shown:
        return await self._listed(TIMELINE, self.users)

    async def replied(self) -> Shown:
        return await self._listed(REPLIED, self.users)

    async def threads(self) -> Shown:
        return await self._listed(REPLIES, self.posts)

    async def reposts(self) -> Shown:
        return await self._listed(REPOSTS, self.posts)

    async def quotes(self) -> Shown:
        return await self._listed(QUOTES, self.posts)

    async def _listed(self, post_list: PostList, owners: Sequence[int]) -> Shown:
        pages = await self.graph.timelines.pages_of(self.view, post_list, owners, EVERYTHING)
        return Shown([], [[post.id for post in page.items] for page in pages])

    async def followers(self) -> Shown:
        pages = await self.graph.follows.followers(self.view, self.users, EVERYTHING)
        return Shown([[each.user for each in page.items] for page in pages], [])

    async def following(self) -> Shown:
        pages = await self.graph.follows.following(self.view, self.users, EVERYTHING)
        return Shown([[each.user for each in page.items] for page in pages], [])

    async def likes(self) -> Shown:
        pages = await self.graph.likes.pages.of_posts(self.view, self.posts, EVERYTHING)
        return Shown([[each.user for each in page.items] for page in pages], [])

    async def liked(self) -> Shown:
        pages = [await self.graph.likes.pages.of_user(self.view, user, EVERYTHING) for user in self.users]
        return Shown([], [[each.post.id for each in page.items] for page in pages])

    async def search(self) -> Shown:
        search = await self.graph.searches.begin(post_filter(users=self.users))
        page = await self.graph.searches.posts(self.view, search, EVERYTHING)
        return Shown([], [[post.id for post in page.items]])

    async def found_users(self) -> Shown:
        page, _ = await self.graph.user_searches.page(self.view, "user", EVERYTHING)
        return Shown([[each.user for each in page.items]], [])

    async def public(self) -> Shown:
        timeline = await self.graph.public_timeline.begin()
        page = await self.graph.public_timeline.page(self.view, timeline.watermark or 0, EVERYTHING)
        return Shown([], [[post.id for post in page.items]])


class Expected:
    """The content that each exit must show to a viewer, by the name of its method in `Exits`."""

    def __init__(self, world: World, viewer: int | None, users: Sequence[int], posts: Sequence[int]) -> None:
        self.world = world
        self.users = users
        self.posts = posts
        self.hidden = world.hidden(viewer)
        self.muted = {other for user, other in world.mutes if user == viewer}

    def shows(self, post: int) -> bool:
        """Return whether a live post is shown."""
        body = self.world.posts[post]
        is_plain = not body.text and not body.attachments
        authors = {body.author, body.repost_of_author} if is_plain else {body.author}
        return self.hidden.isdisjoint(authors)

    def of(self, name: str) -> Shown:
        """Return the content that an exit must show."""
        world, visible = self.world, {*self.users} - self.hidden
        newest = sorted(filter(self.shows, world.posts), reverse=True)
        texts = [post for post in newest if world.posts[post].text]
        likers = {post: [user for user, _ in world.likers(post) if user not in self.hidden] for post in self.posts}
        match name:
            case "profiles":
                return Shown([[user for user in self.users if user not in world.suspended | world.deleted]], [])
            case "nodes":
                return Shown([], [[*filter(self.shows, self.posts)]])
            case "timelines":
                return Shown([], [[*filter(self.shows, world.own(user))] for user in self.users])
            case "replied":
                return Shown([], [[*filter(self.shows, world.replied(user))] for user in self.users])
            case "threads":
                return Shown([], [[*filter(self.shows, world.replies(post))] for post in self.posts])
            case "reposts":
                return Shown([], [[*filter(self.shows, world.reposts(post))] for post in self.posts])
            case "quotes":
                return Shown([], [[*filter(self.shows, world.quotes(post))] for post in self.posts])
            case "likes":
                return Shown([likers[post] for post in self.posts], [])
            case "search":
                return Shown([], [[post for post in texts if world.posts[post].author in self.users]])
            case "found_users":
                return Shown([sorted(visible, reverse=True)], [])
            case _:
                public = [post for post in texts if world.posts[post].listed]
                return Shown([], [[post for post in public if world.posts[post].author not in self.muted]])


EXITS = tuple(name for name in vars(Exits) if not name.startswith("_"))
COMPARED = tuple(name for name in EXITS if name not in ("followers", "following", "liked"))
exits = st.sampled_from(EXITS)


class SuspensionRules(ListRules):
    """The part of the machine in which operators suspend users, and clients visit every exit."""

    @precondition(lambda self: self.disaster is Disaster.NONE)
    @rule(
        process=st.sampled_from(PROCESSES),
        user=users,
        kind=st.sampled_from(("suspend", "suspend", "unsuspend", "unsuspend", "log in")),
        calls=calls,
    )
    def change_suspension(self, process: str, user: int, kind: str, calls: int) -> None:
        """An operator suspends a user or ends the suspension, or the user logs in."""
        subject, graph = self.user_at(user), self.graph_of(process)
        work = graph.sessions.start(subject) if kind == "log in" else getattr(graph.moderation, kind)(subject)
        self._launch(self.history.start(process, kind, subject), work, calls)

    @rule(process=apis, viewer=st.none() | users, name=exits, calls=calls)
    def visit(self, process: str, viewer: int | None, name: str, calls: int) -> None:
        """A viewer or an anonymous client visits an exit."""
        who, graph = None if viewer is None else self.user_at(viewer), self.graph_of(process)
        posts = [op.result for op in self.history.operations if op.kind in ("publish", "repost") and op.done]
        seen = Exits(graph, graph.visibility.of(who), self.users, [post.id for post in posts[-9:]])
        self._launch(self.history.start(process, "visit", who, name), getattr(seen, name)(), calls)

    def check_result(self, operation: Operation) -> None:
        super().check_result(operation)
        if operation.kind == "log in" and operation.done:
            period = operation.started, operation.returned or self.history.now
            assert not self.history.certainly_suspended(operation.subject[0], *period), "a suspended user has logged in"
        if operation.kind == "visit" and operation.done and not self.history.after_disaster:
            viewer = operation.subject[0]
            if viewer is None or self.history.certainly_deleted(viewer, self.history.now) is False:
                self._check_visit(operation)

    def _check_visit(self, visit: Operation) -> None:
        """Check that an exit showed no user who was hidden throughout the visit, and no post deleted before it."""
        [viewer, name], end = visit.subject, visit.returned or self.history.now
        known = {
            op.result.id: op.result for op in self.history.operations if op.kind in ("publish", "repost") and op.done
        }
        posts = [known[post] for some in visit.result.posts for post in some if post in known]
        shown = {user for some in visit.result.users for user in some}
        shown |= {author for post in posts for author in self.history.authors(post)}
        for post in posts:
            self.history.check_existed(post, visit.started)
        for user in shown:
            suspended = self.history.certainly_suspended(user, visit.started, end)
            assert not suspended, f"{name} showed {user}, who is suspended"
            assert not self.history.certainly_deleted(user, visit.started), f"{name} showed {user}, who is deleted"
            if viewer is not None and name != "profiles":
                silenced = self.history.certainly_silenced(viewer, user, visit.started, end, mutes=name == "public")
                assert not silenced, f"{name} showed {user} to {viewer}, from whom {user} is hidden"


async def check_exits(graph: Graph, world: World, users: Sequence[int]) -> None:
    """Check every exit for an anonymous client and for one of the users, and that suspended users have no sessions.

    `check_fold` compares follows, and `check_likes` the likes of users.
    """
    for user in world.suspended | world.deleted:
        assert await graph.sessions.live_sessions(user) == [], "a suspended or deleted user has a session"
    posts = sorted(world.posts)
    for viewer in (None, users[len(posts) % len(users)]):
        seen, expected = Exits(graph, graph.visibility.of(viewer), users, posts), Expected(world, viewer, users, posts)
        for name in COMPARED:
            assert (name, await getattr(seen, name)()) == (name, expected.of(name))
        hidden = world.hidden(viewer)
        for shown in (await seen.followers(), await seen.following()):
            for owner, found in zip(users, shown.users, strict=True):
                assert hidden.isdisjoint(found)
                assert not found or owner not in hidden
