"""The dataloaders of one request. Every look-up in the social graph goes through one of them.

A loader looks each key up at most once per request. A list of keys takes one call to the graph, and the store sends the
calls of a few event-loop iterations in one round trip.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from executor.loader import DataLoader
from graph import Graph
from graph.log.notification_groups import Group, Notification
from graph.model import BookmarkedPost, Follow, Like, LikedPost, Page, Post, Relationship, Session, User, UserList
from graph.paging import Window
from graph.people.known_followers import KnownFollowers, known_followers
from graph.post_lists import QUOTES, REPLIED, REPLIES, REPOSTS, TIMELINE, PostList
from graph.search.post_search import Search
from graph.visibility.views import View
from resolvers.page_loading import (
    IsolatedFailures,
    KindsOfUser,
    PageKey,
    UnshownFailures,
    each_page,
    list_pages,
    marked_pages,
    notification_pages,
    pages_by_window,
    pages_within_budget,
    scanned_pages,
    unread_counts,
)
from resolvers.recording import make_loader
from resolvers.windows import LoadPages, SharedWindows

K = TypeVar("K")
O = TypeVar("O", bound=Hashable)  # noqa: E741 - the owner of a list
T = TypeVar("T")
V = TypeVar("V")


class lazy(Generic[V]):  # noqa: N801 - used like a property
    """A cached property that avoids the lock of `functools.cached_property` in Python 3.11."""

    def __init__(self, make: Callable[[Any], V]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, owner: Any, kind: type | None = None) -> V:
        made: V = self._make(owner)
        owner.__dict__[self._name] = made
        return made


class Loaders:
    """One dataloader for each kind of look-up, created on first use. `viewer` is the viewer's id, or None if anonymous.

    `view` decides which users and posts the viewer may see; all look-ups share it. Create the loaders when the request
    begins, and again after a write: look-ups never return a state of the store that is older than the loaders. Look-ups
    of ids in `unshown` raise StoreUnavailable.
    """

    def __init__(
        self, graph: Graph, viewer: int | None, view: View | None = None, unshown: Collection[int] = ()
    ) -> None:
        self._graph = graph
        self._viewer = viewer
        self._unshown = unshown
        self._moment = graph.store.begin()
        self.view = view or graph.visibility.of(viewer, self._moment)

    def _loader(self, name: str, get_many: Callable[[list[K]], Awaitable[Sequence[V | Exception]]]) -> DataLoader[K, V]:
        if self._unshown:
            get_many = UnshownFailures(get_many, self._unshown)
        return make_loader(name, get_many, self._graph.store.running_loop())

    def _page_loader(self, name: str, load: LoadPages[O, Page[T]]) -> DataLoader[tuple[O, Window], Page[T]]:
        """Return a loader of pages by owner and window. If the archive is down, only the pages that need it fail."""
        return self._loader(name, SharedWindows(IsolatedFailures(load), Window.cut))

    @lazy
    def users(self) -> DataLoader[int, User | None]:
        """Users by id; None if there is none, or if the user is suspended."""
        return self._loader(
            "users", partial(self._graph.users.visible, self.view, load=self.unchecked_users.fetch_many)
        )

    @lazy
    def unchecked_users(self) -> DataLoader[int, User | None]:
        """Users by id, without a visibility check, such as the authors of posts that the viewer may see."""
        return self._loader("unchecked_users", partial(self._graph.users.get_many, moment=self._moment))

    @lazy
    def logins(self) -> DataLoader[str, int | None]:
        """User ids by login, ignoring case; None if there is none."""
        return self._loader("logins", self._graph.users.ids_of_logins)

    @lazy
    def followers_counts(self) -> DataLoader[int, int]:
        """Numbers of followers by user id."""
        return self._loader("followers_counts", partial(self._graph.users.followers_counts, moment=self._moment))

    @lazy
    def following_counts(self) -> DataLoader[int, int]:
        """Numbers of followed users by user id."""
        return self._loader("following_counts", partial(self._graph.users.following_counts, moment=self._moment))

    @lazy
    def posts_counts(self) -> DataLoader[int, int]:
        """Numbers of posts by user id."""
        return self._loader("posts_counts", partial(self._graph.users.posts_counts, moment=self._moment))

    @lazy
    def sessions(self) -> DataLoader[int, list[Session]]:
        """Live sessions by user id, newest first. Only the viewer may see them."""
        return self._loader("sessions", partial(lists_of_sessions, self._graph))

    @lazy
    def posts(self) -> DataLoader[int, Post | None]:
        """Undeleted posts and plain reposts by id; None if there is none, or if it is hidden from the viewer."""
        return self._loader("posts", IsolatedFailures(partial(self._graph.posts.get_many, self.view)))

    @lazy
    def relationships(self) -> DataLoader[int, Relationship]:
        """Relationships between the viewer and other users, by the other user's id. Raises ValueError if anonymous."""
        if self._viewer is None:
            raise ValueError("Relationships need a viewer, but the request is anonymous. Check for a viewer first.")
        between = self._graph.relationships.between
        return self._loader("relationships", partial(between, self._viewer, view=self.view))

    @lazy
    def followers(self) -> DataLoader[PageKey, Page[Follow]]:
        """Pages of followers by user id and window."""
        return self._page_loader(
            "followers", partial(pages_by_window, partial(self._graph.follows.followers, self.view))
        )

    @lazy
    def following(self) -> DataLoader[PageKey, Page[Follow]]:
        """Pages of followed users by user id and window."""
        return self._page_loader(
            "following", partial(pages_by_window, partial(self._graph.follows.following, self.view))
        )

    @lazy
    def known_followers(self) -> DataLoader[PageKey, KnownFollowers]:
        """Pages of followers whom the viewer follows, by user id and window. Raises ValueError if anonymous."""
        if self._viewer is None:
            raise ValueError("Known followers need a viewer, but the request is anonymous. Check for a viewer first.")
        load = partial(known_followers, self._graph.store, self._viewer, view=self.view)
        shared = SharedWindows(partial(pages_by_window, load), lambda window, known: known.cut(window))
        return self._loader("known_followers", shared)

    @lazy
    def likes(self) -> DataLoader[PageKey, Page[Like]]:
        """Pages of likes by post id and window."""
        load = partial(self._graph.likes.pages.of_posts, self.view)
        return self._page_loader("likes", partial(pages_by_window, load))

    @lazy
    def viewer_likes(self) -> DataLoader[int, bool]:
        """Whether the viewer likes posts, by post id. Raises ValueError if anonymous."""
        if self._viewer is None:
            raise ValueError("Likes need a viewer, but the request is anonymous. Check for a viewer first.")
        return self._loader("viewer_likes", IsolatedFailures(partial(self._graph.likes.liked_among, self._viewer)))

    @lazy
    def viewer_bookmarks(self) -> DataLoader[int, bool]:
        """Whether the viewer has bookmarked posts, by post id. Raises ValueError if anonymous."""
        if self._viewer is None:
            raise ValueError("Bookmarks need a viewer, but the request is anonymous. Check for a viewer first.")
        return self._loader("viewer_bookmarks", partial(self._graph.bookmarks.bookmarked_among, self._viewer))

    @lazy
    def viewer_reposts(self) -> DataLoader[int, bool]:
        """Whether the viewer has made plain reposts of posts, by post id. Raises ValueError if anonymous."""
        if self._viewer is None:
            raise ValueError("Reposts need a viewer, but the request is anonymous. Check for a viewer first.")
        return self._loader("viewer_reposts", partial(self._graph.reposts.reposted_among, self._viewer))

    @lazy
    def notifications(self) -> DataLoader[Group, Notification | None]:
        """Notifications of the viewer by group of events; None if there is none. Raises ValueError if anonymous."""
        if self._viewer is None:
            raise ValueError("Notifications need a viewer, but the request is anonymous. Check for a viewer first.")
        return self._loader("notifications", IsolatedFailures(partial(self._graph.notifications.get_many, self.view)))

    @lazy
    def notification_pages(self) -> DataLoader[tuple[KindsOfUser, Window], Page[Notification]]:
        """Pages of the viewer's notifications, by the viewer's id, kinds and window. Adds the posts to `posts`."""
        return self._page_loader("notification_pages", partial(notification_pages, self._graph, self.view, self.posts))

    @lazy
    def unread_counts(self) -> DataLoader[int, int]:
        """Numbers of unread notifications of the viewer, by the viewer's id."""
        return self._loader("unread_counts", IsolatedFailures(partial(unread_counts, self._graph, self.view)))

    @lazy
    def home_timelines(self) -> DataLoader[PageKey, Page[Post]]:
        """Pages of home timelines by owner id and window. Adds the posts to `posts`."""
        read = partial(self._graph.timelines.home, view=self.view)
        return self._page_loader("home_timelines", partial(pages_within_budget, read, self.posts))

    @lazy
    def user_timelines(self) -> DataLoader[PageKey, Page[Post]]:
        """Pages of users' own posts by author id and window. Adds the posts to `posts`."""
        return self._list_loader("user_timelines", TIMELINE)

    @lazy
    def reply_timelines(self) -> DataLoader[PageKey, Page[Post]]:
        """Pages of authors' replies by author id and window. Adds the posts to `posts`."""
        return self._list_loader("reply_timelines", REPLIED)

    @lazy
    def lists_of_users(self) -> DataLoader[int, list[UserList]]:
        """All lists of an owner by the owner's id, newest first. Only the viewer may see them."""
        return self._loader("lists_of_users", partial(lists_of_owners, self._graph))

    @lazy
    def lists(self) -> DataLoader[int, UserList | None]:
        """User lists of the viewer by id; None if there is none, or if it belongs to another user."""
        return self._loader("lists", partial(self._graph.lists.get_many, self._owner))

    @lazy
    def list_counts(self) -> DataLoader[int, int]:
        """Numbers of members of the viewer's lists by id."""
        return self._loader("list_counts", partial(self._graph.lists.counts, self._owner))

    @lazy
    def list_members(self) -> DataLoader[PageKey, Page[Follow]]:
        """Pages of members of the viewer's lists by id and window."""
        load = partial(self._graph.lists.members, self.view, self._owner)
        return self._page_loader("list_members", partial(pages_by_window, load))

    @lazy
    def list_timelines(self) -> DataLoader[PageKey, Page[Post]]:
        """Pages of timelines of the viewer's lists by list id and window. Adds the posts to `posts`."""
        read = partial(self._graph.list_timelines.page, self.view, self._owner)
        return self._page_loader("list_timelines", partial(pages_within_budget, read, self.posts))

    @property
    def _owner(self) -> int:
        """The viewer, as the owner of lists. Raises ValueError if anonymous."""
        if self._viewer is None:
            raise ValueError("Lists need a viewer, but the request is anonymous. Check for a viewer first.")
        return self._viewer

    @lazy
    def public_timelines(self) -> DataLoader[PageKey, Page[Post]]:
        """Pages of the public timeline by archive watermark and window. Adds the posts to `posts`."""
        read = partial(scanned_pages, partial(self._graph.public_timeline.page, self.view), self.posts)
        return self._page_loader("public_timelines", read)

    @lazy
    def found_posts(self) -> DataLoader[tuple[Search, Window], Page[Post]]:
        """Pages of the posts that searches find, by search and window. Adds the posts to `posts`."""
        read = partial(scanned_pages, partial(self._graph.searches.posts, self.view), self.posts)
        return self._page_loader("found_posts", read)

    @lazy
    def liked_posts(self) -> DataLoader[PageKey, Page[LikedPost]]:
        """Pages of the posts that users like, by user id and window. Adds the posts to `posts`. For the viewer only."""
        read = partial(self._graph.likes.pages.of_user, self.view)
        return self._page_loader("liked_posts", partial(marked_pages, read, self.posts))

    @lazy
    def bookmarks(self) -> DataLoader[PageKey, Page[BookmarkedPost]]:
        """Pages of bookmarks, by user id and window. Adds the posts to `posts`. For the viewer only."""
        read = partial(self._graph.bookmarks.page, self.view)
        return self._page_loader("bookmarks", partial(marked_pages, read, self.posts))

    @lazy
    def muted_users(self) -> DataLoader[PageKey, Page[Follow]]:
        """Pages of the users whom a user mutes, by user id and window. For the viewer only."""
        return self._page_loader("muted_users", partial(each_page, self._graph.blocks.muted))

    @lazy
    def blocked_users(self) -> DataLoader[PageKey, Page[Follow]]:
        """Pages of the users whom a user blocks, by user id and window. For the viewer only."""
        return self._page_loader("blocked_users", partial(each_page, self._graph.blocks.blocked))

    @lazy
    def replies(self) -> DataLoader[PageKey, Page[Post]]:
        """Pages of replies to posts by post id and window. Adds the posts to `posts`."""
        return self._list_loader("replies", REPLIES)

    @lazy
    def reposts(self) -> DataLoader[PageKey, Page[Post]]:
        """Pages of plain reposts of posts by post id and window. Adds the posts to `posts`."""
        return self._list_loader("reposts", REPOSTS)

    @lazy
    def quotes(self) -> DataLoader[PageKey, Page[Post]]:
        """Pages of quotes of posts by post id and window. Adds the posts to `posts`."""
        return self._list_loader("quotes", QUOTES)

    def _list_loader(self, name: str, post_list: PostList) -> DataLoader[PageKey, Page[Post]]:
        read = partial(list_pages, self._graph, self.view, self.posts, post_list)
        return self._page_loader(name, read)


async def lists_of_owners(graph: Graph, users: Sequence[int]) -> list[list[UserList]]:
    """Return the lists of each user. One round trip per user; in practice, only the viewer's lists are requested."""
    return [await graph.lists.of_user(user) for user in users]


async def lists_of_sessions(graph: Graph, users: Sequence[int]) -> list[list[Session]]:
    """Return the live sessions of users. One round trip."""
    return await asyncio.gather(*map(graph.sessions.live_sessions, users))
