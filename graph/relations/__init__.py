"""Relations: connections between an owner and members that events add and end.

A relation defines how its events are folded into the content of the store. Rebuilds and erasures use that definition
(`graph.relations.relation`), and repairs compare the store with the folded content. Pair sets also derive their
projection from it; other relations are projected by their own scripts. `graph.relations.register` lists all relations
except likes and plain reposts, which belong to posts.
"""
