"""Lists of users in the web app, on a desktop in the light theme and a phone in the dark theme."""

import asyncio

import pytest

from graph.people.lists import MAX_LISTS
from tests.support.graph_worlds import people, posts
from tests.web.stage import Stage
from tests.web.tour import DESKTOP, PHONE, Tour

pytestmark = pytest.mark.slow


async def test_a_list(stage: Stage, tour: Tour) -> None:
    """One device creates, fills, renames and deletes a list. The other one reads it, and removes a member."""
    _, bob = await people(stage.graph, "alice", "bob")
    await posts(stage.graph, bob, "from bob")
    do = stage.browser.do
    await asyncio.gather(
        stage.open("p", "alice", **DESKTOP),
        stage.open("b", "alice", **PHONE, dark=True),
    )
    await do("menu", "p")
    await do("click", "p", role="link", name="Your lists")
    await do("read", "p", text="You have no lists.")
    await tour.shoot("lists-empty")
    await do("click", "p", role="button", name="Create")
    await do("read", "p", text="The name must have at least one visible character.")
    await do("focused", "p", name="Name of a new list")
    await tour.shoot("lists-error")
    await do("fill", "p", label="Name of a new list", text="Friends")
    await do("press", "p", key="Enter")
    await do("see", "p", role="link", name="Friends 0 members")

    await do("go", "p", hash="#/@bob")
    await do("menu", "p", within=".profile")
    await do("click", "p", role="button", name="Add to lists")
    await do("see", "p", role="dialog", name="Add @bob to lists")
    await do("click", "p", role="button", name="Add @bob to Friends")
    await do("see", "p", role="button", name="Remove @bob from Friends")
    await do("fill", "p", label="Name of a new list", text="A list with a long name " * 2)
    await do("press", "p", key="Enter")
    await do("read", "p", text="The list has been created.")
    await tour.shoot("list-picker")
    await do("press", "p", key="Escape")
    await do("focused", "p", name="More about bob")

    await do("go", "b", hash="#/lists")
    await do("see", "b", role="list", name="Lists")
    assert await do("overflow", "b") == await do("nameless", "b") == []
    await do("click", "b", role="link", name="Friends 1 member")
    await do("read", "b", text="from bob")
    await stage.hears(2, more=2)  # a profile and the list
    await posts(stage.graph, bob, "another one")
    await do("click", "b", role="button", name="1 new post")
    await do("read", "b", text="another one")
    await do("shows", "b", texts=["another one", "from bob"])
    tour.found += await do("axe", "b")
    await do("click", "b", role="link", name="1 member")
    await do("click", "b", role="button", name="Remove @bob from Friends")
    await do("see", "b", role="button", name="Add @bob to Friends")
    await do("see", "b", role="link", name="0 members")
    assert await do("overflow", "b") == await do("nameless", "b") == []

    await tour.go("lists", "list", "Lists")
    await tour.shoot("lists")
    await do("click", "p", role="link", name="Friends 0 members")
    await do("read", "p", text="No posts yet.")
    await do("click", "p", role="button", name="Rename")
    await do("fill", "p", label="Name", text="x" * 51)
    await do("click", "p", role="button", name="Save")
    await do("read", "p", text="the limit is 50")
    await tour.shoot("list-rename")
    await do("fill", "p", label="Name", text="Best friends")
    await do("click", "p", role="button", name="Save")
    await do("see", "p", role="heading", name="Best friends")
    await do("see", "b", role="heading", name="Friends")
    await do("click", "b", role="button", name="Add @bob to Friends")
    await do("see", "b", role="heading", name="Friends")
    await do("click", "p", role="link", name="1 member")  # the stream of the list has told
    await tour.shoot("list-members")
    await do("click", "p", role="link", name="Posts")
    await do("read", "p", text="from bob")
    await tour.shoot("list")

    await do("click", "p", role="button", name="Delete")
    await do("read", "p", text="The list has been deleted.")
    await do("see", "p", role="heading", name="Your lists")
    await do("missing", "p", text="Best friends")
    await do("click", "b", role="button", name="Remove @bob from Friends")
    await do("read", "b", text="This list does not exist.")
    await do("reload", "b")
    await do("see", "b", role="heading", name="This list does not exist")
    assert await do("errors") == []
    assert tour.found == []


async def test_too_many_lists(stage: Stage, tour: Tour) -> None:
    """The form says how many lists a user can have, and keeps the name."""
    [alice] = await people(stage.graph, "alice")
    for number in range(MAX_LISTS):
        await stage.graph.lists.create(alice, f"List {number}")
    do = stage.browser.do
    await stage.open("p", "alice", **PHONE)
    await tour.go("lists", "list", "Lists")
    await do("fill", "p", label="Name of a new list", text="One more")
    await do("click", "p", role="button", name="Create")
    await do("read", "p", text="You have 50 lists")
    await do("holds", "p", label="Name of a new list", text="One more")
    assert await do("overflow", "p") == []
    await tour.shoot("lists-too-many")
    assert await do("errors") == []
    assert tour.found == []
