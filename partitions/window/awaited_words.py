"""What windows wait for, and why others are out of date, in words (docs/how-to/chains.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from partitions.instants import as_datetime
from partitions.intervals import intersect, subtract, union
from partitions.plan import Skip, pluralize
from partitions.window.awaited_windows import AwaitedWindows, IndexRange, common
from partitions.window.incomplete import LoadAfter
from partitions.window.ledger import UNKNOWN, Gap, join_gaps
from partitions.window.units import NO_UNIT
from partitions.window.upstream import instant_in_words, window_in_words
from partitions.window.work_unit import describe_unit

_LACKS, _WAITS = "lacks", "waits for"
"""What the reason of a gap begins with: a loaded window without a part of it, and one that is not loaded."""


@dataclass(frozen=True)
class AwaitedWords:
    """Tells the windows that wait, and those to load again.

    Attributes:
        awaited: decides which these are.
    """

    awaited: AwaitedWindows

    def gaps(self, unit: str) -> list[Gap]:
        """Return the windows of a unit that do not count as covered, with the reasons, ascending.

        Windows of :meth:`outdated` are not among them: they are loaded.
        """
        loaded = self.awaited.loaded(unit)
        without = common(self.awaited.incomplete(unit), loaded)
        waiting = subtract(self.awaited.waiting(unit), loaded)
        return sorted([*self._lacks(unit, without, _LACKS), *self._lacks(unit, waiting, _WAITS)])

    def outdated(self, unit: str) -> list[Gap]:
        """Return the loaded windows of a unit to load again, with the reason, ascending."""
        if self.awaited.upstream.source is None:
            why = f"out of date since {self.awaited.upstream.names} changed"
            return [Gap(start, end, why) for start, end in self.awaited.spans(self.awaited.changed(unit))]
        windows = (
            self.awaited.windows[index] for range_ in self.awaited.changed(unit) for index in range(*range_)
        )
        return join_gaps((start, end, self._why_outdated(unit, start, end)) for start, end in windows)

    def _why_outdated(self, unit: str, start: int, end: int) -> str:
        """Return why a window is out of date: the commit that changed it, or the one it was read at."""
        source = self.awaited.upstream.source
        assert source is not None
        noted = [
            part for part in self.awaited.state.changed.get(unit, ()) if part[0] < end and start < part[1]
        ]
        if noted:
            read_at = noted[0][2] if len(noted[0]) > 2 else UNKNOWN
            return f"out of date: read at {read_at} of {source.table}, which has changed since"
        inside = (stretch for stretch in source.of(unit) if stretch.start < end and start < stretch.end)
        commit = next((stretch.commit for stretch in inside if stretch.commit), "")
        if commit:
            return f"out of date since {commit} of {source.table}"
        if self.awaited.state.position is None:
            return f"out of date: read at {UNKNOWN} of {source.table}"
        return f"out of date since {self.awaited.upstream.names} changed"

    def _lacks(self, unit: str, ranges: Iterable[IndexRange], verb: str) -> Iterator[Gap]:
        for start, end in (self.awaited.windows[index] for range_ in ranges for index in range(*range_)):
            yield Gap(start, end, f"{verb} {self._lack(unit, start, end, named=0)}")

    def with_names(self, unit: str, gap: Gap) -> Gap:
        """Return a gap of the ledger that also names the first missing windows of its whole stretch."""
        for verb in (_LACKS, _WAITS):
            if gap.why.startswith(f"{verb} "):
                return Gap(gap.start, gap.end, f"{verb} {self._lack(unit, gap.start, gap.end)}")
        return gap

    def _incomplete_or_waiting(self, unit: str) -> list[IndexRange]:
        """Return the windows of a unit that wait, and the loaded ones whose upstream lacks a part of them."""
        lacking = common(self.awaited.incomplete(unit), self.awaited.loaded(unit))
        ranges = union(sorted([*self.awaited.waiting(unit), *lacking]))
        return ranges if self.awaited.requested is None else common(ranges, self.awaited.requested)

    def count(self, units: Iterable[str]) -> int:
        """Return the number of work units that wait, or were loaded without a part of them."""
        return sum(after - first for unit in units for first, after in self._incomplete_or_waiting(unit))

    def in_words(self, units: Sequence[str]) -> str:
        """Return what the first work unit waits for, and how many more wait; "" if none does."""
        first = next(self._waits(units), None)
        if first is None:
            return ""
        index, unit, why = first
        start = window_in_words(
            self.awaited.definition, *self.awaited.windows[index], self.awaited.definition.zone
        )
        sentence, more = f"{start}{_of_unit(unit)} {why}", self.count(units) - 1
        also = f", and {pluralize(more, 'more work unit')} {'waits' if more == 1 else 'wait'}"
        return f"{sentence}{also if more else ''}"

    def skips(self, units: Sequence[str]) -> Iterator[Skip]:
        """Yield the work units that wait, by time, each with what it waits for."""
        for index, unit, why in self._waits(units):
            start, end = (
                as_datetime(at, self.awaited.definition.zone).isoformat()
                for at in self.awaited.windows[index]
            )
            waits = any(first <= index < after for first, after in self.awaited.waiting(unit))
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
            start, end = self.awaited.windows[index]
            lack = self._lack(unit, start, end)
            if any(first <= index < after for first, after in self.awaited.loaded(unit)):
                yield index, unit, f"{_LACKS} {lack}; it is loaded again once they are there"
            else:
                yield index, unit, f"{_WAITS} {lack}{self._until(end)}"

    def _until(self, end: int) -> str:
        mode = self.awaited.definition.incomplete
        if not isinstance(mode, LoadAfter):
            return ""
        at = instant_in_words(end + mode.milliseconds, self.awaited.definition.zone)
        return f"; it is loaded without them from {at} on"

    def _lack(self, unit: str, start: int, end: int, **options: int) -> str:
        window, upstream = [(start, end, None)], self.awaited.upstream
        if not intersect(window, upstream.lacking(unit)) and upstream.expired_stretches(unit):
            return f"rows that the retention of {upstream.names} has deleted"
        return upstream.lack_in_words(unit, start, end, **options)


def _of_unit(unit: str) -> str:
    return "" if unit == NO_UNIT else f" of {describe_unit(unit)}"
