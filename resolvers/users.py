"""People: look-up by id and login, counts, and the lists of followers and followings."""

from collections.abc import Sequence
from typing import Annotated

import strawberry

from graph.model import Follow, User
from graph.paging import CursorKind, Window
from resolvers import ids
from resolvers.connections import After, Before, First, FollowPage, Last
from resolvers.context import Context
from resolvers.inputs import UserBy


async def viewer(context: Context) -> User | None:
    """Give the person who asks; None if anonymous. One round trip."""
    return None if context.viewer is None else await context.loaders.users.load(context.viewer.user)


async def user(
    context: Context,
    *,
    by: Annotated[UserBy, strawberry.argument(description="The id or the login to look up; exactly one of them.")],
) -> User | None:
    """Find a person by global id or a known login (one round trip), or by a login met first (two).

    Raises BadInput for a malformed id.
    """
    if by.id is not None:
        found = ids.number(ids.Kind.USER, by.id)
    else:
        login = by.login or ""
        found = context.graph.users.remembered_id(login) or await context.loaders.logins.load(login)
    return None if found is None else await context.loaders.users.load(found)


def global_ids(users: Sequence[User], context: Context) -> list[str]:
    """Give people's global ids."""
    return [ids.encode(ids.Kind.USER, user.id) for user in users]


async def followers_counts(users: Sequence[User], context: Context) -> list[int]:
    """Count people's followers. One round trip, shared by all three counts."""
    return [counts.followers for counts in await context.loaders.counts.load_many(user.id for user in users)]


async def following_counts(users: Sequence[User], context: Context) -> list[int]:
    """Count whom people follow. One round trip, shared by all three counts."""
    return [counts.following for counts in await context.loaders.counts.load_many(user.id for user in users)]


async def posts_counts(users: Sequence[User], context: Context) -> list[int]:
    """Count people's posts. One round trip, shared by all three counts."""
    return [counts.posts for counts in await context.loaders.counts.load_many(user.id for user in users)]


async def followers(
    users: Sequence[User],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> list[FollowPage]:
    """Page through people's followers, newest first. One round trip; raises BadPaging."""
    window = Window.of(CursorKind.FOLLOW, first=first, after=after, last=last, before=before)
    pages = await context.loaders.followers.load_many((user.id, window) for user in users)
    return [FollowPage(user.id, True, page) for user, page in zip(users, pages, strict=True)]


async def following(
    users: Sequence[User],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> list[FollowPage]:
    """Page through those whom people follow, newest first. One round trip; raises BadPaging."""
    window = Window.of(CursorKind.FOLLOW, first=first, after=after, last=last, before=before)
    pages = await context.loaders.following.load_many((user.id, window) for user in users)
    return [FollowPage(user.id, False, page) for user, page in zip(users, pages, strict=True)]


async def follow_users(follows: Sequence[Follow], context: Context) -> list[User | None]:
    """Give the person at the other end of each follow. One round trip."""
    return await context.loaders.users.load_many(follow.user for follow in follows)


async def page_users(pages: Sequence[FollowPage], context: Context) -> list[list[User | None]]:
    """Give the people of each page, without their edges. One round trip."""
    people = iter(await follow_users([follow for page in pages for follow in page.edges], context))
    return [[next(people) for _ in page.edges] for page in pages]


async def total_counts(pages: Sequence[FollowPage], context: Context) -> list[int]:
    """Count the whole lists that pages are of. One round trip, shared with the owners' counts."""
    counted = await context.loaders.counts.load_many(page.owner for page in pages)
    return [
        counts.followers if page.incoming else counts.following for page, counts in zip(pages, counted, strict=True)
    ]
