"""Replays: a range is read again, chunk by chunk, by the loop that loads everything (docs/reference/replay.md)."""
