"""The dataloaders of one request: every look-up in the social graph goes through one of these.

Each is fresh with its `Context`. A list of keys is one call of the graph, which sends the calls of a few goes of the
event loop in one round trip. All resolvers go through a loader, so that what one has found or begun to look up, no
other asks for again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from graph import Graph
from graph.errors import ArchiveUnavailable
from graph.model import Follow, Page, Post, Relationship, User
from graph.paging import Window
from resolvers.bulk import BulkLoader

K = TypeVar("K")
V = TypeVar("V")

Asked: TypeAlias = tuple[int, Window]


class lazy(Generic[V]):  # noqa: N801 - it is used like a property
    """A property that is made when it is first asked for, without the lock that the library's takes each time."""

    def __init__(self, make: Callable[[Any], V]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, owner: Any, kind: type | None = None) -> V:
        made: V = self._make(owner)
        owner.__dict__[self._name] = made
        return made


class Loaders:
    """One loader for each kind of look-up. `viewer` is the id of the one who asks, None if anonymous."""

    def __init__(self, graph: Graph, viewer: int | None) -> None:
        self._graph = graph
        self._viewer = viewer

    @lazy
    def users(self) -> BulkLoader[int, User | None]:
        """People by id."""
        return BulkLoader(self._graph.users.get_many)

    @lazy
    def logins(self) -> BulkLoader[str, int | None]:
        """Ids of people by login, in any case of letters."""
        return BulkLoader(self._graph.users.ids_of_logins)

    @lazy
    def followers_counts(self) -> BulkLoader[int, int]:
        """How many followers people have, by id."""
        return BulkLoader(self._graph.users.followers_counts)

    @lazy
    def following_counts(self) -> BulkLoader[int, int]:
        """How many people follow, by id."""
        return BulkLoader(self._graph.users.following_counts)

    @lazy
    def posts_counts(self) -> BulkLoader[int, int]:
        """How many posts people have, by id."""
        return BulkLoader(self._graph.users.posts_counts)

    @lazy
    def posts(self) -> BulkLoader[int, Post | None]:
        """Find posts by id; None for those that never were or are deleted."""
        return BulkLoader(Apart(self._graph.posts.get_many))

    @lazy
    def relationships(self) -> BulkLoader[int, Relationship]:
        """How the viewer and others stand to each other, by the others' ids. Raises ValueError without a viewer."""
        if self._viewer is None:
            raise ValueError("There is no viewer to relate to.")
        return BulkLoader(partial(self._graph.relationships.between, self._viewer))

    @lazy
    def followers(self) -> BulkLoader[Asked, Page[Follow]]:
        """Pages of followers, by person and window."""
        return BulkLoader(partial(by_window, self._graph.follows.followers), self._graph.store.running_loop())

    @lazy
    def following(self) -> BulkLoader[Asked, Page[Follow]]:
        """Pages of those whom people follow, by person and window."""
        return BulkLoader(partial(by_window, self._graph.follows.following), self._graph.store.running_loop())

    @lazy
    def home_timelines(self) -> BulkLoader[Asked, Page[Post]]:
        """Pages of home timelines, by owner and window; their posts are primed."""
        return BulkLoader(Apart(partial(home_pages, self._graph, self.posts)), self._graph.store.running_loop())

    @lazy
    def user_timelines(self) -> BulkLoader[Asked, Page[Post]]:
        """Pages of people's own posts, by author and window; the posts are primed."""
        return BulkLoader(Apart(partial(user_pages, self._graph, self.posts)), self._graph.store.running_loop())


async def home_pages(graph: Graph, posts: BulkLoader[int, Post | None], asked: Sequence[Asked]) -> list[Page[Post]]:
    """Read pages of home timelines."""
    read = graph.timelines.home
    if len(asked) == 1:
        return primed(posts, [await read(*asked[0])])
    return primed(posts, await asyncio.gather(*(read(*each) for each in asked)))


async def user_pages(graph: Graph, posts: BulkLoader[int, Post | None], asked: Sequence[Asked]) -> list[Page[Post]]:
    """Read pages of people's own posts."""
    return primed(posts, await by_window(graph.timelines.user, asked))


def primed(posts: BulkLoader[int, Post | None], pages: list[Page[Post]]) -> list[Page[Post]]:
    """Take note of the posts of pages."""
    for page in pages:
        posts.prime({post.id: post for post in page.items})
    return pages


async def by_window(
    load: Callable[[Sequence[int], Window], Awaitable[list[Page[V]]]], asked: Sequence[Asked]
) -> list[Page[V]]:
    """Look up people's pages of any windows: with a call for each window."""
    people: dict[Window, list[int]] = {}
    for person, window in asked:
        people.setdefault(window, []).append(person)
    if len(people) == 1:
        [(window, everybody)] = people.items()
        return await load(everybody, window)
    answers = await asyncio.gather(*(load(ids, window) for window, ids in people.items()))
    pages = {
        (person, window): page
        for (window, ids), found in zip(people.items(), answers, strict=True)
        for person, page in zip(ids, found, strict=True)
    }
    return [pages[key] for key in asked]


class Apart(Generic[K, V]):
    """A look-up that asks for each key alone while the archive is down, so that none fails for another's old posts."""

    def __init__(self, load: Callable[[Sequence[K]], Awaitable[Sequence[V]]]) -> None:
        self._load = load

    async def __call__(self, keys: Sequence[K]) -> Sequence[V | Exception]:
        """Look keys up together, or apart."""
        try:
            return await self._load(keys)
        except ArchiveUnavailable as outage:
            return [outage] if len(keys) == 1 else await asyncio.gather(*map(self._alone, keys))

    async def _alone(self, key: K) -> V | Exception:
        try:
            return (await self._load([key]))[0]
        except ArchiveUnavailable as outage:
            return outage
