"""An operator's decisions about a state: each appends one entry with its reason.

Nothing is edited in place (docs/reference/state.md, Decisions by hand). A decision is a function from the
newest entry to a :class:`Draft`: :func:`preview` shows the draft before the operator agrees, and
:func:`decide` builds it again on the entry that is the newest by then.
"""

from resources.decisions.adopt import adopt
from resources.decisions.deciding import decide
from resources.decisions.draft import Draft, DraftBuilder
from resources.decisions.importing import import_entries
from resources.decisions.previewing import Preview, preview
from resources.decisions.reset import reset
from resources.decisions.state import accept, rewind, set_watermark
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
