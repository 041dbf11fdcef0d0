"""Replays that stand aside: a range in a table of its own, until it is promoted or dropped (docs/reference/replay.md, Isolated)."""
