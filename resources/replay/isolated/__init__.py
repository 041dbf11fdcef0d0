"""Isolated replays: a range in a table of its own, until it is promoted or dropped.

See docs/reference/replay.md.
"""
