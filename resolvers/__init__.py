"""The resolvers of the API, one module per subject. Most are batch resolvers over the social graph.

Resolvers use the viewer and the graph (`Context`) and produce global ids, cursors and connections. They import nothing
from `schema`, and behave the same in ordinary execution and in the breadth-first executor.
"""
