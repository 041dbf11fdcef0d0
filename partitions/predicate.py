"""Which rows a list of extents means: the one shape of a read, of a window's delete, and of their checks (spec 04, 05).

The shape is here, the words are a dialect's: ``(time in one of the ranges) AND (one of the units)``, joined by OR. A row with
NULL in a column that is compared is in no extent, but for a unit whose value is None, which means NULL.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from typing import Any, Protocol

from partitions.errors import ConfigurationError
from partitions.instants import as_datetime
from partitions.local_time import local, local_day
from partitions.sentinels import canonical
from partitions.unit_values import WORDS, Kind, fitted
from partitions.window.extent import Extent, Unit

Range = tuple[int | None, int | None]
"""Epoch milliseconds, half-open; None has no end on that side."""

_EVERYTHING: Range = (None, None)

NOTHING = "1 = 0"
"""The condition that no row meets."""


class Words(Protocol):
    """How a dialect of SQL says it."""

    def name(self, column: str) -> str:
        """A column's name, quoted."""
        ...

    def literal(self, value: Any) -> str:
        """A value that is not None: bool, int, float, Decimal, str, date, or datetime (aware: an instant)."""
        ...

    def among(self, column: str, values: Sequence[Any]) -> str:
        """That a column has one of these values, none of which is None."""
        ...


@dataclass(frozen=True)
class Columns:
    """Which columns tell a row's window and unit.

    Attributes:
        kinds: of all columns that can be compared.
        window: the column with the row's time; None where no column tells it.
        units: the names of a unit's values to the columns that hold them.
        zone: of local times and days.
        elsewhere: ``start``, ``end``, ``unit.NAME``: what the query itself takes care of.
    """

    kinds: Mapping[str, Kind]
    window: str | None
    units: Mapping[str, str]
    zone: tzinfo = UTC
    elsewhere: frozenset[str] = frozenset()

    def bound(self, ms: int) -> datetime | date:
        """An end of a window as a value of the window column."""
        kind = self.kinds[self.window or ""]
        if kind == "instant":
            return as_datetime(ms)
        return local(ms, self.zone) if kind == "local" else local_day(ms, self.zone)


@dataclass(frozen=True)
class Clause:
    """Units that are read over the same ranges, which neither touch nor overlap."""

    ranges: tuple[Range, ...]
    units: tuple[Unit, ...]


def clauses(extents: Iterable[Extent]) -> list[Clause]:
    """Extents without overlaps: for each unit the ranges are merged, and units with the same ranges are put together."""
    found: dict[str, tuple[Unit, list[Range]]] = {}
    for extent in extents:
        for unit in extent.units if not _is_empty(extent) else ():
            found.setdefault(canonical(dict(unit)), (unit, []))[1].append((extent.lower, extent.upper))
    alike: dict[tuple[Range, ...], list[Unit]] = {}
    for unit, ranges in found.values():
        alike.setdefault(_merged(ranges), []).append(unit)
    return [
        Clause(ranges, tuple(units))
        for ranges, units in sorted(alike.items(), key=lambda one: _order(one[0][0]))
    ]


def apart(extents: Iterable[Extent]) -> list[Extent]:
    """Extents of one unit each, in order of time, which share no instant of it and are not merged: each is asked for by itself."""
    reached: dict[str, int | None] = {}
    pieces: list[Extent] = []
    for extent in sorted(extents, key=lambda one: _order((one.lower, one.upper))):
        for unit in extent.units:
            identity = canonical(dict(unit))
            if identity in reached and reached[identity] is None:
                continue  # everything of this unit is there
            lowest = [ms for ms in (extent.lower, reached.get(identity)) if ms is not None]
            piece = Extent(max(lowest, default=None), extent.upper, (unit,))
            if not _is_empty(piece):
                pieces.append(piece)
                reached[identity] = piece.upper
    return pieces


