"""Replays: a range is read again, chunk by chunk, by the loop that loads everything (docs/replay.md)."""

from resources.replay.asked import Asked
from resources.replay.in_place import plan_in_place, read_again, replay_in_place
from resources.replay.reading import Replayed

__all__ = ["Asked", "Replayed", "plan_in_place", "read_again", "replay_in_place"]
