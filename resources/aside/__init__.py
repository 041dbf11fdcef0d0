"""Replays that stand aside: a range in a table of its own, until it is promoted or dropped (docs/replay.md, Aside)."""

from resources.aside.dropping import drop, preview_drop
from resources.aside.promoting import Promoted, preview_promote, promote
from resources.aside.replaying import check_aside, plan_aside, replay_aside
from resources.aside.standing import Aside, find_aside, stored_asides

__all__ = [
    "Aside",
    "Promoted",
    "check_aside",
    "drop",
    "find_aside",
    "plan_aside",
    "preview_drop",
    "preview_promote",
    "promote",
    "replay_aside",
    "stored_asides",
]
