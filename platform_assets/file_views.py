"""Files that wait for the operator, as documents: late files and files in quarantine."""

from __future__ import annotations

from typing import Any

from resources.kinds.path.sweep import LateFiles
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine

_SHOWN = 50


def late_and_quarantined_files(log: WatermarkLog, entry: Entry | None, late: LateFiles) -> dict[str, Any]:
    """Return the first 50 late files and the first 50 files in quarantine, with their counts.

    Released files are left out: they wait for a run.
    """
    quarantined = read_quarantine(log, entry).waiting
    files = [{"path": file.file.path, "reason": file.reason} for file in quarantined[:_SHOWN]]
    return {
        "late": {"count": late.count, "paths": late.first(_SHOWN)},
        "quarantined": {"count": len(quarantined), "files": files},
    }
