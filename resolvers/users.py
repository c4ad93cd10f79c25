"""People: look-up by id and login, counts, and the lists of followers and followings."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Annotated

import strawberry

from executor.loader import DataLoader
from graph.model import Follow, Page, User
from graph.paging import CursorKind, Window
from resolvers import ids
from resolvers.connections import After, Before, First, FollowPage, Last
from resolvers.context import Context
from resolvers.inputs import UserBy
from resolvers.loaders import PageKey
from resolvers.references import Identified, Reference, refer
from resolvers.times import Moment, moments

By = Annotated[UserBy, strawberry.argument(description="The id or login to look up.")]


def viewer(context: Context) -> Awaitable[User | None] | None:
    """Give the person who asks; None if anonymous. One round trip."""
    return None if context.viewer is None else context.loaders.users.load(context.viewer.user)


def viewer_reference(context: Context) -> Reference | None:
    """Refer to the person who asks."""
    return None if context.viewer is None else Reference(context.viewer.user)


async def user(context: Context, *, by: By) -> User | None:
    """Find a person by global id or a known login (one round trip), or by a login met first (two).

    Raises BadInput for a malformed id.
    """
    found = known_id(context, by)
    if found is None and by.id is None:
        found = await context.loaders.logins.load(by.login or "")
    return None if found is None else await context.loaders.users.load(found)


def user_reference(context: Context, *, by: By) -> Reference | None:
    """Refer to the person who is asked for, if that is clear without a look-up. Raises BadInput."""
    found = known_id(context, by)
    return None if found is None else Reference(found)


def known_id(context: Context, by: UserBy) -> int | None:
    """Give the id of a person who is asked for by it, or by a login met before. Raises BadInput."""
    if by.id is not None:
        return ids.number(ids.Kind.USER, by.id)
    return context.graph.users.remembered_id(by.login or "")


def global_ids(users: Sequence[Identified], context: Context) -> list[str]:
    """Give people's global ids."""
    return ids.encode_all(ids.Kind.USER, [user.id for user in users])


def joining_times(users: Sequence[Identified], context: Context) -> list[Moment]:
    """Tell when people signed up."""
    return moments([user.id for user in users])


def followers_counts(users: Sequence[Identified], context: Context) -> Awaitable[list[int]]:
    """Count people's followers. One round trip."""
    return context.loaders.followers_counts.load_many([user.id for user in users])


def following_counts(users: Sequence[Identified], context: Context) -> Awaitable[list[int]]:
    """Count whom people follow. One round trip."""
    return context.loaders.following_counts.load_many([user.id for user in users])


def posts_counts(users: Sequence[Identified], context: Context) -> Awaitable[list[int]]:
    """Count people's posts. One round trip."""
    return context.loaders.posts_counts.load_many([user.id for user in users])


def followers(
    users: Sequence[Identified],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[FollowPage]]:
    """Page through people's followers, newest first. One round trip; raises BadPaging."""
    window = Window.of(CursorKind.FOLLOW, first=first, after=after, last=last, before=before)
    return context.start(pages_of(context.loaders.followers, users, window, incoming=True))


def following(
    users: Sequence[Identified],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[FollowPage]]:
    """Page through those whom people follow, newest first. One round trip; raises BadPaging."""
    window = Window.of(CursorKind.FOLLOW, first=first, after=after, last=last, before=before)
    return context.start(pages_of(context.loaders.following, users, window, incoming=False))


async def pages_of(
    loader: DataLoader[PageKey, Page[Follow]], users: Sequence[Identified], window: Window, *, incoming: bool
) -> list[FollowPage]:
    """Read a page of each person's list."""
    pages = await loader.load_many([(user.id, window) for user in users])
    return [FollowPage(user.id, incoming, page) for user, page in zip(users, pages, strict=True)]


def follow_users(follows: Sequence[Follow], context: Context) -> Awaitable[list[User | None]]:
    """Give the person at the other end of each follow. One round trip."""
    return context.loaders.users.load_many([follow.user for follow in follows])


def follow_references(follows: Sequence[Follow], context: Context) -> list[Reference]:
    """Refer to the person at the other end of each follow."""
    return refer([follow.user for follow in follows])


def following_times(follows: Sequence[Follow], context: Context) -> list[Moment]:
    """Tell when follows began."""
    return moments([follow.number for follow in follows])


async def page_users(pages: Sequence[FollowPage], context: Context) -> list[list[User | None]]:
    """Give the people of each page, without their edges. One round trip."""
    people = iter(await follow_users([follow for page in pages for follow in page.edges], context))
    return [[next(people) for _ in page.edges] for page in pages]


async def total_counts(pages: Sequence[FollowPage], context: Context) -> list[int]:
    """Count the whole lists that pages are of. One round trip, shared with the owners' counts."""
    loaders = context.loaders
    counts = await asyncio.gather(
        loaders.followers_counts.load_many(page.owner for page in pages if page.incoming),
        loaders.following_counts.load_many(page.owner for page in pages if not page.incoming),
    )
    followers, following = map(iter, counts)
    return [next(followers if page.incoming else following) for page in pages]
