"""What the table of other window dataflows holds, by the units of a dataflow that reads it.

A window of the reader is complete if each dataflow that makes the table has loaded all its windows there,
for all units that the reader's unit needs. See docs/how-to/chains.md, Wait for complete windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import Any, NamedTuple

from partitions.instants import DAY, as_datetime
from partitions.intervals import ALWAYS, Interval, intersect, subtract, union
from partitions.plan import pluralize
from partitions.sentinels import canonical
from partitions.window.definition import WindowWatermark
from partitions.window.expired import ExpiredRows, LoadedSpan
from partitions.window.ledger import Ledger, UnitLedger
from partitions.window.listed_units import loose_spelling
from partitions.window.source_changes import SourceChanges
from partitions.window.units import unit_of
from partitions.window.windows import Windows

Position = list[Any]
"""The number and the id of an entry; ``[0, ""]`` if there is no entry."""

_NOUNS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year"}
_WHOLE_DAYS = ("daily", "weekly", "monthly", "yearly")
"""Windows of whole days, although some of them are cut short, or have an hour less."""
_NAMED = 3
"""The most missing windows that a message names."""


class Lack(NamedTuple):
    """A window that a dataflow has not loaded, of one of its units, and the reason in its ledger."""

    unit: str
    start: int
    end: int
    why: str


@dataclass(frozen=True)
class Maker:
    """A window dataflow that makes the table: what it has loaded, as of one entry of its log.

    Attributes:
        name: the dataflow's name.
        table: the table's name in the lake.
        definition: its definition; where its own ``to`` follows a dataflow, up to there.
        ledger: its ledger.
        position: the entry that the ledger was made from.
        names: by the name of a unit's value of the reader, that of the same column in this dataflow.
        loaded_since: what it has loaded since the entry that the reader has seen; None: unknown, so it
        may be everything.
        expired: the rows that a retention has taken out of the table; None if there was never one.
        problem: why nothing is known of the table; None if it is the one that the log records.
        rows_at_start: whether the start of its window is all that rows tell of their time. A window that
        grows, or is loaded in part, then lacks rows at its start.
        has_fixed_end: whether it declares no later windows at any time; else their end moves with the clock.
    """

    name: str
    table: str
    definition: WindowWatermark
    ledger: Ledger
    position: Position
    names: Mapping[str, str] = field(default_factory=dict)
    loaded_since: Sequence[LoadedSpan] | None = ()
    expired: ExpiredRows | None = None
    problem: str | None = None
    rows_at_start: bool = False
    has_fixed_end: bool = False
    _lacking: dict[str, list[Interval]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def end(self) -> int:
        """Return the end of its last window, epoch milliseconds; it may lie in the future."""
        return self.definition.time_range.end(self.ledger.now)

    @cached_property
    def windows(self) -> Windows:
        """All its windows, also those that have not ended."""
        return Windows.of(self.definition.time_range.stretches(self.ledger.now))

    @cached_property
    def _expected(self) -> list[Interval]:
        """The stretches that its windows cover."""
        all_ = union((stretch.start, stretch.end) for stretch in self.windows.stretches)
        return subtract(all_, [self.windows[index] for index in self._undeclared])

    @cached_property
    def _undeclared(self) -> Sequence[int]:
        """The windows that it never loads: ``partial: false``, and the end of a sub-range cuts them short."""
        composite = not isinstance(self.definition.window, str) and not self.definition.partial
        return sorted(set(self.windows.cut) - self.windows.open) if composite else ()

    def lacking(self, unit: str) -> list[Interval]:
        """Return the stretches that it has not loaded, of any unit that a unit of the reader needs."""
        key = self._key(unit)
        if key not in self._lacking:  # units of the reader often need the same units
            lacks = [stretch for needed in self.needed(unit) for stretch in self._lacks_of(needed)]
            is_known = self.problem is None and self.needed(unit)
            self._lacking[key] = union(sorted(lacks)) if is_known else self._expected
        return self._lacking[key]

    def _lacks_of(self, unit: UnitLedger) -> list[Interval]:
        lacks = subtract(self._expected, unit.current)
        if not self.rows_at_start:
            return lacks
        touched = {index for start, end in lacks for index in self.windows.touching(start, end)}
        moves = self.definition.time_range.to_floor is not None
        whole = (self.windows[index] for index in sorted(touched | (self.windows.open if moves else set())))
        return union(sorted([*lacks, *whole]))

    def changed(self, unit: str) -> list[Interval]:
        """Return the stretches that it has loaded since the entry that the reader has seen."""
        if self.loaded_since is None:  # any row of the table, also of times that it no longer declares
            return [ALWAYS]
        return union(sorted(self._loaded_by_key.get(self._key(unit), ())))

    @cached_property
    def _loaded_by_key(self) -> dict[str, list[Interval]]:
        keys: dict[str, str] = {}
        loaded: dict[str, list[Interval]] = {}
        for unit, start, end in self.loaded_since or ():
            if unit not in keys:
                keys[unit] = self._own_key(unit)
            loaded.setdefault(keys[unit], []).append((start, end))
        return loaded

    def expired_stretches(self, unit: str) -> list[Interval]:
        """Return the stretches whose rows a retention has taken out, of any unit that is needed."""
        if self.expired is None:
            return []
        return self.expired.of(needed.unit for needed in self.needed(unit))

    def needed(self, unit: str) -> Sequence[UnitLedger]:
        """Return its units whose rows may belong to a unit of the reader; none if it lists no such unit."""
        of_key = self._units_by_key.get(self._key(unit), [])
        current = [of_unit for of_unit in of_key if not of_unit.is_removed]
        return current or (of_key if self.names else [])

    @cached_property
    def _units_by_key(self) -> dict[str, list[UnitLedger]]:
        units: dict[str, list[UnitLedger]] = {}
        for unit in self.ledger.units:
            units.setdefault(self._own_key(unit.unit), []).append(unit)
        return units

    def lists(self, unit: str) -> bool:
        """Return whether rows of a unit of the reader may come from it now."""
        return any(not needed.is_removed for needed in self.needed(unit))

    def _key(self, unit: str) -> str:
        """Return the values that both dataflows have, of a unit of the reader."""
        return self._loose({own: unit_of(unit).get(name) for name, own in self.names.items()})

    def _own_key(self, unit: str) -> str:
        """Return the values that both dataflows have, of a unit of this dataflow."""
        values = unit_of(unit)
        return self._loose({own: values.get(own) for own in self.names.values()})

    def _loose(self, values: Mapping[str, Any]) -> str:
        return loose_spelling(canonical(dict(values)), self.definition.zone) if values else ""

    def lacks(self, unit: str, start: int, end: int) -> Iterator[Lack]:
        """Yield the windows within ``[start, end)`` that it has not loaded, by time, then by unit."""
        of_unit = [(needed, self._lacks_of(needed)) for needed in self.needed(unit)]
        for index in self.windows.touching(start, end):
            lower, upper = self.windows[index]
            inside = [(max(lower, start), min(upper, end), None)]
            for needed, stretches in of_unit:
                if intersect(inside, stretches):
                    yield Lack(needed.unit, lower, upper, needed.why_lacking(lower, upper))

    def count(self, unit: str, start: int, end: int) -> int:
        """Return the number of its windows within ``[start, end)``, of all units that are needed."""
        touching = self.windows.touching(start, end)
        undeclared = sum(index in touching for index in self._undeclared)
        return (len(touching) - undeclared) * len(self.needed(unit))

    @property
    def noun(self) -> str:
        """Return the word for one of its windows."""
        window = self.definition.window
        return _NOUNS.get(window, "window") if isinstance(window, str) else "window"

    def named(self, lack: Lack, zone: tzinfo) -> str:
        """Return a window that it lacks for people, such as ``EWR 2026-01-03 05:00 (failed)``."""
        values = ", ".join(str(value) for value in unit_of(lack.unit).values())
        failed = " (failed)" if lack.why.startswith("failed") else ""
        start = window_in_words(self.definition, lack.start, lack.end, zone)
        return f"{f'{values} ' if values else ''}{start}{failed}"


@dataclass(frozen=True)
class UpstreamTables:
    """The tables of window dataflows, for a dataflow whose windows wait for them.

    Attributes:
        makers: the dataflows that load them.
        zone: the reader's zone, for texts.
        expired: the rows that retentions have taken out of tables that no window dataflow loads.
        source: what the commits of the table that is read have changed; None if they do not matter.
        is_awaited: whether windows wait for the tables; else a window that was never loaded is loaded as it is.
    """

    makers: tuple[Maker, ...]
    zone: tzinfo = UTC
    expired: tuple[ExpiredRows, ...] = ()
    source: SourceChanges | None = None
    is_awaited: bool = True

    @property
    def names(self) -> str:
        """Return the names of the tables, for people."""
        tables = [*(maker.table for maker in self.makers), *(rows.table for rows in self.expired)]
        tables += [self.source.table] if self.source else []
        return " or ".join(dict.fromkeys(tables))

    @property
    def reached(self) -> datetime:
        """Return the end of the makers' last windows, but not later than now: no window ends after it.

        A maker that ends for good, such as a load of old years, does not hold up others of its table.
        """
        tables: dict[str, list[Maker]] = {}
        for maker in self.makers:
            tables.setdefault(maker.table, []).append(maker)
        ends = [as_datetime(_end_of(makers)) for makers in tables.values()]
        return min([*ends, *(maker.ledger.now for maker in self.makers)])

    @property
    def has_fixed_end(self) -> bool:
        """Return whether no later windows are declared at any time."""
        return all(maker.has_fixed_end for maker in self.makers)

    @property
    def problem(self) -> str | None:
        """Return why nothing is known of a table; None if all are those that the logs record."""
        return next((f"{maker.table}: {maker.problem}" for maker in self.makers if maker.problem), None)

    @property
    def positions(self) -> dict[str, Position]:
        """Return the entry of each maker that this was made from."""
        return {maker.name: maker.position for maker in self.makers}

    def expired_stretches(self, unit: str) -> list[Interval]:
        """Return the stretches whose rows a retention has taken out, for a unit of the reader."""
        of_makers = [stretch for maker in self._makers_of(unit) for stretch in maker.expired_stretches(unit)]
        others = [stretch for expired in self.expired for stretch in expired.everything()]
        return union(sorted([*of_makers, *others]))

    def lacking(self, unit: str) -> list[Interval]:
        """Return the stretches that a table does not have, for a unit of the reader."""
        return union(sorted(stretch for maker in self._makers_of(unit) for stretch in maker.lacking(unit)))

    def _makers_of(self, unit: str) -> Sequence[Maker]:
        """Return the makers that a unit of the reader waits for: if some of a table list it, those alone."""
        awaited: list[Maker] = []
        for table in dict.fromkeys(maker.table for maker in self.makers):
            makers = [maker for maker in self.makers if maker.table == table]
            awaited += [maker for maker in makers if maker.lists(unit)] or makers
        return awaited

    def changed(self, unit: str) -> list[Interval]:
        """Return the stretches that were loaded since the entries that the reader has seen."""
        return union(sorted(stretch for maker in self.makers for stretch in maker.changed(unit)))

    def lack_in_words(self, unit: str, start: int, end: int, *, named: int = _NAMED) -> str:
        """Return what a window lacks, such as ``3 of 72 hours of bronze/flights: EWR 2026-01-03 05:00, …``.

        Args:
            unit: the reader's unit.
            start: the window's start, epoch milliseconds.
            end: its end.
            named: the most missing windows to name.
        """
        if self.problem:
            return self.problem
        makers = self._makers_of(unit)
        if unlisted := next((maker for maker in makers if not maker.needed(unit)), None):
            return f"{unlisted.table}: {unlisted.name} lists no such unit"
        tables = dict.fromkeys(maker.table for maker in makers)
        lacks = (
            self._lack_of([maker for maker in makers if maker.table == table], unit, start, end, named)
            for table in tables
        )
        return "; and for ".join(filter(None, lacks))

    def _lack_of(self, makers: Sequence[Maker], unit: str, start: int, end: int, named: int) -> str:
        """Return what a window lacks of the table that some dataflows load; "" if nothing."""
        lacks = [(maker, lack) for maker in makers for lack in maker.lacks(unit, start, end)]
        if not lacks:
            return ""
        total = sum(maker.count(unit, start, end) for maker in makers)
        nouns = {maker.noun for maker in makers}
        noun = nouns.pop() if len(nouns) == 1 else "window"
        words = f"{len(lacks):,} of {pluralize(total, noun)} of {makers[0].table}"
        if not named:
            return words
        more = ", …" if len(lacks) > named else ""
        return f"{words}: {', '.join(maker.named(lack, self.zone) for maker, lack in lacks[:named])}{more}"


def with_changes(tables: UpstreamTables | None, changes: UpstreamTables | None) -> UpstreamTables | None:
    """Return the tables that windows wait for, with what commits of the one that is read have changed.

    Args:
        tables: the tables that windows wait for; None if they wait for nothing.
        changes: the table that is read, with its changes and its retentions; None if they do not matter.
    """
    if tables is None or changes is None:
        return tables or changes
    return replace(tables, source=changes.source, expired=tables.expired or changes.expired)


def _end_of(makers: Sequence[Maker]) -> int:
    """Return the end of the windows of the dataflows that load a table, epoch milliseconds."""
    moving = [maker.end for maker in makers if not maker.has_fixed_end]
    return min(moving) if moving else max(maker.end for maker in makers)


def window_in_words(definition: WindowWatermark, start: int, end: int, zone: tzinfo) -> str:
    """Return the start of a window for people; at midnight the time is left out of whole days."""
    window = definition.window
    lasts_a_day = window in _WHOLE_DAYS or end - start >= DAY
    return instant_in_words(start, zone, with_time=not lasts_a_day)


def instant_in_words(instant: int, zone: tzinfo, *, with_time: bool = False) -> str:
    """Return an instant for people: its date, and its local time if it is not midnight, or asked for."""
    at = as_datetime(instant, zone)
    text = at.strftime("%Y-%m-%d %H:%M:%S" if at.second else "%Y-%m-%d %H:%M")
    return text if with_time else text.removesuffix(" 00:00")
