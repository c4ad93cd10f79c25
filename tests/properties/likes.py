"""Likes in the machine: the rule that likes and unlikes posts, and the check of all lists and counts of likes."""

from collections.abc import Sequence

import hypothesis.strategies as st
import redis
from hypothesis.stateful import precondition, rule

from graph import Graph, keys
from graph.paging import Window
from graph.visibility.views import SYSTEM
from tests.properties.disasters import Disaster
from tests.properties.requests import Requests, apis, users
from tests.support.world import World

calls = st.sampled_from((99, 99, 0, 1, 2, 3, 4, 8))
WINDOWS = (Window(2, forward=True), Window(3, forward=False), Window(100, forward=True))


class LikeRules(Requests):
    """The part of the machine that likes posts. After a disaster, the floors of likes may disagree with lost events."""

    @precondition(lambda self: self.disaster is Disaster.NONE)
    @rule(
        process=apis,
        user=users,
        which=st.sampled_from((0, 0, 0, 1, 2, 9)),
        again=st.sampled_from((False, False, False, True)),
        calls=calls,
    )
    def toggle_like(self, process: str, user: int, which: int, again: bool, calls: int) -> None:
        """A user likes or unlikes a post, mostly one of a few. Usually this changes the current state."""
        published = [op.result for op in self.history.operations if op.kind == "publish" and op.done]
        if published:
            user, post = self.user_at(user), published[which % len(published)].id
            likes = self.raw.zscore(keys.liked(user), str(post)) is not None
            kind = "unlike" if likes is not again else "like"
            work = getattr(self.graph_of(process).likes, kind)(user, post)
            self._launch(self.history.start(process, kind, user, post), work, calls)

    def check_certain_likes(self, world: World) -> None:
        """Check that the events agree with every like and unlike that is certain."""
        end = self.history.tick()
        for user in {*self.users} - world.deleted:
            for post in world.posts:
                certain = self.history.certainly(("like", "unlike"), (user, post), end, end)
                assert certain is None or certain == ((user, post) in world.likes)


async def check_likes(graph: Graph, raw: redis.Redis, world: World, users: Sequence[int]) -> None:
    """Check the likes of all posts and users in both directions, the counts, and that deleted posts have no likes."""
    posts = await graph.posts.get_many(SYSTEM, list(world.posts))
    for post in posts:
        assert post is not None
        assert post.likes == len(world.likers(post.id)), "the count of likes is wrong"
        assert await all_likes(graph, post.id) == world.likers(post.id)
    for user in users:
        liked = {post for post, _ in world.liked(user)}
        assert await graph.likes.liked_among(user, list(world.posts)) == [post in liked for post in world.posts]
        page = await graph.likes.pages.of_user(SYSTEM, user, Window(100, forward=True))
        assert [(each.post.id, each.number) for each in page.items] == world.liked(user)
        assert page == await graph.likes.pages.of_user(SYSTEM, user, Window(100, forward=False))
    held = {int(name[len("likes:{") :].partition("}")[0]) for name in raw.scan_iter("likes:{*")}
    assert held <= set(world.posts), "a deleted post has likes"


async def all_likes(graph: Graph, post: int) -> list[tuple[int, int]]:
    """Return the likes of a post as users and numbers, newest first, and check that each window returns the same."""
    found = []
    for window in WINDOWS:
        likes: list[tuple[int, int]] = []
        while True:
            [page] = await graph.likes.pages.of_posts(SYSTEM, [post], window)
            some = [(like.user, like.number) for like in page.items]
            likes = [*likes, *some] if window.forward else [*some, *likes]
            if not (page.has_next if window.forward else page.has_previous):
                break
            last = some[-1][1] if window.forward else some[0][1]
            bounds = {"high": last} if window.forward else {"low": last}
            window = Window(window.count, window.forward, **bounds)
        found.append(likes)
    assert found[0] == found[1] == found[2]
    return found[0]
