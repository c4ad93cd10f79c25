"""Bookmarks: posts that a user wants to find again. Only the user knows, and nothing counts them.

A bookmark of a deleted post is not shown. It is kept until its user removes it, needs the room, or is erased.
"""

from graph import keys
from graph.log.pair_events import Bookmarked, BookmarkRemoved
from graph.relations.pair_sets import PairSet

BOOKMARKS = PairSet("bookmark", Bookmarked, BookmarkRemoved, keys.bookmarks)
