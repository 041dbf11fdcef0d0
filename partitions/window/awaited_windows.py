"""The windows of a dataflow that wait for its upstream, and those to load again since it has changed.

Windows are ranges of indexes here. See docs/how-to/chains.md, Wait for complete windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from partitions.instants import as_datetime, milliseconds
from partitions.intervals import Interval, consecutive, intersect, subtract, union
from partitions.plan import Skip, pluralize
from partitions.window.definition import WindowWatermark
from partitions.window.incomplete import LoadAfter, loads_incomplete
from partitions.window.ledger import UNKNOWN, Gap, join_gaps
from partitions.window.loaded_windows import LoadedWindows
from partitions.window.reasons import Reason
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT
from partitions.window.upstream import UpstreamTables, instant_in_words, window_in_words
from partitions.window.windows import Windows
from partitions.window.work_outcomes import UpstreamRead
from partitions.window.work_unit import describe_unit

IndexRange = tuple[int, int]
"""Windows ``[first, after)``."""

_MANY_COMMITS = 50
"""From this number of commits on a run records that it has read them, though no window is due."""

_LACKS, _WAITS = "lacks", "waits for"
"""What the reason of a gap begins with: a loaded window without a part of it, and one that is not loaded."""


@dataclass(frozen=True)
class AwaitedWindows:
    """Compares the windows of a dataflow with what its upstream has.

    Attributes:
        upstream: what the table that is read holds.
        definition: the declared watermark.
        state: the committed state; its default grid is the definition's.
        windows: all windows of the plan.
        now: the clock, epoch milliseconds.
        requested: the windows that are named to people; None: all.
    """

    upstream: UpstreamTables
    definition: WindowWatermark
    state: WindowState
    windows: Windows
    now: int
    requested: Sequence[IndexRange] | None = None
    _cache: dict[tuple[str, str], list[IndexRange]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        upstream: UpstreamTables,
        definition: WindowWatermark,
        state: WindowState,
        windows: Windows,
        now: datetime,
        requested: Iterable[int] | None = None,
    ) -> AwaitedWindows:
        """Bind to the windows of a plan at an instant, aware; ``requested`` are ascending indexes."""
        rebased = state.rebased(definition.default_grid)
        named = None if requested is None else list(consecutive(requested))
        return cls(upstream, definition, rebased, windows, milliseconds(now), named)

    def incomplete(self, unit: str) -> list[IndexRange]:
        """Return the windows of a unit whose upstream lacks a part of them."""
        return self._once("incomplete", unit, self._incomplete)

    def _incomplete(self, unit: str) -> list[IndexRange]:
        if not self.upstream.is_awaited:
            return []
        # Of windows that are not loaded yet, the retention has taken rows.
        expired = subtract(self.upstream.expired_stretches(unit), self._spans(self._loaded(unit)))
        return self._touched(union(sorted([*self.upstream.lacking(unit), *expired])))

    def waiting(self, unit: str) -> list[IndexRange]:
        """Return the incomplete windows of a unit that no run may load now."""
        return self._once("waiting", unit, self._waiting)

    def _waiting(self, unit: str) -> list[IndexRange]:
        if self.upstream.problem is not None:  # nothing is known of the table, so nothing may be read
            return [(0, len(self.windows))] if len(self.windows) else []
        mode, incomplete = self.definition.incomplete, self.incomplete(unit)
        if mode == "wait":
            return incomplete
        ends, now = self.windows.ends, self.now
        return list(
            consecutive(
                index
                for first, after in incomplete
                for index in range(first, after)
                if not loads_incomplete(mode, ends[index], now)
            )
        )

    def expired(self, unit: str) -> list[IndexRange]:
        """Return the loaded windows that no run reads again: the retention has deleted rows of them upstream."""
        return _common(self._touched(self.upstream.expired_stretches(unit)), self._loaded(unit))

    def held_back(self, unit: str) -> list[IndexRange]:
        """Return the windows of a unit that no run may load now, whatever is asked for."""
        return union(sorted([*self.waiting(unit), *self.expired(unit)]))

    def changed(self, unit: str) -> list[IndexRange]:
        """Return the loaded windows of a unit to load again: they are complete, and differ from the table."""
        return self._once("changed", unit, self._changed)

    def _changed(self, unit: str) -> list[IndexRange]:
        stretches = union(
            sorted([*self._noted(unit), *self.upstream.changed(unit), *self._changed_in_source(unit)])
        )
        changed = _common(self._touched(stretches), self._loaded(unit))
        return _without(_without(changed, self.expired(unit)), self.incomplete(unit))

    def changes(self, units: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
        """Return the loaded stretches that have changed since the entries that the state knows, by unit."""
        stretches: list[tuple[str, int, int]] = []
        for unit in dict.fromkeys([*self.state.units, *units]):
            loaded = union(sorted((interval[0], interval[1]) for interval in self.state.units.get(unit, ())))
            changed = union(sorted([*self.upstream.changed(unit), *self._windows_changed_in_source(unit)]))
            both = intersect(((start, end, unit) for start, end in changed), loaded)
            stretches += [(unit, start, end) for start, end, unit in both]
        return tuple(stretches)

    def _changed_in_source(self, unit: str) -> list[Interval]:
        """Return the loaded stretches of a unit whose rows commits have changed.

        What a window that grows has not read yet is no change of it.
        """
        source = self.upstream.source
        if source is None:
            return []
        loaded = union(sorted((interval[0], interval[1]) for interval in self.state.units.get(unit, ())))
        both = intersect(((start, end, None) for start, end in source.changed(unit)), loaded)
        return [(start, end) for start, end, _ in both]

    def _windows_changed_in_source(self, unit: str) -> list[Interval]:
        """Return the same as whole windows, so that few stretches tell it."""
        stretches = self._changed_in_source(unit)
        return union(sorted([*stretches, *self._spans(self._touched(stretches))]))

    @property
    def has_grown_long(self) -> bool:
        """Return whether many commits lie behind the position of the state, and some windows are loaded."""
        source = self.upstream.source
        return source is not None and source.commits >= _MANY_COMMITS and bool(self.state.units)

    @property
    def reason(self) -> Reason:
        """Return why a window that has changed is read again."""
        return "changed" if self.upstream.source is not None else "upstream"

    @property
    def read(self) -> UpstreamRead:
        """Return what the first commit of the plan records of the upstream, except what has changed."""
        source = self.upstream.source
        return UpstreamRead(
            self.upstream.positions, read_at=None if source is None else source.position.to_plain()
        )

    def gaps(self, unit: str) -> list[Gap]:
        """Return the windows of a unit that do not count as covered, with the reasons, ascending.

        Windows of :meth:`outdated` are not among them: they are loaded.
        """
        loaded = self._loaded(unit)
        without = _common(self.incomplete(unit), loaded)
        waiting = _without(self.waiting(unit), loaded)
        return sorted([*self._lacks(unit, without, _LACKS), *self._lacks(unit, waiting, _WAITS)])

    def outdated(self, unit: str) -> list[Gap]:
        """Return the loaded windows of a unit to load again, with the reason, ascending."""
        if self.upstream.source is None:
            why = f"out of date since {self.upstream.names} changed"
            return [Gap(start, end, why) for start, end in self._spans(self.changed(unit))]
        windows = (self.windows[index] for range_ in self.changed(unit) for index in range(*range_))
        return join_gaps((start, end, self._why_outdated(unit, start, end)) for start, end in windows)

    def _why_outdated(self, unit: str, start: int, end: int) -> str:
        """Return why a window is out of date: the commit that changed it, or the one it was read at."""
        source = self.upstream.source
        assert source is not None
        noted = [part for part in self.state.changed.get(unit, ()) if part[0] < end and start < part[1]]
        if noted:
            read_at = noted[0][2] if len(noted[0]) > 2 else UNKNOWN
            return f"out of date: read at {read_at} of {source.table}, which has changed since"
        inside = (stretch for stretch in source.of(unit) if stretch.start < end and start < stretch.end)
        commit = next((stretch.commit for stretch in inside if stretch.commit), "")
        if commit:
            return f"out of date since {commit} of {source.table}"
        if self.state.position is None:
            return f"out of date: read at {UNKNOWN} of {source.table}"
        return f"out of date since {self.upstream.names} changed"

    def _lacks(self, unit: str, ranges: Iterable[IndexRange], verb: str) -> Iterator[Gap]:
        for start, end in (self.windows[index] for range_ in ranges for index in range(*range_)):
            yield Gap(start, end, f"{verb} {self._lack(unit, start, end, named=0)}")

    def with_names(self, unit: str, gap: Gap) -> Gap:
        """Return a gap of the ledger that also names the first missing windows of its whole stretch."""
        for verb in (_LACKS, _WAITS):
            if gap.why.startswith(f"{verb} "):
                return Gap(gap.start, gap.end, f"{verb} {self._lack(unit, gap.start, gap.end)}")
        return gap

    def _incomplete_or_waiting(self, unit: str) -> list[IndexRange]:
        """Return the windows of a unit that wait, and the loaded ones whose upstream lacks a part of them."""
        lacking = _common(self.incomplete(unit), self._loaded(unit))
        ranges = union(sorted([*self.waiting(unit), *lacking]))
        return ranges if self.requested is None else _common(ranges, self.requested)

    def count(self, units: Iterable[str]) -> int:
        """Return the number of work units that wait, or were loaded without a part of them."""
        return sum(after - first for unit in units for first, after in self._incomplete_or_waiting(unit))

    def in_words(self, units: Sequence[str]) -> str:
        """Return what the first work unit waits for, and how many more wait; "" if none does."""
        first = next(self._waits(units), None)
        if first is None:
            return ""
        index, unit, why = first
        start = window_in_words(self.definition, *self.windows[index], self.definition.zone)
        sentence, more = f"{start}{_of_unit(unit)} {why}", self.count(units) - 1
        also = f", and {pluralize(more, 'more work unit')} {'waits' if more == 1 else 'wait'}"
        return f"{sentence}{also if more else ''}"

    def skips(self, units: Sequence[str]) -> Iterator[Skip]:
        """Yield the work units that wait, by time, each with what it waits for."""
        for index, unit, why in self._waits(units):
            start, end = (as_datetime(at, self.definition.zone).isoformat() for at in self.windows[index])
            waits = any(first <= index < after for first, after in self.waiting(unit))
            yield Skip(f"[{start}, {end}){_of_unit(unit)}", why, waits_for_upstream=waits)

    def _waits(self, units: Sequence[str]) -> Iterator[tuple[int, str, str]]:
        """Yield index of the window, unit and reason of the work units that wait, by time."""
        indexes = [
            (index, unit)
            for unit in units
            for range_ in self._incomplete_or_waiting(unit)
            for index in range(*range_)
        ]
        for index, unit in sorted(indexes, key=lambda pair: pair[0]):
            start, end = self.windows[index]
            lack = self._lack(unit, start, end)
            if any(first <= index < after for first, after in self._loaded(unit)):
                yield index, unit, f"{_LACKS} {lack}; it is loaded again once they are there"
            else:
                yield index, unit, f"{_WAITS} {lack}{self._until(end)}"

    def _until(self, end: int) -> str:
        mode = self.definition.incomplete
        if not isinstance(mode, LoadAfter):
            return ""
        at = instant_in_words(end + mode.milliseconds, self.definition.zone)
        return f"; it is loaded without them from {at} on"

    def _lack(self, unit: str, start: int, end: int, **options: int) -> str:
        window, upstream = [(start, end, None)], self.upstream
        if not intersect(window, upstream.lacking(unit)) and upstream.expired_stretches(unit):
            return f"rows that the retention of {upstream.names} has deleted"
        return upstream.lack_in_words(unit, start, end, **options)

    def _noted(self, unit: str) -> list[Interval]:
        return [(part[0], part[1]) for part in self.state.changed.get(unit, ())]

    def _loaded(self, unit: str) -> list[IndexRange]:
        return self._once(
            "loaded",
            unit,
            lambda name: union(
                sorted(part[:2] for part in LoadedWindows(self.state, self.windows).of_unit(name))
            ),
        )

    def _touched(self, stretches: Iterable[Interval]) -> list[IndexRange]:
        ranges = (self.windows.touching(start, end) for start, end in stretches)
        return union(sorted((range_.start, range_.stop) for range_ in ranges if range_))

    def _spans(self, ranges: Iterable[IndexRange]) -> list[Interval]:
        return union((self.windows.starts[first], self.windows.ends[after - 1]) for first, after in ranges)

    def _once(self, name: str, unit: str, find: Callable[[str], list[IndexRange]]) -> list[IndexRange]:
        if (name, unit) not in self._cache:
            self._cache[name, unit] = find(unit)
        return self._cache[name, unit]


def _of_unit(unit: str) -> str:
    return "" if unit == NO_UNIT else f" of {describe_unit(unit)}"


def _common(ranges: Iterable[IndexRange], others: Sequence[IndexRange]) -> list[IndexRange]:
    return union((first, after) for first, after, _ in intersect(((*r, None) for r in ranges), others))


def _without(ranges: Iterable[IndexRange], others: Sequence[IndexRange]) -> list[IndexRange]:
    return subtract(ranges, others)
