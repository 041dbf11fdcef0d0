"""The windows that entries have loaded, also those of entries that a compaction has deleted.

A dataflow that reads the table asks what was loaded after the entry that it has seen. A yearly one asks
for a year. So each compaction adds a line for each deleted entry to a record beside the log, which the
object with the highest number holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from partitions.errors import CorruptWatermark
from partitions.intervals import union
from partitions.state_of_kind import lists_windows
from partitions.window.state import WindowState
from partitions.window.work_unit import WorkUnit
from resources.watermarks.entry import LOADS, Entry, Why
from resources.watermarks.entry_names import descending_name
from resources.watermarks.lists import ListKind, StoredList
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import LOADED_WINDOWS
from resources.watermarks.work_units import WORK_UNITS, loaded_units

_RECORD = ListKind("loaded_windows", 1, ("number", "id", "windows"))
"""A deleted entry: its number, the start of its id, and what it has loaded; None: anything may have changed.

Its windows are ``[start, read from, end, group of units]``. The head lists the groups, and tells the number
after which no entry is missing.
"""

_EVERYTHING: frozenset[Why] = frozenset({"adopt", "import", "set"})
"""Reasons of entries after which any row of the table may be another one: windows count without a load."""

_ID_LETTERS = 8
_MAX_ENTRIES, _MAX_WINDOWS = 10_000, 50_000
"""The most deleted entries, and windows of them, that a record holds: 14 months of hourly loads, in 0.3 MB."""


class LoadedWindow(NamedTuple):
    """A window of a unit that was loaded, or adjacent ones, epoch milliseconds.

    Attributes:
        unit: the unit's identity.
        start: its start.
        lower: where the read began: its start, or later if only the rest of the window was read.
        end: its end.
    """

    unit: str
    start: int
    lower: int
    end: int


def windows_of(log: WatermarkLog, dataflow: str, entry: Entry) -> list[LoadedWindow] | None:
    """Return the windows that an entry has loaded; None if any row of the table may have changed."""
    if entry.why in _EVERYTHING or (entry.why == "rewind" and _raises_state(log, dataflow, entry)):
        return None
    if entry.why not in LOADS:
        return []
    if not lists_windows(entry.kind) or entry.file_list is None:
        return None
    windows = [_window(work) for work in loaded_units(log.get_list(entry.file_list, WORK_UNITS))]
    timed = [window for window in windows if window is not None]
    return timed if len(timed) == len(windows) else None


def _raises_state(log: WatermarkLog, dataflow: str, entry: Entry) -> bool:
    """Return whether a rewind counts windows as loaded that did not count before, as one before a reset."""
    before = log.find(dataflow, entry.previous)
    if before is None or not lists_windows(entry.kind) or not lists_windows(before.kind):
        return True
    return not WindowState.of(before.state()).covers(WindowState.of(entry.state()))


def _window(work: WorkUnit) -> LoadedWindow | None:
    if work.start is None or work.end is None:
        return None
    lower = work.start if work.lower is None else work.lower
    return LoadedWindow(work.unit, work.start, lower, work.end)


@dataclass(frozen=True)
class DeletedLoads:
    """What the deleted entries of a log have loaded.

    Attributes:
        number: number of the newest of them; 0 if there are none.
        after: no entry after this number is missing.
        lines: number, start of the id and windows of each entry, ascending.
        groups: groups of units.
    """

    number: int = 0
    after: int = 0
    lines: Sequence[Sequence[Any]] = ()
    groups: Sequence[Sequence[str]] = ()

    @classmethod
    def of(cls, log: WatermarkLog, dataflow: str) -> DeletedLoads | None:
        """Return the record of a log; None if it has none."""
        for name in log.names(dataflow, LOADED_WINDOWS, 1):
            stored = log.find_list(dataflow, LOADED_WINDOWS, name.removesuffix(".json.gz"), _RECORD)
            if stored is not None:
                head = stored.head
                return cls(head["number"], head["after"], stored.rows, head["groups"])
        return None

    def since(self, number: int, entry_id: str) -> list[LoadedWindow] | None:
        """Return what was loaded after an entry; None if that is unknown.

        Args:
            number: the entry's number.
            entry_id: its id.
        """
        if number < self.after:
            return None
        if number > self.after and not any(
            line[0] == number and entry_id.startswith(line[1]) for line in self.lines
        ):
            return None
        windows: list[LoadedWindow] = []
        for _, _, loaded in (line for line in self.lines if line[0] > number):
            if loaded is None:
                return None
            windows += (
                LoadedWindow(unit, start, lower, end)
                for start, lower, end, group in loaded
                for unit in self.groups[group]
            )
        return windows

    def rules_out(self, number: int, entry_id: str) -> bool:
        """Return whether the entry of a number had another id: the log was lost, and began anew."""
        return any(line[0] == number and not entry_id.startswith(line[1]) for line in self.lines)

    def adding(self, log: WatermarkLog, dataflow: str, entries: Iterable[Entry]) -> DeletedLoads:
        """Return the record with further entries, ascending; the oldest go beyond its limits."""
        groups = {tuple(group): number for number, group in enumerate(self.groups)}
        lines, after, number = [*self.lines], self.after, self.number
        for entry in entries:
            if entry.number <= number:
                continue
            if entry.previous != number:  # entries went before there was a record
                lines, after = [], entry.previous
            loaded: list[LoadedWindow] | None = None
            with suppress(CorruptWatermark):  # its list is lost: anything may have changed
                loaded = windows_of(log, dataflow, entry)
            windows = None if loaded is None else _packed(loaded, groups)
            lines.append([entry.number, entry.id[:_ID_LETTERS], windows])
            number = entry.number
        window_count, first = 0, len(lines)
        while first and len(lines) - first < _MAX_ENTRIES and window_count <= _MAX_WINDOWS:
            first -= 1
            window_count += len(lines[first][2] or ())
        after = lines[first - 1][0] if first else after
        return DeletedLoads(number, after, lines[first:], list(groups))._with_own_groups()

    def _with_own_groups(self) -> DeletedLoads:
        """Return the record without groups of units that no line names."""
        used = sorted({window[3] for line in self.lines for window in line[2] or ()})
        places = {group: place for place, group in enumerate(used)}
        lines = [
            [number, id_, windows and [[*window[:3], places[window[3]]] for window in windows]]
            for number, id_, windows in self.lines
        ]
        return DeletedLoads(self.number, self.after, lines, [self.groups[group] for group in used])

    def put(self, log: WatermarkLog, dataflow: str) -> None:
        """Store the record beside the log; an earlier one stays until it is deleted."""
        head = {"number": self.number, "after": self.after, "groups": self.groups}
        stored = StoredList(_RECORD, self.lines, head)
        log.put_list(dataflow, descending_name(self.number), stored, LOADED_WINDOWS)


def record_loads(log: WatermarkLog, dataflow: str, numbers: Sequence[int]) -> None:
    """Add entries to the record, before they are deleted.

    Args:
        log: the log.
        dataflow: its dataflow, which has windows.
        numbers: the numbers of the entries, ascending.
    """
    earlier = DeletedLoads.of(log, dataflow) or DeletedLoads()
    new = [number for number in numbers if number > earlier.number]
    earlier.adding(log, dataflow, (log.entry(dataflow, number) for number in new)).put(log, dataflow)


def drop_earlier_records(log: WatermarkLog, dataflow: str) -> None:
    """Delete all records but the newest, once the entries are deleted."""
    names = log.names(dataflow, LOADED_WINDOWS, _MAX_ENTRIES)
    log.delete(dataflow, LOADED_WINDOWS, names[1:])


def _packed(loaded: Sequence[LoadedWindow], groups: dict[tuple[str, ...], int]) -> list[list[int]]:
    """Return windows with groups of units; adjacent windows of a unit are joined if they were read whole."""
    units: dict[tuple[int, int, int], list[str]] = {}
    for unit, windows in groupby(sorted(loaded), lambda window: window.unit):
        for stretch in _joined(list(windows)):
            units.setdefault(stretch, []).append(unit)
    return [[*stretch, groups.setdefault(tuple(group), len(groups))] for stretch, group in units.items()]


def _joined(windows: Sequence[LoadedWindow]) -> Iterator[tuple[int, int, int]]:
    whole = union((window.start, window.end) for window in windows if window.lower == window.start)
    yield from ((start, start, end) for start, end in whole)
    yield from (
        (window.start, window.lower, window.end) for window in windows if window.lower != window.start
    )
