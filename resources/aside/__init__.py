"""Replays that stand aside: a range in a table of its own, until it is promoted or dropped (docs/replay.md, Aside)."""

from resources.aside.dropping import drop, preview_drop
from resources.aside.promoting import Promoted, preview_promote, promote
from resources.aside.standing import Aside, find_aside, stored_asides

__all__ = [
    "Aside",
    "Promoted",
    "drop",
    "find_aside",
    "preview_drop",
    "preview_promote",
    "promote",
    "stored_asides",
]
