"""The resolvers of the viewer's lists of users."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import Problem, ProblemCode, Rejected
from graph.model import Timeline, TimelineKind, UserList
from graph.paging import CursorKind, Window
from graph.people.lists import not_found
from resolvers import ids, inputs
from resolvers.blocks import UserPage
from resolvers.connections import After, Before, First, Last
from resolvers.context import Context, Viewer
from resolvers.payloads import Payload, mutation

MAX_IDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPayload(Payload):
    """The record of `CreateListPayload` and `UpdateListPayload`."""

    user_list: UserList | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteListPayload(Payload):
    """The record of `DeleteListPayload`."""

    deleted_list_id: str | None = None


def lists(viewers: Sequence[Viewer], context: Context) -> Awaitable[list[list[UserList]]]:
    """Return the lists of viewers, newest first. One round trip."""
    return context.loaders.lists_of_users.fetch_many([each.user for each in viewers])


def global_ids(lists: Sequence[UserList], context: Context) -> list[str]:
    """Return the global ids of lists."""
    return ids.encode_all(ids.Kind.LIST, [each.id for each in lists])


def timelines(lists: Sequence[UserList], context: Context) -> list[Timeline]:
    """Return the timelines of lists."""
    return [Timeline(each.id, TimelineKind.LIST) for each in lists]


def members_counts(lists: Sequence[UserList], context: Context) -> Awaitable[list[int]]:
    """Return the numbers of members. One round trip."""
    return context.loaders.list_counts.fetch_many([each.id for each in lists])


def members(
    lists: Sequence[UserList],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
) -> Awaitable[list[UserPage]]:
    """Return a page of the members of each list. One round trip. Raises BadPaging."""
    window = Window.of(CursorKind.USER, first=first, after=after, last=last, before=before)
    return context.start(member_pages(lists, context, window))


async def member_pages(lists: Sequence[UserList], context: Context, window: Window) -> list[UserPage]:
    """Return a page of the members of each list."""
    pages = await context.loaders.list_members.fetch_many([(each.id, window) for each in lists])
    return [UserPage(page) for page in pages]


@mutation(
    ListPayload,
    ProblemCode.INVALID,
    ProblemCode.NOT_FOUND,
    ProblemCode.TOO_MANY,
    ProblemCode.IDEMPOTENCY_MISMATCH,
)
async def create_list(
    context: Context,
    *,
    input: Annotated[inputs.CreateListInput, strawberry.argument(description="The new list.")],
) -> ListPayload:
    """Create a list for the viewer."""
    viewer = context.require_viewer()
    users = user_numbers(input.user_ids, "userIds")
    created = await context.graph.lists.create(viewer.user, input.name, users, idempotency_key=input.idempotency_key)
    return ListPayload(user_list=created)


@mutation(ListPayload, ProblemCode.INVALID, ProblemCode.NOT_FOUND, ProblemCode.TOO_MANY)
async def update_list(
    context: Context,
    *,
    input: Annotated[inputs.UpdateListInput, strawberry.argument(description="The list to update, and the changes.")],
) -> ListPayload:
    """Change one of the viewer's lists."""
    viewer = context.require_viewer()
    changed = await context.graph.lists.update(
        viewer.user,
        list_number(input.list_id),
        name=input.name,
        added=user_numbers(input.add_user_ids, "addUserIds"),
        removed=user_numbers(input.remove_user_ids, "removeUserIds"),
    )
    return ListPayload(user_list=changed)


@mutation(DeleteListPayload, ProblemCode.NOT_FOUND)
async def delete_list(
    context: Context,
    *,
    input: Annotated[inputs.DeleteListInput, strawberry.argument(description="The list to delete.")],
) -> DeleteListPayload:
    """Delete one of the viewer's lists."""
    viewer = context.require_viewer()
    await context.graph.lists.delete(viewer.user, list_number(input.list_id))
    return DeleteListPayload(deleted_list_id=input.list_id)


def list_number(list_id: str) -> int:
    """Return the number of a list's global id. Raises Rejected (NOT_FOUND), also for a malformed id."""
    number = ids.number_or_none(ids.Kind.LIST, list_id)
    if number is None:
        raise not_found()
    return number


def user_numbers(user_ids: Sequence[str] | None, field: str) -> list[int]:
    """Return the numbers of the user ids in a field of the input.

    Raises Rejected: TOO_MANY for more than 100 ids, NOT_FOUND for each malformed id and each id of another kind.
    """
    user_ids = user_ids or []
    if len(user_ids) > MAX_IDS:
        message = f"The list has {len(user_ids)} ids; at most {MAX_IDS} are allowed. Send several requests."
        raise Rejected.because(ProblemCode.TOO_MANY, message, field, max=MAX_IDS, length=len(user_ids))
    numbers = [ids.number_or_none(ids.Kind.USER, user_id) for user_id in user_ids]
    if None in numbers:
        message = "This user does not exist."
        unknown = [index for index, number in enumerate(numbers) if number is None]
        raise Rejected(*(Problem(ProblemCode.NOT_FOUND, message, (field, str(index))) for index in unknown))
    return [number for number in numbers if number is not None]
