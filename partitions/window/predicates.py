"""Windows and units as predicates, shared by reads, deletes and their checks.

``(time in one of the ranges) AND (one of the units)``, joined by OR. A row with NULL in a compared column
is in no extent; but a unit's value None matches NULL.

See docs/reference/windows.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from itertools import groupby
from typing import Any

from partitions.errors import ConfigurationError
from partitions.instants import as_datetime
from partitions.local_time import local, local_day
from partitions.predicate import EVERYTHING, AllOf, Among, AnyOf, Between, Predicate, all_of, any_of
from partitions.sentinels import canonical
from partitions.unit_values import WORDS, ValueType, fit_value
from partitions.window.extent import Extent, Unit

Range = tuple[int | None, int | None]
"""Epoch milliseconds, half-open; None: no bound on that side."""

_ALL_TIMES: Range = (None, None)


@dataclass(frozen=True)
class ExtentColumns:
    """The columns that tell a row's window and unit.

    Attributes:
        kinds: the types of all columns that can be compared.
        window: the column with the row's time; None if there is none.
        units: the names of a unit's values, with the columns that hold them.
        zone: the zone of local times and days.
        elsewhere: the bounds that the query itself applies: ``start``, ``end``, ``unit.NAME``.
    """

    kinds: Mapping[str, ValueType]
    window: str | None
    units: Mapping[str, str]
    zone: tzinfo = UTC
    elsewhere: frozenset[str] = frozenset()

    @classmethod
    def checked(
        cls,
        kinds: Mapping[str, ValueType],
        window: str | None,
        units: Mapping[str, str],
        zone: tzinfo,
    ) -> ExtentColumns:
        """Return the columns after checking that they can be compared.

        Raises:
            ConfigurationError: a column is missing or cannot be compared.
        """
        for column in [*units.values(), *([window] if window else [])]:
            if column not in kinds:
                raise ConfigurationError(
                    f"column {column}: expected a column with single values, such as {', '.join(kinds)}, "
                    "found no column of that name"
                )
        return cls(kinds, window, units, zone)

    def bound(self, ms: int) -> datetime | date:
        """Return a window's bound (epoch milliseconds) as a value of the window column."""
        kind = self.kinds[self.window or ""]
        if kind == "instant":
            return as_datetime(ms)
        return local(ms, self.zone) if kind == "local" else local_day(ms, self.zone)


@dataclass(frozen=True)
class Clause:
    """Units that are read over the same ranges; the ranges neither touch nor overlap."""

    ranges: tuple[Range, ...]
    units: tuple[Unit, ...]


def merge_extents(extents: Iterable[Extent]) -> list[Clause]:
    """Merge extents into clauses: join the ranges of each unit, then group units with equal ranges."""
    ranges_of: dict[str, tuple[Unit, list[Range]]] = {}
    for extent in extents:
        for unit in extent.units if not _is_empty(extent) else ():
            ranges_of.setdefault(canonical(dict(unit)), (unit, []))[1].append((extent.lower, extent.upper))
    alike: dict[tuple[Range, ...], list[Unit]] = {}
    for unit, ranges in ranges_of.values():
        alike.setdefault(_merge_ranges(ranges), []).append(unit)
    return [
        Clause(ranges, tuple(units))
        for ranges, units in sorted(alike.items(), key=lambda item: _sort_key(item[0][0]))
    ]


def split_disjoint(extents: Iterable[Extent]) -> list[Extent]:
    """Return extents of one unit each, in order of time, without overlaps.

    They are not merged: the source is asked for each one separately.
    """
    reached: dict[str, int | None] = {}
    single: list[Extent] = []
    for extent in sorted(extents, key=lambda extent: _sort_key((extent.lower, extent.upper))):
        for unit in extent.units:
            identity = canonical(dict(unit))
            if identity in reached and reached[identity] is None:
                continue  # the rest of this unit's time is covered
            lowest = [ms for ms in (extent.lower, reached.get(identity)) if ms is not None]
            rest = Extent(max(lowest, default=None), extent.upper, (unit,))
            if not _is_empty(rest):
                single.append(rest)
                reached[identity] = rest.upper
    return single


def extents_predicate(extents: Iterable[Extent], columns: ExtentColumns) -> Predicate:
    """Return the predicate of exactly the rows in these extents; ``NOTHING`` if there are none.

    Raises:
        ConfigurationError: if a column is missing or cannot be compared, if a value does not fit its
        column, or if nothing tells a row's window or a unit's value.
    """
    return AnyOf(tuple(_clause_predicate(clause, columns) for clause in merge_extents(extents)))


