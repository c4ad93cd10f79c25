"""Relations: connections between an owner and members that events add and end.

A relation defines how its events fold, and folds, rebuilds and erasures use that definition
(`graph.relations.relation`). Repairs compare the store with the same fold. Sets of pairs also derive their projection
from it; other relations are projected by scripts of their own. `graph.relations.register` has all relations except
likes and plain reposts, which belong to posts.
"""
