"""Mutes and blocks in the machine: the rule that changes them."""

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule

from tests.properties.disasters import Disaster
from tests.properties.reposts import RepostRules
from tests.properties.requests import apis, calls, pairs


class BlockRules(RepostRules):
    """The part of the machine that mutes and blocks. After a disaster, blocks may be among the lost events."""

    @precondition(lambda self: self.disaster is Disaster.NONE)
    @rule(process=apis, pair=pairs, kind=st.sampled_from(("mute", "unmute", "block", "unblock")), calls=calls)
    def change_block(self, process: str, pair: tuple[int, int], kind: str, calls: int) -> None:
        """A user mutes or blocks another user, or ends the mute or block."""
        user, other = self.user_at(pair[0]), self.user_at(pair[0] + 1 + pair[1] % (self.population - 1))
        work = getattr(self.graph_of(process).blocks, kind)(user, other)
        self._launch(self.history.start(process, kind, user, other), work, calls)
