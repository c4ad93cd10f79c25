"""Ways to damage lists of notifications, added to `DAMAGES`."""

from graph import keys
from graph.repair import defects
from tests.graph.repair.broken import RepairWorld
from tests.graph.repair.damages import DAMAGES, finds

__all__ = ["DAMAGES"]


@finds(defects.NOTIFICATION_WRONG)
async def a_notification_is_lost(w: RepairWorld) -> None:
    await w.raw.zrem(keys.notifications(w.star), *await w.groups(w.star))


@finds(defects.NOTIFICATION_WRONG)
async def all_notifications_are_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.notifications(w.bob))


@finds(defects.NOTIFICATION_WRONG)
async def a_notification_has_moved_back(w: RepairWorld) -> None:
    await w.raw.zadd(keys.notifications(w.star), dict.fromkeys(await w.groups(w.star), 1))


@finds(defects.NOTIFICATION_WRONG)
async def a_notification_has_moved_up(w: RepairWorld) -> None:
    await w.raw.zadd(keys.notifications(w.star), dict.fromkeys(await w.groups(w.star), w.posts[w.bob][-1]))


@finds(defects.NOTIFICATION_WRONG)
async def a_notification_has_no_event(w: RepairWorld) -> None:
    await w.raw.zadd(keys.notifications(w.dave), {f"mention:{w.posts[w.bob][-1]}": w.posts[w.bob][-1], "follow:3": 5})


@finds(defects.NOTIFICATION_WRONG)
async def a_list_of_notifications_has_a_floor(w: RepairWorld) -> None:
    await w.raw.zadd(keys.notifications(w.star), {"f": await w.graph.log.last()})
    await w.raw.zrem(keys.notifications(w.star), *await w.groups(w.star))


@finds(defects.READ_MARK_WRONG)
async def a_read_mark_is_lost(w: RepairWorld) -> None:
    await w.raw.delete(keys.notifications_read(w.star))
