"""A server with a world that contains everything an input may refer to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph import Graph
from graph.log.events import ListCreated
from graph.model import MAX_NUMBER
from graph.people.lists import MAX_LISTS, MAX_MEMBERS
from resolvers import ids
from resolvers.ids import Kind
from server.auth import Tokens
from server.embedded import Durability, EmbeddedStore
from server.settings import Settings
from tests.conftest import CHEAP, without_persistence
from tests.server.conftest import KEY, Api, serving
from tests.support.graph_worlds import PASSWORD, archive_log
from tests.support.graphs import archive_url_of, empty, open_graph, remove_archive

HOST = "media.example.org"
IMAGE = {"kind": "IMAGE", "url": f"https://{HOST}/a"}
PAYLOADS = {
    "publishPost": "post { text replyToId quotedPostId attachments { url } } "
    "postEdge { node { text } } timelineEdge { node { id } }",
    "repostPost": "repost { id post { id } } timelineEdge { node { __typename id } }",
    "unrepostPost": "post { id repostsCount } deletedRepostId",
    "likePost": "post { id likesCount viewerHasLiked }",
    "unlikePost": "post { id likesCount viewerHasLiked }",
    "bookmarkPost": "post { id viewerHasBookmarked }",
    "removeBookmark": "post { id viewerHasBookmarked }",
    "deletePost": "deletedPostId viewer { id } replyTo { id } quotedPost { id }",
    "muteUser": "user { id relationship { muting } }",
    "unmuteUser": "user { id relationship { muting } }",
    "blockUser": "user { id relationship { blocking } } viewer { id }",
    "unblockUser": "user { id relationship { blocking } }",
    "report": "reported",
    "markNotificationsRead": "notifications { unreadCount }",
    "createList": "list { id }",
    "updateList": "list { id name membersCount members { nodes { login } } }",
    "deleteList": "deletedListId",
    "endSession": "endedSessionId",
    "deleteAccount": "deletedUserId",
}
"""The mutations of conversations, with all fields of their payloads."""


@dataclass
class Stage:
    """A server and a world. `ids` are global ids by name, and `tokens` are access tokens by login."""

    api: Api
    graph: Graph
    ids: dict[str, str]
    tokens: dict[str, str]

    def resolved(self, value: Any) -> Any:
        """Replace names after a # in an input by their ids; unknown names are used as ids."""
        if isinstance(value, dict):
            return {name: self.resolved(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.resolved(each) for each in value]
        return self.ids.get(value[1:], value[1:]) if isinstance(value, str) and value.startswith("#") else value

    async def ask(self, document: str, by: str | None = "alice", /, **variables: Any) -> dict[str, Any]:
        """Execute an operation over HTTP and then over a WebSocket. Both answers must be the same."""
        variables, token = self.resolved(variables), self.tokens[by] if by else None
        response = await self.api.ask(document, token, **variables)
        async with self.api.socket(token) as socket:
            await socket.subscribe("1", document, **variables)
            message = await socket.receive()
        payload = message["payload"]
        streamed = {"errors": payload} if message["type"] == "error" else payload
        answer = without_request_ids(response.json())
        assert without_request_ids(streamed) == answer
        return answer

    async def change(self, mutation: str, by: str | None = "alice", /, **given: Any) -> dict[str, Any]:
        """Execute a mutation over HTTP and then over a WebSocket."""
        return await self.ask(document_of(mutation), by, input=given)


def document_of(mutation: str) -> str:
    """Return the document of a mutation, with all fields of the payload."""
    type_ = mutation[0].upper() + mutation[1:] + "Input!"
    fields = f"{PAYLOADS[mutation]} userErrors {{ code field message params {{ name value }} }}"
    return f"mutation ($input: {type_}) {{ {mutation}(input: $input) {{ {fields} }} }}"


def without_request_ids(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the request ids of its errors."""
    for error in answer.get("errors") or ():
        assert error["extensions"].pop("requestId")
    return {name: answer[name] for name in ("data", "errors") if name in answer}


@asynccontextmanager
async def on_stage(folder: Path) -> AsyncIterator[Stage]:
    """Serve a separate world that contains every kind of id that a client may send."""
    with EmbeddedStore(folder / "store", Durability.RELAXED) as store:
        without_persistence(store)
        empty(store.url)
        graph = await open_graph(store.url, CHEAP)
        settings = Settings(
            store_url=store.url,
            archive_url=archive_url_of(store.url),
            data_dir=folder,
            secret=(KEY,),
            worker=False,
            media_hosts=(HOST,),
        )
        async with serving(settings, graph) as api:
            yield await staged(api, graph)
        await graph.close()
        remove_archive(store.url)


async def staged(api: Api, graph: Graph) -> Stage:
    """Create the world and return the stage."""
    logins = ("alice", "bob", "carol", "dave", "eve", "frank", "grace", "heidi", "ivan")
    users = {login: (await graph.users.sign_up(login, PASSWORD, login.title())).id for login in logins}
    sessions = {login: await graph.sessions.start(user) for login, user in users.items()}
    posts = {f"{login}'s post": (await graph.posts.publish(user, f"by {login}")).id for login, user in users.items()}
    posts["a deleted post"] = (await graph.posts.publish(users["bob"], "regretted")).id
    see = graph.visibility.of
    reposts: dict[str, int] = {}
    for name in ("a deleted post", "carol's post", "dave's post", "eve's post", "bob's post", "frank's post"):
        plain = await graph.reposts.repost(see(users["grace"]), users["grace"], posts[name])
        reposts[f"a repost of {name}"] = plain.id
    await graph.reposts.unrepost(see(users["grace"]), users["grace"], posts["frank's post"])
    reposts["an undone repost"] = reposts.pop("a repost of frank's post")
    await graph.posts.delete(users["bob"], posts["a deleted post"])
    await graph.follows.follow(users["bob"], [users["alice"]])
    await graph.blocks.block(users["carol"], users["alice"])
    await graph.blocks.block(users["alice"], users["dave"])
    created = [await graph.lists.create(users[login], f"of {login}", [users["frank"]]) for login in ("alice", "bob")]
    deleted = await graph.lists.create(users["alice"], "short-lived")
    await graph.lists.delete(users["alice"], deleted.id)
    [full] = await graph.commit([ListCreated(users["alice"], "full", tuple(range(1, MAX_MEMBERS + 1)))])
    await graph.commit([ListCreated(users["heidi"], f"list {n}") for n in range(MAX_LISTS)])
    ended, [bobs] = await graph.sessions.start(users["alice"]), await graph.sessions.live_sessions(users["bob"])
    number = next(each.id for each in await graph.sessions.live_sessions(users["alice"]) if each.token_id == ended.id)
    await graph.sessions.end(users["alice"], ended.id)
    await graph.moderation.suspend(users["eve"])
    await graph.account_deletion.delete(users["ivan"], PASSWORD)
    await archive_log(graph)
    numbers = {
        Kind.USER: {**users, "nobody": 1, "a future user": MAX_NUMBER},
        Kind.POST: {**posts, "no post": 1, "a future post": MAX_NUMBER, "a follow": users["bob"]},
        Kind.REPOST: {**reposts, "no repost": 1, "bob's post as a repost": posts["bob's post"]},
        Kind.LIST: {"alice's list": created[0].id, "bob's list": created[1].id, "a deleted list": deleted.id},
        Kind.LIST_TIMELINE: {"the timeline of alice's list": created[0].id},
        Kind.SESSION: {"no session": 1, "an ended session": number, "bob's session": bobs.id},
    }
    numbers[Kind.LIST] |= {"no list": 1, "a full list": full.number}
    numbers[Kind.POST] |= {f"{name} as a post": number for name, number in reposts.items()}
    known = {name: ids.encode(kind, each) for kind, some in numbers.items() for name, each in some.items()}
    tokens = {login: Tokens([KEY]).issue(session) for login, session in sessions.items()}
    return Stage(api, graph, known, tokens)
