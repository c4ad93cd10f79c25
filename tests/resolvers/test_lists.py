"""Lists of users through the API: who sees them, what they show, and how bad input is refused."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from graph.model import User
from resolvers import ids
from tests.resolvers.conftest import Answer, World, logins, texts, user_id

LIST = (
    "id name membersCount members(first: 10) { edges { cursor node { login } } nodes { login } pageInfo { endCursor } }"
)
CREATE = f"""mutation Create($name: String!, $userIds: [ID!], $key: String) {{
    createList(input: {{ name: $name, userIds: $userIds, idempotencyKey: $key }}) {{
        list {{ {LIST} }} userErrors {{ code field params {{ name value }} }} }} }}"""
UPDATE = f"""mutation Update($listId: ID!, $name: String, $add: [ID!], $remove: [ID!]) {{
    updateList(input: {{ listId: $listId, name: $name, addUserIds: $add, removeUserIds: $remove }}) {{
        list {{ {LIST} }} userErrors {{ code field params {{ name value }} }} }} }}"""
DELETE = """mutation Delete($listId: ID!) {
    deleteList(input: { listId: $listId }) { deletedListId userErrors { code field } } }"""
LISTS = f"{{ viewer {{ lists {{ {LIST} }} }} }}"
TIMELINE = """query Timeline($id: ID!, $first: Int, $after: String) { node(id: $id) {
    ... on UserList { id timeline { ...page } } ...page } }
    fragment page on Timeline { id kind liveCursor entries(first: $first, after: $after) {
        edges { cursor node { __typename author { login }
            ... on Post { text likesCount viewerHasLiked quotedPost { text author { login } } }
            ... on Repost { post { text author { login } } } } }
        pageInfo { hasNextPage endCursor } } }"""
REFUSED = [("NOT_FOUND", ["listId"])]


async def created(world: World, owner: User, name: str, *members: User) -> str:
    """Create a list through the API and return its global id."""
    answer = await world.ask(CREATE, owner, name=name, userIds=[user_id(user) for user in members])
    assert answer.data["createList"]["userErrors"] == []
    id_: str = answer.data["createList"]["list"]["id"]
    return id_


def problems(payload: Any) -> list[tuple[str, list[str] | None]]:
    """Return the codes and fields of the user errors of the only payload."""
    [found] = payload.values()
    return [(error["code"], error["field"]) for error in found["userErrors"]]


async def asked(
    world: World, viewer: User, document: str, variable: str, others: Mapping[str, object], users: Sequence[str]
) -> Answer:
    """Return the answer to a mutation with these ids of users."""
    return await world.ask(document, viewer, **{**others, variable: users})


async def test_the_payloads_show_the_list_after_the_change(world: World) -> None:
    alice, bob, carol = await world.users("alice", "bob", "carol")

    answer = await world.ask(CREATE, alice, name=" friends ", userIds=[user_id(bob)])
    shown = answer.data["createList"]["list"]
    assert (shown["name"], shown["membersCount"], logins(shown["members"])) == ("friends", 1, ["bob"])
    answer = await world.ask(UPDATE, alice, listId=shown["id"], name="x", add=[user_id(carol)], remove=[user_id(bob)])
    changed = answer.data["updateList"]["list"]
    assert (changed["id"], changed["name"], logins(changed["members"])) == (shown["id"], "x", ["carol"])
    assert (await world.ask(LISTS, alice)).data["viewer"]["lists"] == [changed]
    answer = await world.ask(DELETE, alice, listId=shown["id"])
    assert answer.data["deleteList"] == {"deletedListId": shown["id"], "userErrors": []}
    assert (await world.ask(DELETE, alice, listId=shown["id"])).data == answer.data
    assert (await world.ask(LISTS, alice)).data["viewer"]["lists"] == []


async def test_a_list_is_created_again_with_the_same_key(world: World) -> None:
    """The same key and input return the same list; a different input is an error."""
    alice, bob = await world.users("alice", "bob")
    given = {"userIds": [user_id(bob)], "key": "k1"}
    first, again = [await world.ask(CREATE, alice, name="friends", **given) for _ in range(2)]
    assert first.data == again.data
    other = await world.ask(CREATE, alice, name="others", **given)
    assert problems(other.data) == [("IDEMPOTENCY_MISMATCH", ["idempotencyKey"])]
    assert other.data["createList"]["list"] is None


async def test_nobody_else_can_see_or_change_a_list(world: World) -> None:
    """Lists of others, unknown and malformed ids, ids of other types and deleted lists get the same answers."""
    alice, bob = await world.users("alice", "bob")
    private = await created(world, alice, "private", bob)
    gone = await created(world, bob, "gone")
    await world.graph.lists.delete(bob.id, ids.decode(gone).numbers[0])
    number = ids.decode(private).numbers[0]
    last = await world.graph.log.last()

    for id_ in (private, ids.encode(ids.Kind.LIST, 7), user_id(bob), "nonsense", gone):
        answer = await world.ask(UPDATE, bob, listId=id_, name="mine", add=[user_id(bob)])
        assert (answer.data["updateList"]["list"], problems(answer.data)) == (None, REFUSED)
        if id_ != gone:
            answer = await world.ask(DELETE, bob, listId=id_)
            assert (answer.data["deleteList"]["deletedListId"], problems(answer.data)) == (None, REFUSED)
    for id_ in (private, ids.encode(ids.Kind.LIST_TIMELINE, number), gone):
        for viewer in (bob, None):
            assert (await world.ask(TIMELINE, viewer, id=id_, first=5)).data["node"] is None
    assert (await world.ask(LISTS, bob)).data["viewer"]["lists"] == []
    assert (await world.ask(LISTS)).data["viewer"] is None
    assert await world.graph.log.last() == last
    for document, arguments in ((CREATE, {"name": "x"}), (UPDATE, {"listId": private}), (DELETE, {"listId": private})):
        assert [code for _, code in (await world.ask(document, None, **arguments)).errors] == ["UNAUTHENTICATED"]


async def test_bad_input_is_refused_with_its_field(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    mine = await created(world, alice, "mine")
    [post] = await world.post(bob, "hi")
    strange = [user_id(bob), "nonsense", ids.encode(ids.Kind.POST, post.id)]
    unknown = ids.encode(ids.Kind.USER, 7)
    last = await world.graph.log.last()

    for name in ("", "x" * 51):
        assert problems((await world.ask(CREATE, alice, name=name)).data) == [("INVALID", ["name"])]
        assert problems((await world.ask(UPDATE, alice, listId=mine, name=name)).data) == [("INVALID", ["name"])]
    for field, document, variable, others in (
        ("userIds", CREATE, "userIds", {"name": "x"}),
        ("addUserIds", UPDATE, "add", {"listId": mine}),
        ("removeUserIds", UPDATE, "remove", {"listId": mine}),
    ):
        ask = partial(asked, world, alice, document, variable, others)
        expected = [("NOT_FOUND", [field, "1"]), ("NOT_FOUND", [field, "2"])]
        assert problems((await ask(strange)).data) == expected
        assert problems((await ask([user_id(bob)] * 101)).data) == [("TOO_MANY", [field])]
        if field != "removeUserIds":
            assert problems((await ask([unknown])).data) == [("NOT_FOUND", [field, "0"])]
    both = await world.ask(UPDATE, alice, listId=mine, add=[user_id(bob)], remove=[user_id(bob)])
    assert problems(both.data) == [("INVALID", ["removeUserIds", "0"])]
    assert await world.graph.log.last() == last


async def test_limits_name_the_length_and_the_limit(world: World) -> None:
    [alice] = await world.users("alice")
    for n in range(50):
        await world.graph.lists.create(alice.id, f"list {n}")
    [error] = (await world.ask(CREATE, alice, name="one more")).data["createList"]["userErrors"]
    params = [{"name": "max", "value": "50"}, {"name": "length", "value": "51"}]
    assert error == {"code": "TOO_MANY", "field": None, "params": params}


async def test_the_timeline_of_a_list_is_paged(world: World) -> None:
    """It can also be read by its own id. It leaves out muted users, and the list of members leaves out blocked ones."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    list_id = await created(world, alice, "both", bob, carol)
    [one] = await world.post(bob, "one")
    [_, _] = [await world.post(carol, "two"), await world.post(bob, "three")]
    await world.graph.reposts.repost(world.graph.visibility.of(carol.id), carol.id, one.id)

    timeline = (await world.ask(TIMELINE, alice, id=list_id, first=3)).data["node"]["timeline"]
    repost, *others = [edge["node"] for edge in timeline["entries"]["edges"]]
    assert (timeline["kind"], [node["text"] for node in others]) == ("LIST", ["three", "two"])
    shown = {"text": "one", "author": {"login": "bob"}}
    assert repost == {"__typename": "Repost", "author": {"login": "carol"}, "post": shown}
    end = timeline["entries"]["pageInfo"]["endCursor"]
    rest = (await world.ask(TIMELINE, alice, id=timeline["id"], first=3, after=end)).data["node"]
    assert (rest["id"], rest["kind"], texts(rest["entries"])) == (timeline["id"], "LIST", ["one"])
    await world.graph.blocks.mute(alice.id, bob.id)
    timeline = (await world.ask(TIMELINE, alice, id=list_id, first=3)).data["node"]["timeline"]
    assert texts(timeline["entries"]) == ["two"]
    await world.graph.blocks.block(bob.id, alice.id)
    [shown] = (await world.ask(LISTS, alice)).data["viewer"]["lists"]
    assert (logins(shown["members"]), shown["membersCount"]) == (["carol"], 2)


