"""Lists of users, and the payloads of mutes and blocks."""

from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import blocks
from schema.connections import PageInfo
from schema.user import User
from schema.user_error import ERRORS, UserError

if TYPE_CHECKING:
    from schema.viewer import Viewer


@strawberry.type(description="A user in a list of users.")
class UserEdge:
    """Backed by `graph.model.Follow`: a user and a position."""

    record: ClassVar[type] = model.Follow

    cursor: str = batched(
        blocks.user_cursors,
        description="The user's cursor, for `after` and `before`. It is valid only in the list that returned it.",
    )
    node: Annotated["User", strawberry.lazy("schema.user")] = batched(
        blocks.edge_users, references=blocks.edge_references, description="The user."
    )


@strawberry.type(description="A page of users.")
class UserConnection:
    """Backed by `resolvers.blocks.UserPage`."""

    record: ClassVar[type] = blocks.UserPage

    edges: list[UserEdge] = strawberry.field(description="The page's users, with cursors.")
    nodes: list[Annotated["User", strawberry.lazy("schema.user")]] = batched(
        blocks.page_users, description="The page's users, without cursors."
    )
    page_info: PageInfo = strawberry.field(
        description="Whether there are more pages, and the cursors for requesting them."
    )


@strawberry.type(description="The result of `muteUser`.")
class MuteUserPayload:
    """Backed by `resolvers.blocks.UserPayload`."""

    record: ClassVar[type] = blocks.UserPayload

    user: User | None = batched(blocks.payload_users, description="The muted user. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `unmuteUser`.")
class UnmuteUserPayload:
    """Backed by `resolvers.blocks.UserPayload`."""

    record: ClassVar[type] = blocks.UserPayload

    user: User | None = batched(blocks.payload_users, description="The user, who is no longer muted. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `blockUser`.")
class BlockUserPayload:
    """Backed by `resolvers.blocks.BlockUserPayload`."""

    record: ClassVar[type] = blocks.BlockUserPayload

    user: User | None = batched(
        blocks.payload_users, description="The blocked user, whose `relationship` shows the block. Null on failure."
    )
    viewer: Annotated["Viewer", strawberry.lazy("schema.viewer")] | None = strawberry.field(
        description="The viewer after the change. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `unblockUser`.")
class UnblockUserPayload:
    """Backed by `resolvers.blocks.UserPayload`."""

    record: ClassVar[type] = blocks.UserPayload

    user: User | None = batched(
        blocks.payload_users, description="The user, who is no longer blocked. Null on failure."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)
