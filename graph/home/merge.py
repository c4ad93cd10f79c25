"""Merging: the newest or oldest posts of many authors at once, from their hot timelines in the store.

The work is done beside the data, by one script for many authors; what it has found so far narrows the window for
the authors to come, so that of thousands of timelines few are really read.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from graph import keys
from graph.model import MAX_NUMBER
from graph.paging import Window
from graph.store.commands import Command, Word, script
from graph.store.store import Store

AUTHORS_PER_SCRIPT = 1000


@dataclass(frozen=True, slots=True)
class Merged:
    """Post ids in paging direction; the archive floors inside their range, by author; the authors left out."""

    posts: list[int]
    floors: dict[int, int]
    left_out: list[int]


async def merge_hot(
    store: Store, reads: Sequence[tuple[Collection[int], Window]], *, pushed: bool = False
) -> list[Merged]:
    """Merge the hot posts of each group of authors in its window. One round trip for all.

    With `pushed`, authors that are merged at read, or on the way to it, are left out and named. On one server a
    script serves a thousand authors, on a cluster those of one slot.
    """
    commands: list[Command] = []
    asked: list[tuple[int, list[int]]] = []
    for index, (authors, window) in enumerate(reads):
        for group in store.together(sorted(authors, reverse=window.forward), keys.posts, AUTHORS_PER_SCRIPT):
            commands.append(merge_call(group, window, pushed=pushed))
            asked.append((index, group))
    replies = await store.read(commands)
    posts: list[list[int]] = [[] for _ in reads]
    floors: list[dict[int, int]] = [{} for _ in reads]
    left_out: list[list[int]] = [[] for _ in reads]
    for (index, group), (found, ends, places) in zip(asked, replies, strict=True):
        posts[index] += found
        floors[index].update((group[place], floor) for place, floor in zip(ends[::2], ends[1::2], strict=True))
        left_out[index] += [group[place] for place in places]
    return [
        Merged(cut(posts[index], window), floors[index], left_out[index]) for index, (_, window) in enumerate(reads)
    ]


def merge_call(authors: Sequence[int], window: Window, *, pushed: bool) -> Command:
    """Make the command that merges the timelines of authors whose keys may stand in one command."""
    names = [keys.posts(author) for author in authors]
    if pushed:
        names = [name for author in authors for name in (keys.posts(author), keys.delivery(author))]
    high: Word = "inf" if window.high > MAX_NUMBER else window.high
    direction = "newest" if window.forward else "oldest"
    return script("merge").call(names, window.low, high, window.count, direction, "pushed" if pushed else "")


def cut(posts: Collection[int], window: Window) -> list[int]:
    """Give the distinct posts that a window takes, in paging direction."""
    return sorted(set(posts), reverse=window.forward)[: window.count]
