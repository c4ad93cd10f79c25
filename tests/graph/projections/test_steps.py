"""Tests of the steps of a projection."""

from typing import get_args

from graph import Graph
from graph.home.pacing import UNPACED
from graph.log.events import Event, EventBody, Followed, Unfollowed, UserCreated
from graph.log.moderation_events import Reported, ReportsClosed, StoreRepaired
from graph.projections.mode import Mode
from graph.projections.steps import Bodies, Circumstances, Step, Steps


async def test_steps_with_events_run_in_their_order_and_the_others_do_not() -> None:
    """A step gets the events of its first kind, then those of the next."""
    ran: list[tuple[str, Bodies]] = []

    def step(name: str, *kinds: type) -> Step:
        async def run(bodies: Bodies, _: Circumstances) -> None:
            ran.append((name, bodies))

        return Step(kinds, run)

    steps = Steps([step("users", UserCreated), step("follows", Followed, Unfollowed), step("lists", ReportsClosed)])
    user, follow, unfollow = UserCreated("a", "a", "a"), Followed(1, 2), Unfollowed(1, 3)

    await steps.run([Event(4, unfollow), Event(5, follow), Event(6, user)], Circumstances(Mode.REQUEST, UNPACED, 0))

    assert ran == [("users", [(6, user)]), ("follows", [(5, follow), (4, unfollow)])]


def test_every_kind_of_event_has_a_step(graph: Graph) -> None:
    """Kinds that only moderators or streams read, from the archive or the log, have none."""
    assert graph.projections.kinds == set(get_args(EventBody)) - {Reported, ReportsClosed, StoreRepaired}
