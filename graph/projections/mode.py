"""The modes of a projection: how much of the work is done, depending on the caller."""

from enum import Enum


class Mode(Enum):
    """How much of the work `Projections.project` does for a batch of events."""

    REQUEST = "request"
    """Project what must be visible when a mutation returns.

    A post is pushed to the newest `sync_followers` followers only. A worker projects the same events again later.
    """

    WORKER = "worker"
    """Project everything.

    A post is pushed to all followers, or tasks are added for a long fan-out. Promotions that other projections began
    are finished.
    """

    CATCH_UP = "catch-up"
    """Project what the reader of a stream must see, without fan-out.

    The caller must delete the reader's home cache afterwards. A worker projects the same events again later.
    """

    @property
    def fans_out(self) -> bool:
        """Whether posts are pushed into home caches."""
        return self in (Mode.REQUEST, Mode.WORKER)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left for a worker to project."""
        return self is Mode.WORKER
