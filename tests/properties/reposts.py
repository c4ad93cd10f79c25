"""Plain reposts in the machine: the rule that reposts posts and takes reposts back."""

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule

from tests.properties.disasters import Disaster
from tests.properties.likes import LikeRules
from tests.properties.requests import apis, calls, users


class RepostRules(LikeRules):
    """The part of the machine that reposts. After a disaster, the ends of reposts may be among the lost events."""

    @precondition(lambda self: self.disaster is Disaster.NONE)
    @rule(process=apis, viewer=users, which=st.integers(0, 20), undo=st.sampled_from((False, False, True)), calls=calls)
    def repost(self, process: str, viewer: int, which: int, undo: bool, calls: int) -> None:
        """A user reposts a post or a repost of it, or takes the repost back."""
        posts = [op.result for op in self.history.operations if op.kind in ("publish", "repost") and op.done]
        if posts:
            post, user, graph = posts[which % len(posts)], self.user_at(viewer), self.graph_of(process)
            original = post.repost_of if post.is_plain_repost else post.id
            kind = "unrepost" if undo else "repost"
            work = getattr(graph.reposts, kind)(graph.visibility.of(user), user, post.id)
            self._launch(self.history.start(process, kind, user, original), work, calls)
