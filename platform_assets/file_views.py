"""Files that wait for the operator, as documents: those that came late, and those in quarantine."""

from __future__ import annotations

from typing import Any

from resources.kinds.path.sweep import LateFiles
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine

_SHOWN = 50


def files_aside(log: WatermarkLog, entry: Entry | None, late: LateFiles) -> dict[str, Any]:
    """Return late files, and files in quarantine, the first 50 of each. Released ones wait for a run, and not for the operator."""
    held = read_quarantine(log, entry).held
    files = [{"path": file.file.path, "reason": file.reason} for file in held[:_SHOWN]]
    return {
        "late": {"count": late.count, "paths": late.first(_SHOWN)},
        "quarantined": {"count": len(held), "files": files},
    }