def where(extents: Iterable[Extent], columns: Columns, words: Words) -> str:
    """The condition of exactly these rows; of no row where there are no extents.

    Raises:
        ConfigurationError: where a column that is asked for is not there or cannot be compared, where a value cannot be one of its
            column, where nothing tells a row's window or a unit's value.
    """
    return " OR ".join(f"({_clause(one, columns, words)})" for one in clauses(extents)) or NOTHING


def _clause(clause: Clause, columns: Columns, words: Words) -> str:
    parts = [
        _any([_range(one, columns, words) for one in clause.ranges]),
        _units(clause.units, columns, words),
    ]
    return " AND ".join(part for part in parts if part) or "1 = 1"


def _range(one: Range, columns: Columns, words: Words) -> str:
    if one == _EVERYTHING:
        return ""
    if columns.window is None:
        if columns.elsewhere >= {"start", "end"}:
            return ""
        raise ConfigurationError(
            "source: expected window_column, or a query with {start} and {end}, found neither: nothing tells a row's window"
        )
    column = words.name(columns.window)
    return " AND ".join(
        f"{column} {sign} {words.literal(columns.bound(ms))}"
        for sign, ms in zip((">=", "<"), one, strict=True)
        if ms is not None
    )


def _units(units: Sequence[Unit], columns: Columns, words: Words) -> str:
    """One list for the units of one column; each by itself where several columns make a unit."""
    wanted = [_wanted(unit, columns) for unit in units]
    if any(not each for each in wanted):
        return ""
    columns_of = {tuple(each) for each in wanted}
    if len(columns_of) == 1 and len(wanted[0]) == 1:
        ((column,),) = columns_of
        return _among(column, [each[column] for each in wanted], words)
    return _any(
        [" AND ".join(_among(column, [value], words) for column, value in each.items()) for each in wanted]
    )


def _wanted(unit: Unit, columns: Columns) -> dict[str, Any]:
    """Columns to values, as far as the query itself does not take care of them."""
    wanted: dict[str, Any] = {}
    for name, value in unit.items():
        column = columns.units.get(name)
        if column is not None:
            wanted[column] = _value(name, value, column, columns)
        elif f"unit.{name}" not in columns.elsewhere:
            raise ConfigurationError(
                f"source: expected a column for {name} in unit_columns, or {{unit.{name}}} in a query, found neither:"
                " nothing tells a row's unit"
            )
    return wanted


def _value(name: str, value: Any, column: str, columns: Columns) -> Any:
    kind = columns.kinds[column]
    try:
        return fitted(value, kind, columns.zone)
    except ValueError as error:
        raise ConfigurationError(
            f"unit {name}: expected {WORDS[kind]}, as the column {column} holds, {error}"
        ) from error


def _among(column: str, values: Sequence[Any], words: Words) -> str:
    given = list(dict.fromkeys(value for value in values if value is not None))
    parts = [words.among(column, given)] if given else []
    if len(given) < len(values) and None in values:
        parts.append(f"{words.name(column)} IS NULL")
    return _any(parts)


def _any(parts: Sequence[str]) -> str:
    """One of several conditions; a part without text is always met."""
    if not all(parts):
        return ""
    return parts[0] if len(parts) == 1 else f"({' OR '.join(f'({part})' for part in parts)})"


def _is_empty(extent: Extent) -> bool:
    return extent.lower is not None and extent.upper is not None and extent.lower >= extent.upper


def _order(one: Range) -> tuple[float, float]:
    return (-math.inf if one[0] is None else one[0], math.inf if one[1] is None else one[1])


def _merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for one in sorted(ranges, key=_order):
        both = (merged[-1][0], max(merged[-1], one, key=lambda each: _order(each)[1])[1]) if merged else one
        touch = merged and _order(one)[0] <= _order(merged[-1])[1]
        # All times are not all rows: a row without a time is in neither.
        if touch and (both != _EVERYTHING or _EVERYTHING in (merged[-1], one)):
            merged[-1] = both
        else:
            merged.append(one)
    return tuple(merged)
