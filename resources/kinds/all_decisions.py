"""An operator's decisions about a state: each appends one entry with its reason, nothing is edited in place (docs/reference/state.md, Decisions by hand).

A decision is a function from the newest entry to a :class:`Draft`. So it can be shown before the operator agrees to it
(:func:`preview`), and is made again on what is the newest entry then (:func:`decide`).
"""

from resources.decisions.adopt import adopt
from resources.decisions.deciding import decide
from resources.decisions.draft import Draft, DraftBuilder
from resources.decisions.previewing import Preview, preview
from resources.decisions.reset import reset
from resources.decisions.state import accept, rewind, set_watermark
from resources.decisions.taken_over import import_entries
from resources.kinds.path.file_decisions import quarantine_late, release, unprocess

__all__ = [
    "Draft",
    "DraftBuilder",
    "Preview",
    "accept",
    "adopt",
    "decide",
    "import_entries",
    "preview",
    "quarantine_late",
    "release",
    "reset",
    "rewind",
    "set_watermark",
    "unprocess",
]
