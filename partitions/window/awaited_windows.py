"""The windows of a dataflow that wait for its upstream, and those to load again since it has changed.

Windows are ranges of indexes here; :mod:`partitions.window.awaited_words` tells them to people. See docs/how-to/chains.md, Wait for complete windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from partitions.instants import milliseconds
from partitions.intervals import Interval, consecutive, intersect, subtract, union
from partitions.window.definition import WindowWatermark
from partitions.window.incomplete import loads_incomplete
from partitions.window.loaded_windows import LoadedWindows
from partitions.window.reasons import Reason
from partitions.window.state import WindowState
from partitions.window.upstream import UpstreamTables
from partitions.window.windows import Windows
from partitions.window.work_outcomes import UpstreamRead

IndexRange = tuple[int, int]
"""Windows ``[first, after)``."""

_MANY_COMMITS = 50
"""From this number of commits on a run records that it has read them, though no window is due."""


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
        expired = subtract(self.upstream.expired_stretches(unit), self.spans(self.loaded(unit)))
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
        return common(self._touched(self.upstream.expired_stretches(unit)), self.loaded(unit))

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
        changed = common(self._touched(stretches), self.loaded(unit))
        return subtract(subtract(changed, self.expired(unit)), self.incomplete(unit))

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
        return union(sorted([*stretches, *self.spans(self._touched(stretches))]))

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

    def _noted(self, unit: str) -> list[Interval]:
        return [(part[0], part[1]) for part in self.state.changed.get(unit, ())]

    def loaded(self, unit: str) -> list[IndexRange]:
        """Return the loaded windows of a unit."""
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

    def spans(self, ranges: Iterable[IndexRange]) -> list[Interval]:
        """Return windows as stretches of time, epoch milliseconds, half-open."""
        return union((self.windows.starts[first], self.windows.ends[after - 1]) for first, after in ranges)

    def _once(self, name: str, unit: str, find: Callable[[str], list[IndexRange]]) -> list[IndexRange]:
        if (name, unit) not in self._cache:
            self._cache[name, unit] = find(unit)
        return self._cache[name, unit]


def common(ranges: Iterable[IndexRange], others: Sequence[IndexRange]) -> list[IndexRange]:
    """Return the windows that both have, both ascending and disjoint."""
    return union((first, after) for first, after, _ in intersect(((*r, None) for r in ranges), others))
