"""The changes of one commit to a state of windows (docs/explanation/watermarks.md, Window watermarks)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from partitions.errors import shorten_to_line
from partitions.intervals import subtract, union
from partitions.log_position import LogPosition
from partitions.window.calendar_grid import Grid
from partitions.window.window_intervals import WindowIntervals
from partitions.window.work_outcomes import Failure, LoadedUnit, TimeBound, UpstreamRead, WindowSpan

_MAX_LETTERS = 500
"""The most letters of an error that the state keeps, since every failed work unit has one."""


class StateChanges:
    """A state under change; unchanged parts are shared with the old one."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Start without a change.

        Args:
            fields: the state's fields, by their names.
        """
        self._old = fields
        self._intervals: dict[str, dict[str, WindowIntervals]] = {
            "units": {},
            "over_cap": {},
            "reread_whole": {},
            "old": {},
            "early": {},
        }
        self._open: dict[str, list[int]] = dict(fields["open"])
        self._failed: dict[str, Mapping[TimeBound, Failure]] = dict(fields["failed"])
        self._skipped: dict[str, list[list[int]]] = dict(fields["skipped"])
        self._changed: dict[str, list[list[Any]]] = dict(fields["changed"])
        self._upstream: Mapping[str, list[Any]] | None = None
        self._read_at: Mapping[str, Any] = fields["read_at"]
        self._retried = False

    def fields(self) -> dict[str, Any]:
        """Return the fields of the state with all changes."""
        intervals = {
            name: {**self._old[name], **{unit: of_unit.items for unit, of_unit in of_units.items()}}
            for name, of_units in self._intervals.items()
        }
        return {
            "units": intervals["units"],
            "open": _without_empty(self._open),
            "failed": _without_empty(self._failed),
            "skipped": _without_empty(self._skipped),
            "over_cap": _without_empty(intervals["over_cap"]),
            "reread_whole": _without_empty(intervals["reread_whole"]),
            "old": _without_empty(intervals["old"]),
            "early": _without_empty(intervals["early"]),
            "changed": _without_empty(self._changed),
            "upstream": self._old["upstream"] if self._upstream is None else self._upstream,
            "read_at": self._read_at,
            "retried": self._retried,
        }

    def see_upstream(self, upstream: UpstreamRead) -> None:
        """Record how far the upstream was seen, and what it has loaded again.

        All slices of a plan have seen the same, and the first of them records it.
        """
        before, self._upstream = self._old["read_at"], upstream.entries
        self._read_at = before if upstream.read_at is None else upstream.read_at
        if self._old["upstream"] == upstream.entries and self._read_at == before:
            return
        read_at = [LogPosition.of(before).words] if before and upstream.read_at is not None else []
        for unit, start, end in upstream.changed:
            self.add_changed(unit, start, end, read_at)

    def add_changed(self, unit: str, start: int, end: int, read_at: list[str]) -> None:
        """Record that a stretch has changed, and the position that it was read at, unless that is noted."""
        noted = self._changed.get(unit, [])
        rest = subtract([(start, end)], union(sorted((part[0], part[1]) for part in noted)))
        new = [[lower, upper, *read_at] for lower, upper in rest]
        self._changed[unit] = _join(sorted([*noted, *new], key=lambda part: part[0]))

    def record_failure(self, unit: str, start: TimeBound, error: str, at: int | None) -> None:
        """Record a failed try."""
        before = self._failure(unit, start)
        attempts = (before.attempts if before else 0) + 1
        self._set_failure(unit, start, Failure(attempts, shorten_to_line(error, _MAX_LETTERS), at))

    def _failure(self, unit: str, start: TimeBound) -> Failure | None:
        return self._failed.get(unit, {}).get(start)

    def _set_failure(self, unit: str, start: TimeBound, failure: Failure) -> None:
        self._retried |= failure.attempts > 1
        self._failed[unit] = {**self._failed.get(unit, {}), start: failure}

    def record_deferred(self, units: WindowSpan, at: int | None) -> None:
        """Record due work that has to wait."""
        if units.start is not None and units.end is not None:
            self._intervals_of("reread_whole" if units.reread_whole else "over_cap", units.unit).add(
                units.start, units.end, Grid.parse(units.grid)
            )
        elif self._failure(units.unit, None) is None:
            self._set_failure(units.unit, None, Failure(0, None, at))

    def record_success(self, loaded: LoadedUnit) -> None:
        """Record a work unit as loaded up to its end."""
        if (failure := self._failure(loaded.unit, loaded.start)) is not None:
            self._retried |= failure.attempts > 0
            self._failed[loaded.unit] = {
                start: remaining
                for start, remaining in self._failed[loaded.unit].items()
                if start != loaded.start
            }
        intervals = self._intervals_of("units", loaded.unit)
        if loaded.start is None or loaded.end is None or loaded.lower is None:
            if self._has("old", loaded.unit):
                self._intervals_of("old", loaded.unit).items.clear()  # all rows of the unit are deleted
            return
        before = intervals.raise_high(loaded.start, loaded.end, loaded.grid)
        self._record_read(loaded.unit, before, loaded.lower, loaded.end)
        if self._has("early", loaded.unit) and (before is None or before <= loaded.end):
            self._intervals_of("early", loaded.unit).drop(loaded.start)
        for name in ("over_cap", "reread_whole"):
            if self._has(name, loaded.unit):
                self._intervals_of(name, loaded.unit).drop(loaded.start)
        if self._upstream is not None and loaded.unit in self._changed:
            remaining_changes = _subtract(self._changed[loaded.unit], loaded.lower, loaded.end)
            self._changed[loaded.unit] = list(remaining_changes)
        starts = [start for start in self._open.get(loaded.unit, ()) if start != loaded.start]
        self._open[loaded.unit] = sorted([*starts, loaded.start]) if loaded.open else starts

    def add_early(self, spans: Iterable[WindowSpan]) -> None:
        """Record windows that were loaded before their end."""
        for units in spans:
            if units.start is not None and units.end is not None:
                self._intervals_of("early", units.unit).add(units.start, units.end, Grid.parse(units.grid))

    def drop_replaced(self, old: Iterable[tuple[str, int]]) -> None:
        """Drop old windows whose rows were deleted."""
        for unit, start in old:
            self._intervals_of("old", unit).drop(start)

    def add_old(self, unit: str, start: int, end: int) -> None:
        """Record rows that no current window holds."""
        self._intervals_of("old", unit).add(start, end, Grid("none"))

    def _has(self, name: str, unit: str) -> bool:
        return unit in self._intervals[name] or unit in self._old[name]

    def _intervals_of(self, name: str, unit: str) -> WindowIntervals:
        changed = self._intervals[name]
        if unit not in changed:
            changed[unit] = WindowIntervals(self._old[name].get(unit, ()), self._old["grid"])
        return changed[unit]

    def _record_read(self, unit: str, before: int | None, lower: int, end: int) -> None:
        """Record the stretch between the high and the start of a read: abstinence leaves it unread."""
        unread = list(_subtract(self._skipped.get(unit, ()), lower, end))
        if before is not None and lower > before:
            unread.append([before, lower])
        self._skipped[unit] = unread


def _without_empty(of_units: Mapping[str, Any]) -> dict[str, Any]:
    return {unit: of_unit for unit, of_unit in of_units.items() if of_unit}


def _subtract(ranges: Iterable[list[Any]], lower: int, upper: int) -> Iterator[list[Any]]:
    for start, end, *read_at in ranges:
        if start < min(end, lower):
            yield [start, min(end, lower), *read_at]
        if max(start, upper) < end:
            yield [max(start, upper), end, *read_at]


def _join(ranges: Iterable[list[Any]]) -> list[list[Any]]:
    """Join adjacent stretches that were read at the same position; they are ascending and disjoint."""
    joined: list[list[Any]] = []
    for range_ in ranges:
        if joined and joined[-1][1] == range_[0] and joined[-1][2:] == range_[2:]:
            joined[-1] = [joined[-1][0], *range_[1:]]
        else:
            joined.append(range_)
    return joined