def tagged_rows_predicate(
    keys: Iterable[tuple[str, int | None]], *, start_column: str, unit_column: str
) -> Predicate:
    """Return the predicate of rows that are tagged with these windows and units.

    Units with the same windows share a clause.

    Args:
        keys: the unit and start of each window, epoch milliseconds; a start of None means all rows of the
        unit.
        start_column: the column with the start of a row's window, an instant.
        unit_column: the column with the identity of a row's unit.
    """
    starts_of: dict[str, list[int]] = {}
    timeless = set()
    for unit, start in keys:
        if start is None:
            timeless.add(unit)
        else:
            starts_of.setdefault(unit, []).append(start)
    timed = sorted((starts, unit) for unit, starts in starts_of.items() if unit not in timeless)
    parts: list[Predicate] = [Among(unit_column, tuple(sorted(timeless)))] if timeless else []
    for starts, alike in groupby(timed, lambda entry: entry[0]):
        time = Among(start_column, tuple(map(as_datetime, starts)))
        parts.append(AllOf((time, Among(unit_column, tuple(unit for _, unit in alike)))))
    return AnyOf(tuple(parts))


def _clause_predicate(clause: Clause, columns: ExtentColumns) -> Predicate:
    time = any_of(_range_predicate(range_, columns) for range_ in clause.ranges)
    return all_of([time, _units_predicate(clause.units, columns)])


def _range_predicate(range_: Range, columns: ExtentColumns) -> Predicate:
    if range_ == _ALL_TIMES:
        return EVERYTHING
    if columns.window is None:
        if columns.elsewhere >= {"start", "end"}:
            return EVERYTHING
        raise ConfigurationError(
            "source: expected window_column, or a query with {start} and {end}, found neither, so "
            "nothing tells which window a row belongs to"
        )
    lower, upper = (None if ms is None else columns.bound(ms) for ms in range_)
    return Between(columns.window, lower, upper)


def _units_predicate(units: Sequence[Unit], columns: ExtentColumns) -> Predicate:
    """Return the predicate of units: one list if they share a single column, else one comparison per unit."""
    values_of_units = [_column_values(unit, columns) for unit in units]
    if any(not values for values in values_of_units):
        return EVERYTHING
    columns_of = {tuple(values) for values in values_of_units}
    if len(columns_of) == 1 and len(values_of_units[0]) == 1:
        ((column,),) = columns_of
        return Among(column, tuple(dict.fromkeys(values[column] for values in values_of_units)))
    return any_of(
        all_of(Among(column, (value,)) for column, value in values.items()) for values in values_of_units
    )


def _column_values(unit: Unit, columns: ExtentColumns) -> dict[str, Any]:
    """Return columns and values of a unit, except the values that the query itself filters."""
    column_values: dict[str, Any] = {}
    for name, value in unit.items():
        column = columns.units.get(name)
        if column is not None:
            column_values[column] = _value(name, value, column, columns)
        elif f"unit.{name}" not in columns.elsewhere:
            raise ConfigurationError(
                f"source: expected a column for {name} in unit_columns, or {{unit.{name}}} in a query, found neither,"
                " so nothing tells which unit a row belongs to"
            )
    return column_values


def _value(name: str, value: Any, column: str, columns: ExtentColumns) -> Any:
    kind = columns.kinds[column]
    try:
        return fit_value(value, kind, columns.zone)
    except ValueError as error:
        raise ConfigurationError(
            f"unit {name}: expected {WORDS[kind]}, as the column {column} holds, {error}"
        ) from error


def _is_empty(extent: Extent) -> bool:
    return extent.lower is not None and extent.upper is not None and extent.lower >= extent.upper


def _sort_key(range_: Range) -> tuple[float, float]:
    lower, upper = range_
    return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def _merge_ranges(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for range_ in sorted(ranges, key=_sort_key):
        both = (
            (merged[-1][0], max(merged[-1], range_, key=lambda range_: _sort_key(range_)[1])[1])
            if merged
            else range_
        )
        touch = merged and _sort_key(range_)[0] <= _sort_key(merged[-1])[1]
        # Joined ranges must not become "all times": that would include rows without a time.
        if touch and (both != _ALL_TIMES or _ALL_TIMES in (merged[-1], range_)):
            merged[-1] = both
        else:
            merged.append(range_)
    return tuple(merged)
