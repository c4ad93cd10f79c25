"""Benchmarks: one command each, on a private store, through the graph's own interface.

`python -m benchmarks` measures Fanline beside its peers, `python -m benchmarks.fanout` writing to many followers,
`python -m benchmarks.timelines` reading and memory, `python -m benchmarks.live` subscriptions.
"""
