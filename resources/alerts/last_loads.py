"""When something was loaded last."""

from __future__ import annotations

from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.log import WatermarkLog


class LastLoads:
    """When something was loaded last, by dataflow: from scan to scan only new entries are read."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, str | None]] = {}

    def time(self, log: WatermarkLog, dataflow: str) -> str | None:
        """Return the time of the newest entry that loaded something, or, if none is kept any more, of the oldest entry; None if nothing was ever loaded."""
        read: list[Entry] = []
        newest_id, time = self._newest.get(dataflow, ("", None))
        for entry in log.history(dataflow):
            if entry.id == newest_id:
                break
            read.append(entry)
            if entry.why in LOADS:
                time = entry.time
                break
        else:
            time = read[-1].time if read and read[-1].previous else None
        if read:
            self._newest[dataflow] = read[0].id, time
        return time
