"""The examples of lists of users, in the small demo world of the other examples."""

from resolvers import ids
from tests.examples.alice import Alice


async def test_lists(alice: Alice) -> None:
    """A list is created, changed, read and deleted."""
    bob, carol = (ids.encode(ids.Kind.USER, alice.people[login]) for login in ("bob", "carol"))
    created = (await alice.run("create-list", name="friends", userIds=[bob]))["createList"]["list"]
    changed = await alice.run("update-list", listId=created["id"], name="others", addUserIds=[carol])
    assert {user["login"] for user in changed["updateList"]["list"]["members"]["nodes"]} == {"bob", "carol"}
    [shown] = (await alice.run("lists"))["viewer"]["lists"]
    assert (shown["id"], shown["name"], shown["membersCount"]) == (created["id"], "others", 2)
    timeline = (await alice.run("list-timeline", id=created["id"]))["node"]["timeline"]
    assert {edge["node"]["author"]["login"] for edge in timeline["entries"]["edges"]} == {"bob", "carol"}
    assert (await alice.run("delete-list", listId=created["id"]))["deleteList"]["deletedListId"] == created["id"]
    assert (await alice.run("lists"))["viewer"]["lists"] == []
