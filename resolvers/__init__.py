"""What each field of the API answers: batch resolvers over the social graph, one module a subject.

Resolvers know the viewer and the graph (`Context`) and GraphQL's shapes (global ids, cursors, connections),
but not the schema that names them, nor whether ordinary execution or the breadth-first executor drives
them.
"""
