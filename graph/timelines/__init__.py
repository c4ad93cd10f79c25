"""Timelines: one algorithm for push, pull and hybrid.

`cache` keeps home timelines in the store, `reach` decides which authors are pushed into them, `page` reads.
"""
