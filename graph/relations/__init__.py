"""Relations: what events add and end between an owner and members.

A relation says each of its rules once (`graph.relations.relation`): projections, the fold, rebuilds, repairs and
erasures follow from it. `graph.relations.register` lists them all.
"""
