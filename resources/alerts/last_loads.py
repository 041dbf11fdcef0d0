"""The time of the last load of each dataflow."""

from __future__ import annotations

from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.log import WatermarkLog


class LastLoads:
    """The time of the last load by dataflow; each scan reads only new entries."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, str | None]] = {}

    def time(self, log: WatermarkLog, dataflow: str) -> str | None:
        """Return the time of the newest entry that loaded something; None if nothing was ever loaded.

        If the log no longer has it, return the time of the oldest entry.
        """
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
