"""Merging: the newest or oldest posts of many authors, from their hot timelines in the store.

A script merges the timelines in the store. The posts found so far narrow the window for the remaining authors, so of
thousands of timelines, only a few are read completely. On a cluster, one command merges authors of many slots that are
on one node; while a slot moves, each author needs a separate command.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from graph import keys
from graph.chunks import chunks
from graph.model import MAX_NUMBER
from graph.paging import Window
from graph.post_lists import TIMELINE, PostList
from graph.store.commands import Command, Word, script
from graph.store.outages import SlotMoving
from graph.store.store import Store

AUTHORS_PER_SCRIPT = 1000
COMMANDS_AT_ONCE = 500
FLOOR = "f"
"""The member of a list whose score is the archive floor: all posts up to this number are archived."""


class Which(Enum):
    """The authors and floors that a merge considers. The values are arguments of the script."""

    ALL = ""
    PUSHED = "push only"
    """Skip authors whose delivery mode is pull or promoting."""
    COUNTED = "count archived"
    """Leave out the floors of authors without archived posts, so that the archive is not queried for these authors."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Post ids in paging direction, the archive floors within their range by author, and the skipped authors."""

    posts: list[int]
    floors: dict[int, int]
    skipped: list[int]


async def merge_hot(
    store: Store,
    reads: Sequence[tuple[Collection[int], Window]],
    which: Which = Which.ALL,
    post_list: PostList = TIMELINE,
) -> list[Merged]:
    """Merge the hot posts of each group of authors in the group's window. One round trip for all groups.

    `post_list` is the kind of list to merge, by default the authors' timelines. Other kinds of lists may belong to
    posts.

    A command merges up to 1,000 authors, who are all on one node of a cluster. While slots of the cluster move, a
    command merges one author, and 500 commands share a round trip. It then also returns the floors of authors without
    archived posts: a command that needs two keys would wait until the slot has moved if one of them does not exist.
    `PUSHED` always needs two.
    """
    try:
        command = partial(merge_command, which, post_list)
        groups = grouped(reads, lambda authors: store.on_one_node(authors, post_list.key, AUTHORS_PER_SCRIPT))
        merges = await send_merges(store.read_across_slots, reads, groups, command, sys.maxsize)
    except SlotMoving:
        command = partial(merge_command, Which.ALL if which is Which.COUNTED else which, post_list, is_alone=True)
        groups = grouped(reads, lambda authors: ([author] for author in authors))
        merges = await send_merges(store.read, reads, groups, command, COMMANDS_AT_ONCE)
    posts: list[list[int]] = [[] for _ in reads]
    floors: list[dict[int, int]] = [{} for _ in reads]
    skipped: list[list[int]] = [[] for _ in reads]
    for index, group, (found, places_and_floors, skipped_places) in merges:
        posts[index] += found
        pairs = zip(places_and_floors[::2], places_and_floors[1::2], strict=True)
        floors[index].update((group[place], floor) for place, floor in pairs)
        skipped[index] += [group[place] for place in skipped_places]
    return [
        Merged(first_of(posts[index], window), floors[index], skipped[index]) for index, (_, window) in enumerate(reads)
    ]


def grouped(
    reads: Sequence[tuple[Collection[int], Window]], groups_of: Callable[[list[int]], Iterable[Sequence[int]]]
) -> list[tuple[int, Sequence[int]]]:
    """Split the authors of each read into groups, and return each group with the index of its read."""
    return [
        (index, group)
        for index, (authors, window) in enumerate(reads)
        for group in groups_of(sorted(authors, reverse=window.forward))
    ]


async def send_merges(
    read: Callable[[Sequence[Command]], Awaitable[list[Any]]],
    reads: Sequence[tuple[Collection[int], Window]],
    groups: Sequence[tuple[int, Sequence[int]]],
    command: Callable[[Sequence[int], Window], Command],
    at_once: int,
) -> list[tuple[int, Sequence[int], Any]]:
    """Send a command for each group, and return each group with its reply. One round trip per `at_once` groups."""
    found = []
    for some in chunks(groups, at_once):
        replies = await read([command(group, reads[index][1]) for index, group in some])
        found += [(index, group, reply) for (index, group), reply in zip(some, replies, strict=True)]
    return found


def newest_of_each(
    store: Store, post_list: PostList, owners: Sequence[int], window: Window
) -> "asyncio.Future[dict[int, list[int]]]":
    """Read the newest hot posts of each owner's list above a number. One round trip, without a script.

    The result omits owners whose hot posts end at an archive floor before the window is full: `merge_hot` returns
    these floors.
    """
    words = ("inf", f"({window.low}", "BYSCORE", "REV", "LIMIT", "0", str(window.count))
    return store.ask_each("ZRANGE", [post_list.key(owner) for owner in owners], words, partial(without_floors, owners))


def without_floors(owners: Sequence[int], replies: Sequence[list[str]]) -> dict[int, list[int]]:
    """Return the posts of each owner, leaving out the owners whose replies include an archive floor."""
    return {owner: list(map(int, posts)) for owner, posts in zip(owners, replies, strict=True) if FLOOR not in posts}


def merge_command(
    which: Which, post_list: PostList, owners: Sequence[int], window: Window, *, is_alone: bool = False
) -> Command:
    """Return the command that merges the lists of owners whose keys are on one node.

    The command declares only its first key, because the declared keys of a command must be in one slot. With
    `is_alone`, there is one owner, and the command declares all of the owner's keys.
    """
    names = [post_list.key(owner) for owner in owners]
    if which is Which.PUSHED:
        names = [name for owner in owners for name in (post_list.key(owner), keys.delivery(owner))]
    elif which is Which.COUNTED:
        names = [name for owner in owners for name in (post_list.key(owner), post_list.cold(owner))]
    high: Word = "inf" if window.high > MAX_NUMBER else window.high
    direction = "newest" if window.forward else "oldest"
    named = names if is_alone else names[:1]
    return script("merge").call(named, window.low, high, window.count, direction, which.value, *names)


def first_of(posts: Collection[int], window: Window) -> list[int]:
    """Return the first distinct posts, at most `window.count`, in paging direction."""
    return sorted(set(posts), reverse=window.forward)[: window.count]
