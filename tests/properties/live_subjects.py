"""The expected state of the live feed: what timelines and threads contain, and how clients read them and subscribe."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from graph import Graph
from graph.feed.feed import Feed
from graph.feed.handover import Courier
from graph.log.events import Blocked, Event, Followed, ListChanged, PostDeleted, PostPublished, Unblocked, Unfollowed
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.pair_events import Muted, Unmuted
from graph.paging import Window
from graph.post_lists import REPLIED, REPLIES, TIMELINE, PostList
from tests.properties.executed import HOME, THREAD, TIMELINE_EVENTS, Executed
from tests.support.graph_worlds import home


@dataclass
class World:
    """The expected state: follows, mutes and blocks, posts, all events, and the end of what retention has removed.

    `executed` has the executions of each feed's process. `suspected` are the users who are or were suspended: streams
    may omit their actions.
    """

    people: list[int]
    follows: set[tuple[int, int]] = field(default_factory=set)
    mutes: set[tuple[int, int]] = field(default_factory=set)
    blocks: set[tuple[int, int]] = field(default_factory=set)
    suspended: set[int] = field(default_factory=set)
    suspected: set[int] = field(default_factory=set)
    posts: dict[int, int] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    members: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    trimmed: int = 0
    executed: dict[Feed, Executed] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Apply an event."""
        self.events.append(event)
        match event.body:
            case PostPublished(author, reply_to=parent):
                self.posts[event.number] = author
                self.parents |= {} if parent is None else {event.number: parent}
            case ListChanged() as change:
                self.members = (self.members | {*change.added}) - {*change.removed}
            case PostDeleted(_, post):
                self.posts.pop(post, None)
                self.deleted.add(post)
            case Followed(follower, followee):
                if self.blocks.isdisjoint({(follower, followee), (followee, follower)}):
                    self.follows.add((follower, followee))
            case Unfollowed(follower, followee):
                self.follows.discard((follower, followee))
            case Muted(user, other):
                self.mutes.add((user, other))
            case Unmuted(user, other):
                self.mutes.discard((user, other))
            case Blocked(user, other) | Unblocked(user, other):
                (self.blocks.add if isinstance(event.body, Blocked) else self.blocks.discard)((user, other))
                self.follows -= {(user, other), (other, user)}
            case UserSuspended(user):
                self.suspended.add(user)
                self.suspected.add(user)
            case UserUnsuspended(user):
                self.suspended.discard(user)
            case _:
                pass

    def followed(self, viewer: int) -> set[int]:
        """Return the users whom a viewer follows and does not mute."""
        return {other for user, other in self.follows - self.mutes if user == viewer}

    def muted(self, viewer: int) -> set[int]:
        """Return the users whom a viewer mutes."""
        return {other for user, other in self.mutes if user == viewer}

    def hides(self, viewer: int | None, user: int) -> bool:
        """Return True if a user is hidden from a viewer. None is an anonymous client."""
        return user in self.suspended or any({viewer, user} == {*pair} for pair in self.blocks)

    def by(self, authors: set[int]) -> set[int]:
        """Return the posts of authors who are not suspended."""
        return {post for post, author in self.posts.items() if author in authors - self.suspended}


class Subject(ABC):
    """A timeline that a client holds."""

    document = TIMELINE_EVENTS

    @abstractmethod
    def stream(self, feed: Feed, after: int | None, courier: Courier) -> AsyncGenerator[Any]:
        """Subscribe to the timeline."""

    @abstractmethod
    async def read(self, graph: Graph) -> list[int]:
        """Return the posts of the timeline."""

    @abstractmethod
    def expected(self, world: World) -> set[int]:
        """Return the posts of the timeline according to its definition."""


@dataclass(frozen=True)
class Home(Subject):
    """The home timeline of a viewer."""

    viewer: int
    document = HOME

    def stream(self, feed: Feed, after: int | None, courier: Courier) -> AsyncGenerator[Any]:
        return feed.home(self.viewer, after, courier=courier)

    async def read(self, graph: Graph) -> list[int]:
        return await home(graph, self.viewer)

    def expected(self, world: World) -> set[int]:
        return world.by(world.followed(self.viewer) | {self.viewer}) - world.parents.keys()


@dataclass(frozen=True)
class Own(Subject):
    """The posts of a user, or the user's replies, as a viewer or an anonymous client sees them."""

    owner: int
    viewer: int | None
    post_list: PostList = TIMELINE

    def stream(self, feed: Feed, after: int | None, courier: Courier) -> AsyncGenerator[Any]:
        return feed.timeline(self.viewer, self.post_list, self.owner, after, courier=courier)

    async def read(self, graph: Graph) -> list[int]:
        view, all_posts = graph.visibility.of(self.viewer), Window(1000, forward=True)
        [page] = await graph.timelines.pages_of(view, self.post_list, [self.owner], all_posts)
        return [post.id for post in page.items]

    def expected(self, world: World) -> set[int]:
        posts = world.parents.keys() if self.post_list is REPLIED else world.posts.keys() - world.parents.keys()
        return set() if world.hides(self.viewer, self.owner) else world.by({self.owner}) & posts


@dataclass(frozen=True)
class OfList(Subject):
    """The timeline of a list."""

    viewer: int
    list_id: int

    def stream(self, feed: Feed, after: int | None, courier: Courier) -> AsyncGenerator[Any]:
        return feed.list_timeline(self.viewer, self.list_id, after, courier=courier)

    async def read(self, graph: Graph) -> list[int]:
        view = graph.visibility.of(self.viewer)
        page = await graph.list_timelines.page(view, self.viewer, self.list_id, Window(1000, forward=True))
        return [post.id for post in page.items]

    def expected(self, world: World) -> set[int]:
        shown = {user for user in world.members - world.muted(self.viewer) if not world.hides(self.viewer, user)}
        return world.by(shown) - world.parents.keys()


@dataclass(frozen=True)
class Thread(Subject):
    """The direct replies to a post."""

    post: int
    viewer: int | None
    document = THREAD

    def stream(self, feed: Feed, after: int | None, courier: Courier) -> AsyncGenerator[Any]:
        return feed.thread(self.viewer, self.post, None, after)

    async def read(self, graph: Graph) -> list[int]:
        view, all_posts = graph.visibility.of(self.viewer), Window(1000, forward=True)
        [page] = await graph.timelines.pages_of(view, REPLIES, [self.post], all_posts)
        return [post.id for post in page.items]

    def expected(self, world: World) -> set[int]:
        shown = {user for user in world.people if not world.hides(self.viewer, user)}
        return world.by(shown) & {reply for reply, parent in world.parents.items() if parent == self.post}
