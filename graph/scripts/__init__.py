"""Lua scripts, one atomic step each. Every header documents KEYS and ARGV.

While a slot of a cluster is moving key by key, a script fails if it touches a key that it has deleted or emptied. Its
earlier writes remain, and the script is repeated (`graph.store.outages.is_retryable`). So a script must not empty a key
that it uses again: it writes the tombstone or the floor first, and removes the rest afterwards. The value that makes a
repetition skip a change, such as the version of an element, is written last.
"""
