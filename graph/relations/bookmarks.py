"""Bookmarks: posts that a user wants to find again. Only this user sees them, and posts do not count them.

A bookmark of a deleted post is not shown. It is kept until its user removes it, reaches the limit of bookmarks, or is
erased.
"""

from graph import keys
from graph.log.pair_events import Bookmarked, BookmarkRemoved
from graph.relations.pair_sets import PairSet

BOOKMARKS = PairSet("bookmark", Bookmarked, BookmarkRemoved, keys.bookmarks)
