"""Which Dagster partitions a run over windows has loaded as a whole, and what there is to say of each (docs/dagster.md, Runs and partitions).

Belongs here: from slices and entries to partition keys and their metadata. What Dagster is told, and when, is the IO manager's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partitions.definitions import WindowPartitions
from partitions.window.slices import WindowSlice, WorkUnit
from resources.kinds.kind import Kind
from resources.loop.outcome import Committed, Outcome
from resources.watermarks.entry import Entry
from resources.watermarks.lists import SEEN_WORK_UNITS
from resources.watermarks.log import OBSERVED, WatermarkLog


def loaded_partitions(partitions: WindowPartitions, outcome: Outcome) -> dict[str, dict[str, Any]]:
    """Return the partitions that a run has loaded as a whole, with what there is to say of each."""
    return loaded_keys(partitions, outcome.committed)


def loaded_keys(partitions: WindowPartitions, committed: Sequence[Committed]) -> dict[str, dict[str, Any]]:
    """Return the partitions that these slices have loaded; a partition of several units unless one of its units failed."""
    loaded: dict[str, dict[str, Any]] = {}
    for number in committed:
        if not isinstance(number.slice, WindowSlice):
            continue
        for work in number.slice.works:
            key = partitions.key(work.start, work.unit) if work.reason != "rest" else None
            if key is not None:
                shown = loaded.setdefault(key, {"work_units": 0, "state_number": number.entry.number})
                _add(shown, work, number.stats.get(work.key), number.slice)
    failed = failed_keys(partitions, committed)
    return {key: shown for key, shown in loaded.items() if key not in failed}


def failed_keys(partitions: WindowPartitions, committed: Sequence[Committed]) -> set[str | None]:
    """Return the partitions in which a work unit could not be read."""
    slices = [number.slice for number in committed if isinstance(number.slice, WindowSlice)]
    return {partitions.key(unit.work.start, unit.work.unit) for slice_ in slices for unit in slice_.failed}


def committed_before(log: WatermarkLog, dataflow: str, kind: Kind[Any], entry: Entry) -> Committed | None:
    """Return a slice as another run has committed it; None if the log is too short to tell."""
    intent = log.intent(dataflow, entry.number)
    if intent is None or intent.id != entry.id:
        return None
    slice_ = kind.slice_from_rows(intent, log.get_list(intent.file_list, kind.list_kind))
    stored = log.find_list(dataflow, OBSERVED, f"{entry.number:010d}-{entry.id}", SEEN_WORK_UNITS)
    stats = {(start, unit): counts for start, unit, *counts in stored.rows} if stored else {}
    return Committed(entry, entry.rows, entry.files, 0, 0.0, slice=slice_, stats=stats)


def summary(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return what a run has loaded, from its entries."""
    return {
        "status": "committed",
        "rows": sum(entry.rows for entry in entries),
        "files": sum(entry.files for entry in entries),
        "slices": len(entries),
        "state_number": entries[-1].number,
    }


def _add(shown: dict[str, Any], work: WorkUnit, counts: Sequence[Any] | None, slice_: WindowSlice) -> None:
    described = work.describe(slice_.zone)
    shown["work_units"] += 1
    shown["window"] = f"[{described['window']['start']}, {described['window']['end']})"
    shown["reason"] = work.reason if shown.get("reason", work.reason) == work.reason else "several"
    if counts is not None:
        shown["rows"] = shown.get("rows", 0) + counts[0]
