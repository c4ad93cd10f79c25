"""The resolvers of users: look-ups by id and login, counts, followers and followed users."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Annotated

import strawberry

from executor.loader import DataLoader
from graph.model import Follow, Page, User
from graph.paging import CursorKind, Window
from graph.people.known_followers import KnownFollowers
from graph.text.media_hosts import may_show
from resolvers import ids
from resolvers.connections import After, Before, First, FollowPage, Last
from resolvers.context import Context
from resolvers.inputs import UserBy
from resolvers.page_loading import PageKey
from resolvers.references import Identified, Reference, refer
from resolvers.times import FormattedTime, format_times

By = Annotated[UserBy, strawberry.argument(description="The id or login to look up.")]


def user(context: Context, *, by: By) -> Awaitable[User | None] | None:
    """Return the user with a global id or login, or None if there is none.

    One round trip, or two for a login that is not in the cache of logins. Raises BadInput for a malformed id.
    """
    number = known_id(context, by)
    if number is not None:
        return context.loaders.users.fetch(number)
    return None if by.id is not None else user_by_login(context, by.login or "")


async def user_by_login(context: Context, login: str) -> User | None:
    """Return the user with a login, or None if there is none. Two round trips."""
    number = await context.loaders.logins.fetch(login)
    return None if number is None else await context.loaders.users.fetch(number)


def user_reference(context: Context, *, by: By) -> Reference | None:
    """Return a reference to the user, or None if finding the id takes a look-up. Raises BadInput for a malformed id."""
    number = known_id(context, by)
    return None if number is None else Reference(number)


def known_id(context: Context, by: UserBy) -> int | None:
    """Return the user's id if it is given or is cached for the login, else None. Raises BadInput if malformed."""
    if by.id is not None:
        return ids.number(ids.Kind.USER, by.id)
    return context.graph.users.remembered_id(by.login or "")


def global_ids(users: Sequence[Identified], context: Context) -> list[str]:
    """Return the global ids of users."""
    return ids.encode_all(ids.Kind.USER, [user.id for user in users])


def avatar_urls(users: Sequence[User], context: Context) -> list[str | None]:
    """Return the URLs of the users' pictures; None for a URL on a host that the operator does not allow."""
    hosts = context.graph.tuning.media_hosts
    return [user.avatar_url if user.avatar_url and may_show(user.avatar_url, hosts) else None for user in users]


def joining_times(users: Sequence[Identified], context: Context) -> list[FormattedTime]:
    """Return the times when users signed up."""
    return format_times([user.id for user in users])


def followers_counts(users: Sequence[Identified], context: Context) -> Awaitable[list[int]]:
    """Return the numbers of followers. One round trip."""
    return context.loaders.followers_counts.fetch_many([user.id for user in users])


def following_counts(users: Sequence[Identified], context: Context) -> Awaitable[list[int]]:
    """Return the numbers of followed users. One round trip."""
    return context.loaders.following_counts.fetch_many([user.id for user in users])


def posts_counts(users: Sequence[Identified], context: Context) -> Awaitable[list[int]]:
    """Return each user's number of posts. One round trip."""
    return context.loaders.posts_counts.fetch_many([user.id for user in users])


def followers(
    users: Sequence[Identified],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[FollowPage]]:
    """Return a page of each user's followers, newest first. One round trip. Raises BadPaging."""
    window = Window.of(CursorKind.FOLLOW, first=first, after=after, last=last, before=before)
    return follow_pages(context.loaders.followers, users, window, incoming=True)


def following(
    users: Sequence[Identified],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[FollowPage]]:
    """Return a page of the users whom each user follows, newest first. One round trip. Raises BadPaging."""
    window = Window.of(CursorKind.FOLLOW, first=first, after=after, last=last, before=before)
    return follow_pages(context.loaders.following, users, window, incoming=False)


def followers_you_know(
    users: Sequence[Identified],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[FollowPage | Exception | None]]:
    """Return a page of each user's followers whom the viewer follows, newest first; None for anonymous requests.

    Two round trips. Raises BadPaging.
    """
    window = Window.of(CursorKind.FOLLOW, first=first, after=after, last=last, before=before)
    return context.start(known_follower_pages(users, context, window))


async def known_follower_pages(
    users: Sequence[Identified], context: Context, window: Window
) -> list[FollowPage | Exception | None]:
    """Return a page of each user's followers whom the viewer follows; None for anonymous requests.

    ScanLimit takes the place of each page that exceeds the operation's budget.
    """
    if context.viewer is None:
        return [None] * len(users)
    found = await context.loaders.known_followers.fetch_many([(user.id, window) for user in users])
    known: list[KnownFollowers | Exception] = [*found]
    return [
        each if isinstance(each, Exception) else FollowPage(user.id, True, *each)
        for user, each in zip(users, known, strict=True)
    ]


def follow_pages(
    loader: DataLoader[PageKey, Page[Follow]], users: Sequence[Identified], window: Window, *, incoming: bool
) -> Awaitable[list[FollowPage]]:
    """Return a page of each user's list."""

    def convert(pages: list[Page[Follow]]) -> list[FollowPage]:
        return [FollowPage(user.id, incoming, page) for user, page in zip(users, pages, strict=True)]

    return loader.fetch_many([(user.id, window) for user in users]).then(convert)


def follow_users(follows: Sequence[Follow], context: Context) -> Awaitable[list[User | None]]:
    """Return the other user of each follow. One round trip."""
    return context.loaders.unchecked_users.fetch_many([follow.user for follow in follows])


def follow_references(follows: Sequence[Follow], context: Context) -> list[Reference]:
    """Return a reference to the other user of each follow."""
    return refer([follow.user for follow in follows])


def following_times(follows: Sequence[Follow], context: Context) -> list[FormattedTime]:
    """Return the times when follows began."""
    return format_times([follow.number for follow in follows])


async def page_users(pages: Sequence[FollowPage], context: Context) -> list[list[User | None]]:
    """Return the users of each page. One round trip."""
    users = iter(await follow_users([follow for page in pages for follow in page.edges], context))
    return [[next(users) for _ in page.edges] for page in pages]


async def total_counts(pages: Sequence[FollowPage], context: Context) -> list[int]:
    """Return the total length of each list. One round trip, shared with the owners' counts; none if all are known."""
    loaders = context.loaders
    unknown = [page for page in pages if page.total is None]
    counts = await asyncio.gather(
        loaders.followers_counts.load_many(page.owner for page in unknown if page.incoming),
        loaders.following_counts.load_many(page.owner for page in unknown if not page.incoming),
    )
    followers, following = map(iter, counts)
    return [next(followers if page.incoming else following) if page.total is None else page.total for page in pages]
