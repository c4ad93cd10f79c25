"""A user who acts through HTTP, one operation at a time, and records what was acknowledged."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, NamedTuple

from graph.log.events import PostPublished
from resolvers.ids import Kind, decode, encode
from tests.faults.checker.acknowledged import Acknowledged, Pairs
from tests.faults.checker.client import PATIENCE, Client
from tests.support.world import ListOfUsers

CLIENTS = 3  # of one user, which send the same request at the same time
MEMBERS = 3  # of a new list, at most
LISTS = 3  # of a user, at most
REFUSALS = {"BLOCKED", "NOT_FOUND"}
FOLLOWS, ENDED = {"FOLLOWED", "ALREADY_FOLLOWING"}, {"UNFOLLOWED", "NOT_FOLLOWING"}
LOST_SECONDS = 10.0  # after which a refusal shows that a change was lost, if changes can be lost
AGAIN_SECONDS = 0.3  # before a request that was refused without a reason is repeated

HOME = "{ viewer { homeTimeline { entries(first: 30) { nodes { id author { login } ... on Post { text } } } } } }"
NOTIFIED = "{ viewer { notifications { entries(first: 10) { edges { cursor } } } } }"
NODE = "query ($id: ID!) { node(id: $id) { id } }"


class Switch(NamedTuple):
    """A mutation and the one that undoes it, with the field of their answers that shows the result."""

    do: str
    undo: str
    shown_by: str


LIKE = Switch("likePost", "unlikePost", "viewerHasLiked")
BOOKMARK = Switch("bookmarkPost", "removeBookmark", "viewerHasBookmarked")
MUTE = Switch("muteUser", "unmuteUser", "muting")
BLOCK = Switch("blockUser", "unblockUser", "blocking")


class Person(Client):
    """A user of the load. `acknowledged` is shared by all users.

    With `lossy`, acknowledged changes may be lost: users do not act on what no longer exists, and block nobody.
    """

    def __init__(self, login: str, url: str, acknowledged: Acknowledged | None = None, *, lossy: bool = False) -> None:
        super().__init__(login, url)
        self.acknowledged = acknowledged or Acknowledged()
        self.number = 0
        self._texts = 0
        self._lossy = lossy

    async def join(self) -> None:
        """Sign up."""
        await super().join()
        self.number = decode(self.id).numbers[0]

    async def act(self, others: list["Person"]) -> None:
        """Perform a random operation, unless what it needs is in use."""
        operations: dict[Callable[[], Awaitable[object]], int] = {
            self.publish: 20,
            lambda: self._mention(others): 5,
            lambda: self._answer(reply=True): 12,
            lambda: self._answer(reply=False): 5,
            lambda: self.publish(clients=CLIENTS): 4,
            self._delete_one: 6,
            lambda: self._toggle(LIKE, self.acknowledged.world.likes): 14,
            lambda: self._toggle(BOOKMARK, self.acknowledged.bookmarks): 4,
            self._toggle_repost: 8,
            lambda: self._toggle_follow(others): 12,
            lambda: self._toggle_user(MUTE, self.acknowledged.world.mutes, others): 3,
            lambda: self._change_list(others): 4,
            self._read_notifications: 3,
            lambda: self.insist(HOME): 6,
        }
        if not self._lossy:
            operations[lambda: self._toggle_user(BLOCK, self.acknowledged.world.blocks, others)] = 3
        [operation] = random.choices([*operations], [*operations.values()])
        await operation()

    async def change(self, mutation: str, selection: str, about: int | None = None, **values: Any) -> Any:
        """Repeat a mutation until it succeeds, and return its payload, or None if a block or a loss prevents it.

        `about` is the user whom it concerns. A refusal without a block does not reflect what was acknowledged before,
        and an earlier attempt may have succeeded without being acknowledged. So the request is repeated.
        """
        input_type = f"{mutation[0].upper()}{mutation[1:]}Input!"
        fields = f"{{ {selection} userErrors {{ code }} }}"
        query = f"mutation ($input: {input_type}) {{ {mutation}(input: $input) {fields} }}"
        deadline = time.monotonic() + (LOST_SECONDS if self._lossy else PATIENCE)
        while True:
            payload = (await self.insist(query, input=values))[mutation]
            codes = {error["code"] for error in payload["userErrors"]}
            codes |= {result["error"]["code"] for result in payload.get("results", ()) if result["error"]}
            if not codes:
                return payload
            if about is not None and self.is_apart(about):
                return None
            is_late = time.monotonic() > deadline
            if is_late and self._lossy and codes == {"NOT_FOUND"}:
                return None
            assert codes <= REFUSALS, f"{self.login} cannot {mutation} {values}: {codes}"
            assert not is_late, f"{self.login} cannot {mutation} {values}: {codes}"
            self.outdated(f"{mutation}: {codes}")
            await asyncio.sleep(AGAIN_SECONDS)

    def is_apart(self, other: int) -> bool:
        """Return True if this user blocks another one, or is blocked by that user."""
        return self.acknowledged.are_apart(self.number, other)

    def outdated(self, what: str) -> None:
        """Record an answer that does not reflect an acknowledged change."""
        self.acknowledged.outdated.append(f"{self.login}: an answer does not know an acknowledged change: {what}")

    def expect(self, what: str, shown: object) -> None:
        """Record a fault unless an answer shows the change that it acknowledges."""
        if not shown:
            self.acknowledged.unshown.append(f"{self.login}: the answer does not show that {what}")

    def expect_allowed(self, mutation: str, about: int) -> None:
        """Record an outdated answer if a change that a block forbids was accepted."""
        if self.is_apart(about):
            self.outdated(f"{mutation} although there is a block")

    # posts

    async def publish(
        self,
        *,
        reply_to: int | None = None,
        quote_of: int | None = None,
        mentioned: "Person | None" = None,
        clients: int = 1,
    ) -> None:
        """Publish a post with a unique text, from one or more clients that use the same idempotency key."""
        self._texts += 1
        text = f"{self.login} writes {self._texts}" + (f" to @{mentioned.login}" if mentioned else "")
        values: dict[str, Any] = {"text": text, "idempotencyKey": text}
        values |= {"replyToId": encode(Kind.POST, reply_to)} if reply_to else {}
        values |= {"quotedPostId": encode(Kind.POST, quote_of)} if quote_of else {}
        target = reply_to or quote_of
        author = self.acknowledged.authors[target] if target else self.number
        requests = [self.change("publishPost", "post { id text }", author, **values) for _ in range(clients)]
        payloads = [payload for payload in await asyncio.gather(*requests) if payload is not None]
        if not payloads:
            return
        self.expect_allowed("publishPost", author)
        self.expect("a post was published", all(payload["post"]["text"] == text for payload in payloads))
        posts = {payload["post"]["id"] for payload in payloads}
        assert len(posts) == 1 or self._lossy, f"{self.login} has made a post several times: {posts}"
        for post in posts:  # if several, only the last one is not lost
            self.acknowledged.publish(decode(post).numbers[0], self._body(text, reply_to, quote_of, mentioned))

    def _body(self, text: str, reply_to: int | None, quote_of: int | None, mentioned: "Person | None") -> PostPublished:
        known, body = self.acknowledged, PostPublished(self.number, text)
        if mentioned:
            body = replace(body, mentions=(mentioned.number,))
        if quote_of:
            body = replace(body, repost_of=quote_of, repost_of_author=known.authors[quote_of])
        if reply_to:
            parent = known.world.posts[reply_to]
            root, root_author = (parent.root, parent.root_author) if parent.root else (reply_to, parent.author)
            listed = self.number == parent.author == root_author
            body = replace(body, reply_to=reply_to, reply_to_author=parent.author)
            body = replace(body, root=root, root_author=root_author, listed=listed)
        return body

    async def _mention(self, others: list["Person"]) -> None:
        """Mention another user, unless there has been a block: then the mention may notify nobody."""
        other = self._free(others)
        if other and frozenset((self.number, other.number)) not in self.acknowledged.separated:
            with self.acknowledged.using(self.number, {other.number}):
                await self.publish(mentioned=other)

    async def _answer(self, *, reply: bool) -> None:
        if posts := self.acknowledged.posts_for(self.number):
            post = random.choice(posts)
            with self.acknowledged.using(self.number, {self.acknowledged.authors[post]}, post):
                await (self.publish(reply_to=post) if reply else self.publish(quote_of=post))

    async def _delete_one(self) -> None:
        if posts := self.acknowledged.deletable(self.number):
            await self.delete(random.choice(posts))

    async def delete(self, post: int) -> None:
        """Delete a post, and check that it is gone."""
        id_ = encode(Kind.POST, post)
        with self.acknowledged.deleting(post):
            await self.change("deletePost", "deletedPostId", postId=id_)
        self.acknowledged.deleted.add(post)
        if (await self.insist(NODE, id=id_))["node"] is not None:
            self.outdated("a deleted post")

    async def _toggle(self, switch: Switch, pairs: Pairs) -> None:
        """Like or bookmark a post, or undo it."""
        known = self.acknowledged
        if not (posts := known.posts_for(self.number)):
            return
        post = random.choice(posts)
        pair, author = (self.number, post), known.authors[post]
        undoes = pair in pairs
        mutation = switch.undo if undoes else switch.do
        with known.using(self.number, {author}, post):
            selection = f"post {{ {switch.shown_by} }}"
            payload = await self.change(mutation, selection, author, postId=encode(Kind.POST, post))
            if not self._is_made(mutation, payload, author, undoes=undoes):
                return
            if payload and (payload["post"] or not self.is_apart(author)):
                shown = payload["post"]
                self.expect(f"{mutation} was done", shown and shown[switch.shown_by] is not undoes)
            known.set_pair(pair, pairs, exists=not undoes)

    def _is_made(self, mutation: str, payload: Any, author: int, *, undoes: bool) -> bool:
        """Return whether a change was made. If a block prevents undoing, nothing was left to undo."""
        if payload is not None and not undoes:
            self.expect_allowed(mutation, author)
        return payload is not None or undoes

    async def _toggle_repost(self) -> None:
        known = self.acknowledged
        if not (posts := known.posts_for(self.number)):
            return
        post = random.choice(posts)
        author, undoes = known.authors[post], (self.number, post) in known.world.reposted
        mutation = "unrepostPost" if undoes else "repostPost"
        selection = "deletedRepostId" if undoes else "repost { id post { viewerHasReposted } }"
        with known.using(self.number, {author}, post):
            payload = await self.change(mutation, selection, author, postId=encode(Kind.POST, post))
            if not self._is_made(mutation, payload, author, undoes=undoes):
                return
            if undoes:
                known.unrepost(self.number, post)
                return
            original = payload["repost"]["post"]
            self.expect("a post was reposted", original and original["viewerHasReposted"])
            known.repost(self.number, post, decode(payload["repost"]["id"]).numbers[0])

    # users

    def _free(self, others: list["Person"]) -> "Person | None":
        free = [other for other in others if self.acknowledged.is_free(self.number, other.number)]
        return random.choice(free) if free else None

    async def _toggle_follow(self, others: list["Person"]) -> None:
        known, other = self.acknowledged, self._free(others)
        if other is None:
            return
        pair = self.number, other.number
        with known.using(self.number, {other.number}):
            undoes = pair in known.world.follows
            mutation, outcomes = ("unfollowUsers", ENDED) if undoes else ("followUsers", FOLLOWS)
            selection = "results { outcome error { code } user { relationship { following } } }"
            payload = await self.change(mutation, selection, other.number, userIds=[other.id])
            if payload is None:
                return
            [result] = payload["results"]
            assert result["outcome"] in outcomes, f"{self.login}: {mutation} {payload}"
            if self.is_apart(other.number):  # the follow does not count, but streams announce it
                self.expect_allowed(mutation, other.number)
                known.cut.add(pair)
                return
            self.expect(f"{mutation} was done", result["user"]["relationship"]["following"] is not undoes)
            known.set_pair(pair, known.world.follows, exists=not undoes)

    async def _toggle_user(self, switch: Switch, pairs: Pairs, others: list["Person"]) -> None:
        """Mute or block a user, or undo an existing mute or block."""
        known = self.acknowledged
        affected = [other for other in others if (self.number, other.number) in pairs]
        if (other := self._free(affected or others)) is None:
            return
        pair, mutation = (self.number, other.number), switch.undo if affected else switch.do
        with known.using(self.number, {other.number}):
            selection = f"user {{ relationship {{ {switch.shown_by} }} }}"
            payload = await self.change(mutation, selection, userId=other.id)
            shown = payload["user"]["relationship"][switch.shown_by]
            self.expect(f"{mutation} was done", shown is not bool(affected))
            known.set_pair(pair, pairs, exists=not affected)

    async def _change_list(self, others: list["Person"]) -> None:
        """Create, change or delete a list."""
        lists = self.acknowledged.lists_of(self.number)
        choice = random.random()
        if len(lists) < LISTS and (not lists or choice < 0.2):
            await self._create_list(others)
        elif choice < 0.3:
            number = random.choice([*lists])
            await self.change("deleteList", "deletedListId", listId=encode(Kind.LIST, number))
            del self.acknowledged.world.lists[number]
        elif other := self._free(others):
            with self.acknowledged.using(self.number, {other.number}):
                await self._update_list(random.choice([*lists]), other)

    async def _create_list(self, others: list["Person"]) -> None:
        """Create a list, with its name as the idempotency key."""
        self._texts += 1
        known, name = self.acknowledged, f"{self.login}'s list {self._texts}"
        chosen = [other for other in others if known.is_free(self.number, other.number)][:MEMBERS]
        chosen = [other for other in chosen if not self.is_apart(other.number)]
        with known.using(self.number, {other.number for other in chosen}):
            selection = "list { id membersCount }"
            ids = [each.id for each in chosen]
            payload = await self.change("createList", selection, name=name, userIds=ids, idempotencyKey=name)
        self.expect("a list was created", payload["list"]["membersCount"] == len(chosen))
        members = frozenset(each.number for each in chosen)
        known.world.lists[decode(payload["list"]["id"]).numbers[0]] = ListOfUsers(self.number, name, members)

    async def _update_list(self, number: int, other: "Person") -> None:
        self._texts += 1
        before, name = self.acknowledged.world.lists[number], f"{self.login}'s list {self._texts}"
        is_member = other.number in before.members
        if self.is_apart(other.number) and not is_member:
            return
        values: dict[str, Any] = {"removeUserIds" if is_member else "addUserIds": [other.id], "name": name}
        payload = await self.change(
            "updateList", "list { name membersCount }", listId=encode(Kind.LIST, number), **values
        )
        if payload is None:
            del self.acknowledged.world.lists[number]
            return
        members = before.members ^ {other.number}
        self.expect("a list was changed", payload["list"] == {"name": name, "membersCount": len(members)})
        self.acknowledged.world.lists[number] = replace(before, name=name, members=members)

    async def _read_notifications(self) -> None:
        edges = (await self.insist(NOTIFIED))["viewer"]["notifications"]["entries"]["edges"]
        if edges:
            up_to = edges[len(edges) // 2]["cursor"]
            await self.change("markNotificationsRead", "notifications { unreadCount }", upTo=up_to)
            self.acknowledged.seen[self.number] = max(up_to, self.acknowledged.seen.get(self.number, ""))
