"""The log: the ordered stream of events that every change is appended to."""
