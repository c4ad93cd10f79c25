"""Benchmarks: one command each. Every command starts a private store and uses the public interface of the graph.

`python -m benchmarks` compares Fanline with other servers. `python -m benchmarks.fanout` measures writes,
`python -m benchmarks.timelines` measures reads and memory, and `python -m benchmarks.live` measures subscriptions.
"""
