"""Timelines: pages, the caches and merges behind them, fan-out, and which authors are pushed.

One algorithm for three models: push, pull and hybrid.
"""
