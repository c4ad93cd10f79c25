"""Relations: connections between an owner and members that events add and end.

A relation says how its events fold, and the fold, rebuilds and erasures follow from that (`graph.relations.relation`).
Repairs compare the store with the same fold. For sets of pairs, the projection follows, too; others project with
scripts of their own. `graph.relations.register` has all of them but likes and plain reposts, which are parts of posts.
"""
