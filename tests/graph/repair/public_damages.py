"""Ways to damage the public timeline in the archive, added to `DAMAGES`."""

from graph.model import MAX_NUMBER
from graph.repair import defects
from tests.graph.repair.broken import RepairWorld
from tests.graph.repair.damages import DAMAGES, finds

__all__ = ["DAMAGES"]


@finds(defects.PUBLIC_WRONG)
async def a_post_is_missing_on_the_public_timeline(w: RepairWorld) -> None:
    w.sql("DELETE FROM public_posts WHERE number IN (?, ?)", w.posts[w.bob][0], w.posts[w.bob][-1])


@finds(defects.PUBLIC_WRONG)
async def a_deleted_post_is_on_the_public_timeline(w: RepairWorld) -> None:
    w.sql("INSERT INTO public_posts (number, author) VALUES (?, ?)", w.deleted[0], w.bob)


@finds(defects.PUBLIC_WRONG)
async def a_post_is_on_the_public_timeline_under_another_author(w: RepairWorld) -> None:
    w.sql("UPDATE public_posts SET author = ? WHERE number = ?", w.dave, w.posts[w.bob][0])


@finds(defects.PUBLIC_WRONG)
async def a_post_without_an_event_is_on_the_public_timeline(w: RepairWorld) -> None:
    w.sql("INSERT INTO public_posts (number, author) VALUES (?, ?)", w.unused, w.bob)


@finds(defects.SUSPENSION_WRONG, defects.PUBLIC_WRONG)
async def a_suspension_is_noted_without_an_event(w: RepairWorld) -> None:
    w.sql("INSERT INTO public_moves (author, number, suspended, rest) VALUES (?, 7, 1, 0)", w.dave)


@finds(defects.SUSPENSION_WRONG)
async def a_move_is_noted_without_an_event(w: RepairWorld) -> None:
    w.sql("INSERT INTO public_moves (author, number, suspended, rest) VALUES (?, 7, 0, ?)", w.dave, MAX_NUMBER + 1)
