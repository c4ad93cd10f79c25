"""Benchmarks: one command each, on a private store, through the graph's own interface.

`python -m benchmarks.fanout` measures writing to many followers, `python -m benchmarks.timelines` reading and memory.
"""