async def test_members_are_paged(world: World) -> None:
    alice, *others = await world.users("alice", "bob", "carol", "dave")
    await created(world, alice, "all", *others)
    document = """query Members($first: Int, $last: Int, $after: String) { viewer { lists { members(
        first: $first, last: $last, after: $after) { edges { node { login } }
        pageInfo { hasNextPage hasPreviousPage endCursor } } } } }"""

    async def page(**arguments: object) -> Any:
        answer = await world.ask(document, alice, **arguments)
        return answer.data["viewer"]["lists"][0]["members"] if not answer.errors else answer.errors[0][1]

    first = await page(first=2)
    assert (logins(first), first["pageInfo"]["hasNextPage"]) == (["dave", "carol"], True)
    rest = await page(first=2, after=first["pageInfo"]["endCursor"])
    assert (logins(rest), rest["pageInfo"]["hasNextPage"]) == (["bob"], False)
    assert logins(await page(last=2)) == ["carol", "bob"]
    assert await page() == "BAD_USER_INPUT"


@pytest.mark.counts_reads
@pytest.mark.parametrize("size", [1, 10])
async def test_round_trips(world: World, size: int) -> None:
    """Lists with members take three, a page of any size five, the timelines of all lists four, a deletion three.

    A page reads the list with the session check; the members; their timelines; the posts; and the authors.
    """
    alice, *others = await world.users("alice", "bob", "carol", "dave")
    for user in others:
        await world.post(user, *(f"post {n}" for n in range(size)))
    for n in range(size):
        list_id = await created(world, alice, f"list {n}", *others)
    await world.graph.binding.token()

    answer = await world.ask(LISTS, alice)
    assert (len(answer.data["viewer"]["lists"]), answer.round_trips) == (size, 3)
    answer = await world.ask(TIMELINE, alice, id=list_id, first=size * 3)
    assert (len(answer.data["node"]["timeline"]["entries"]["edges"]), answer.round_trips) == (size * 3, 5)
    document = "{ viewer { lists { timeline { entries(first: 3) { nodes { ... on Post { text } } } } } } }"
    answer = await world.ask(document, alice)
    assert (len(answer.data["viewer"]["lists"]), answer.round_trips) == (size, 4)
    answer = await world.ask(DELETE, alice, listId=list_id)
    assert answer.round_trips == 3
