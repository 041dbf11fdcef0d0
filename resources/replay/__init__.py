"""Replays: the load loop reads a range again, chunk by chunk (docs/reference/replay.md)."""
