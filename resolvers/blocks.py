"""The resolvers of mutes and blocks, and of the lists of users whom the viewer mutes or blocks."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import ProblemCode, Rejected
from graph.model import Follow, Page, User
from graph.paging import CursorKind, Window, encode_cursors
from resolvers import ids, inputs
from resolvers.connections import After, Before, First, Last, PageEnds, page_ends
from resolvers.context import Context, Viewer
from resolvers.payloads import Payload, load_users, mutation
from resolvers.references import Reference, refer


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPayload(Payload):
    """The record of `MuteUserPayload`, `UnmuteUserPayload` and `UnblockUserPayload`. `user` is a user id."""

    user: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockUserPayload(UserPayload):
    """The record of `BlockUserPayload`. `user` is a user id."""

    viewer: Viewer | None = None


@dataclass(frozen=True, slots=True)
class UserPage:
    """A page of a list of users. Each entry has a user and a number, which is the user's position in the list."""

    page: Page[Follow]

    @property
    def edges(self) -> tuple[Follow, ...]:
        """The entries, as records of their edges."""
        return self.page.items

    @property
    def page_info(self) -> PageEnds:
        """The page info, with cursors of users."""
        items = self.page.items
        return page_ends(self.page, CursorKind.USER, [each.number for each in (*items[:1], *items[-1:])])


def user_cursors(entries: Sequence[Follow], context: Context) -> list[str]:
    """Return the cursors of entries in lists of users."""
    return encode_cursors(CursorKind.USER, [each.number for each in entries])


def edge_users(entries: Sequence[Follow], context: Context) -> Awaitable[list[User | None]]:
    """Return the user of each entry. One round trip."""
    return context.loaders.unchecked_users.fetch_many([each.user for each in entries])


def edge_references(entries: Sequence[Follow], context: Context) -> list[Reference]:
    """Return a reference to the user of each entry."""
    return refer([each.user for each in entries])


async def page_users(pages: Sequence[UserPage], context: Context) -> list[list[User | None]]:
    """Return the users of each page. One round trip."""
    users = iter(await edge_users([each for page in pages for each in page.edges], context))
    return [[next(users) for _ in page.edges] for page in pages]


async def muted_users(
    viewers: Sequence[Viewer],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> list[UserPage]:
    """Return a page of the users whom each viewer mutes, newest mute first. One round trip. Raises BadPaging."""
    window = Window.of(CursorKind.USER, first=first, after=after, last=last, before=before)
    pages = await context.loaders.muted_users.load_many([(each.user, window) for each in viewers])
    return [UserPage(page) for page in pages]


async def blocked_users(
    viewers: Sequence[Viewer],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> list[UserPage]:
    """Return a page of the users whom each viewer blocks, newest block first. One round trip. Raises BadPaging."""
    window = Window.of(CursorKind.USER, first=first, after=after, last=last, before=before)
    pages = await context.loaders.blocked_users.load_many([(each.user, window) for each in viewers])
    return [UserPage(page) for page in pages]


@mutation(UserPayload, ProblemCode.INVALID, ProblemCode.NOT_FOUND, ProblemCode.TOO_MANY)
async def mute_user(
    context: Context,
    *,
    input: Annotated[inputs.MuteUserInput, strawberry.argument(description="The user to mute.")],
) -> UserPayload:
    """Mute a user as the viewer."""
    return UserPayload(user=await change(context, context.graph.blocks.mute, input.user_id))


@mutation(UserPayload, ProblemCode.INVALID, ProblemCode.NOT_FOUND)
async def unmute_user(
    context: Context,
    *,
    input: Annotated[inputs.UnmuteUserInput, strawberry.argument(description="The user to unmute.")],
) -> UserPayload:
    """Unmute a user as the viewer."""
    return UserPayload(user=await change(context, context.graph.blocks.unmute, input.user_id))


@mutation(BlockUserPayload, ProblemCode.INVALID, ProblemCode.NOT_FOUND, ProblemCode.TOO_MANY)
async def block_user(
    context: Context,
    *,
    input: Annotated[inputs.BlockUserInput, strawberry.argument(description="The user to block.")],
) -> BlockUserPayload:
    """Block a user as the viewer."""
    viewer = context.require_viewer()
    return BlockUserPayload(user=await change(context, context.graph.blocks.block, input.user_id), viewer=viewer)


@mutation(UserPayload, ProblemCode.INVALID, ProblemCode.NOT_FOUND)
async def unblock_user(
    context: Context,
    *,
    input: Annotated[inputs.UnblockUserInput, strawberry.argument(description="The user to unblock.")],
) -> UserPayload:
    """Unblock a user as the viewer."""
    return UserPayload(user=await change(context, context.graph.blocks.unblock, input.user_id))


async def change(context: Context, write: Callable[[int, int], Awaitable[None]], user_id: str) -> int:
    """Mute, unmute, block or unblock the user with this id, and return the user's number.

    Raises the errors of `write`, and Rejected (NOT_FOUND) for a malformed id or the id of another kind of object.
    """
    viewer = context.require_viewer()
    user = ids.number_or_none(ids.Kind.USER, user_id)
    if user is None:
        raise Rejected.because(ProblemCode.NOT_FOUND, "This user does not exist.", "userId")
    await write(viewer.user, user)
    return user


async def payload_users(payloads: Sequence[UserPayload], context: Context) -> list[User | None]:
    """Return the user of each mutation; None if the mutation failed. One round trip."""
    return await load_users(context, [payload.user for payload in payloads])
