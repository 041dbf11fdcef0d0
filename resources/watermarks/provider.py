"""The provider: raw watermark text by dataflow id, over the log.

See docs/explanation/watermarks.md, Log, provider and manager.
"""

from __future__ import annotations

from typing import Protocol

from partitions.errors import ConfigurationError
from resources.watermarks.entry import CUSTOM, Entry, new_id, next_entry
from resources.watermarks.log import WatermarkLog


class WatermarkProvider(Protocol):
    """A store of raw watermark text."""

    def get_watermark(self, dataflow_id: str) -> str | None:
        """Return the newest text, or None if there is none."""
        ...

    def update_watermark(
        self, dataflow_id: str, text: str, *, job_id: str | None, dataflow_run_id: str | None
    ) -> None:
        """Append a text after the one that this object last returned for the id."""
        ...


class LogProvider:
    """A provider over the log.

    One object is one reader: it remembers the number that it last returned for an id.
    """

    def __init__(self, log: WatermarkLog) -> None:
        """Use a log."""
        self._log = log
        self._last_read: dict[str, Entry | None] = {}

    def get_watermark(self, dataflow_id: str) -> str | None:
        """Return the newest text, or None if there is none."""
        entry = self._last_read[dataflow_id] = self._log.newest(dataflow_id)
        return None if entry is None else entry.watermark

    def update_watermark(
        self, dataflow_id: str, text: str, *, job_id: str | None, dataflow_run_id: str | None
    ) -> None:
        """Append a text at the number after the one that this object last returned.

        Raises:
            Conflict: another writer took that number since it was read.
            ConfigurationError: runs load the dataflow, and their entries belong to commits of its table.
        """
        if dataflow_id not in self._last_read:
            self.get_watermark(dataflow_id)
        last = self._last_read[dataflow_id]
        if last and not last.is_of_own_code:
            raise ConfigurationError(
                f"{dataflow_id}: expected a watermark that only your own code saves, found one of kind {last.kind}, which the dataflow's runs"
                f" save. Use another id, or set it with `strandline state set {dataflow_id} JSON --reason TEXT`"
            )
        first = {} if last else {"kind": CUSTOM, "app_id": new_id(), "fingerprint": ""}
        entry = next_entry(
            last,
            **first,
            watermark=text,
            why="run",
            reason=_reason(job_id),
            run_id=dataflow_run_id,
            job_id=job_id,
        )
        self._last_read[dataflow_id] = self._log.append(dataflow_id, entry, expected=entry.previous)


def _reason(job_id: str | None) -> str:
    """Return how an entry came about, for people."""
    return f"saved by save_watermark{f' in job {job_id}' if job_id else ''}, apart from any rows"
