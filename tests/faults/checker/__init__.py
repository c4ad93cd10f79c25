"""A black-box checker: load through HTTP, a record of every acknowledgement, and a comparison with what can be read."""
