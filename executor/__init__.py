"""Batch-resolved fields for a Strawberry schema, and the loader that drives them.

A field is declared once, with a resolver that answers for all its parents at once (`executor.fields`).
Ordinary execution drives the declaration through dataloaders (`executor.loader`). The package knows nothing
of the schema it serves: any Strawberry project could use it.
"""
