"""Slices of windows x units as the log stores them: work units, their errors, and their input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partitions.dataflow import Dataflow
from partitions.window.definition import WindowWatermark
from partitions.window.slices import WindowSlice, files_of
from partitions.window.work_outcomes import OutdatedStretch, UpstreamRead, WindowSpan
from partitions.window.work_unit import FailedUnit, OldWindow, WorkUnit
from resources.kinds.contract.stored_slices import StoredSlices
from resources.watermarks.entry import Intent
from resources.watermarks.lists import ListKind, StoredList
from resources.watermarks.work_units import WORK_UNITS


@dataclass(frozen=True)
class StoredWindowSlices(StoredSlices[WindowSlice]):
    """Conversion of slices to lists of work units.

    Attributes:
        dataflow: the definition.
    """

    dataflow: Dataflow

    @property
    def _definition(self) -> WindowWatermark:
        return self.dataflow.window

    @property
    def list_kind(self) -> ListKind:
        """The list of work units."""
        return WORK_UNITS

    def to_rows(self, slice_: WindowSlice) -> StoredList:
        """Return each work unit with its error, the input, the planned time, and the deferred units."""
        head: dict[str, Any] = {
            "read_from": slice_.version,
            "at": slice_.at,
            "deferred": list(map(list, slice_.deferred)),
            "early": list(map(list, slice_.early)),
            "old": list(map(list, slice_.old)),
        }
        if slice_.upstream is not None:
            head["upstream"] = [slice_.upstream.entries, list(map(list, slice_.upstream.changed))]
            if slice_.upstream.read_at is not None:
                head["upstream"].append(slice_.upstream.read_at)
        if slice_.outdated:
            head["outdated"] = list(map(list, slice_.outdated))
        if slice_.files is not None:
            head["files"] = [[list(file.row) for file in slice_.files[work.key]] for work in slice_.works]
        loaded = [[*work, None] for work in slice_.works]
        failed = [[*unit.work, unit.error] for unit in slice_.failed]
        return StoredList(WORK_UNITS, [*loaded, *failed], head)

    def from_rows(self, intent: Intent, stored: StoredList) -> WindowSlice:
        """Return the slice with the stored work units and input; zone, grid and name are the definition's."""
        rows = [(WorkUnit(*row), error) for *row, error in stored.rows]
        works = tuple(work for work, error in rows if error is None)
        time, listed = self._definition.time_entry, stored.head.get("files")
        upstream = stored.head.get("upstream")
        return WindowSlice(
            works,
            self._definition.zone,
            self._definition.default_grid.text,
            time.name if time else WindowSlice.name,
            stored.head["at"],
            failed=tuple(FailedUnit(work, error) for work, error in rows if error is not None),
            deferred=tuple(WindowSpan(*stored_units) for stored_units in stored.head["deferred"]),
            early=tuple(WindowSpan(*stored_units) for stored_units in stored.head["early"]),
            old=tuple(OldWindow(*stored_old) for stored_old in stored.head["old"]),
            makes_room=intent.replaces == "own",
            version=stored.head["read_from"],
            files=None if listed is None else files_of(works, listed),
            upstream=None
            if upstream is None
            else UpstreamRead(upstream[0], tuple(map(_changed_stretch, upstream[1])), *upstream[2:]),
            outdated=tuple(OutdatedStretch(*stretch) for stretch in stored.head.get("outdated", ())),
            why="replay" if intent.why == "replay" else "run",
        )


def _changed_stretch(stored: list[Any]) -> tuple[str, int, int]:
    unit, start, end = stored
    return unit, start, end
