"""The register of all relations."""

from graph.relations.bookmarks import BOOKMARKS
from graph.relations.follows_and_blocks import FollowsAndBlocks
from graph.relations.lists import ListMemberships
from graph.relations.mutes import MUTES
from graph.relations.pair_sets import PairSets
from graph.relations.relation import Relation

FOLLOWS_AND_BLOCKS = FollowsAndBlocks()
LISTS = ListMemberships()
PAIRS = PairSets(MUTES, BOOKMARKS)

RELATIONS: tuple[Relation, ...] = (FOLLOWS_AND_BLOCKS, PAIRS, LISTS)
"""All relations except likes, which belong to the records of their posts, and plain reposts, which are posts."""
