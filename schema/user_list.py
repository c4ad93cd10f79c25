"""The viewer's lists of users."""

from typing import ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import lists
from schema.blocks import UserConnection
from schema.node import Node
from schema.timeline import Timeline
from schema.user_error import ERRORS, UserError


@strawberry.type(
    description="A list of users whose posts can be read separately from the home timeline. Only its owner can see it."
)
class UserList(Node):
    """Backed by `graph.model.UserList`."""

    record: ClassVar[type] = model.UserList

    id: strawberry.ID = batched(lists.global_ids, description="The global id of the list.")
    name: str = strawberry.field(description="The name of the list, 1 to 50 characters.")
    members: UserConnection | None = batched(
        lists.members,
        description="The members of the list, newest accounts first. Requires `first` or `last`. Users who have "
        "blocked the viewer, or whom the viewer has blocked, are left out.",
    )
    members_count: int = batched(
        lists.members_counts,
        description="The number of members, at most 500. Members hidden by a block are counted, too.",
    )
    timeline: Timeline = batched(
        lists.timelines,
        description="The posts and reposts of the members, newest first, without those of users whom the viewer has "
        "muted.",
    )


@strawberry.type(description="The result of `createList`.")
class CreateListPayload:
    """Backed by `resolvers.lists.ListPayload`."""

    record: ClassVar[type] = lists.ListPayload

    user_list: UserList | None = strawberry.field(name="list", description="The new list. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `updateList`.")
class UpdateListPayload:
    """Backed by `resolvers.lists.ListPayload`."""

    record: ClassVar[type] = lists.ListPayload

    user_list: UserList | None = strawberry.field(
        name="list", description="The list after the change. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `deleteList`.")
class DeleteListPayload:
    """Backed by `resolvers.lists.DeleteListPayload`."""

    record: ClassVar[type] = lists.DeleteListPayload

    deleted_list_id: strawberry.ID | None = strawberry.field(
        description="The global id of the deleted list, to remove it from caches. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
