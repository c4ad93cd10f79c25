"""Lua scripts, one atomic step each; every header documents KEYS and ARGV.

While a slot of a cluster moves key by key, a script cannot touch a key that it has deleted or emptied: it fails there,
what it has written stays, and it is repeated (`graph.store.outages.is_retryable`). So a script must not empty a key of
which it needs a part again: it writes the tombstone or the floor first, and removes the rest afterwards. What makes a
repetition skip a change, such as the version of an element, is written last.
"""
