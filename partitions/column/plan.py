"""Which rows a run reads: above the stored values, up to bounds that are fixed before the read (docs/reference/columns.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, tzinfo
from decimal import Decimal
from typing import Any

from partitions.column.definition import ColumnWatermark
from partitions.column.predicates import Range, shown
from partitions.column.slices import ColumnSlice, cut_at, replacing_below, slices_of_run
from partitions.column.source import Observed
from partitions.column.state import ColumnState, Mark
from partitions.errors import PlanError
from partitions.local_time import repeated
from partitions.plan import Plan, Skip, counted, lasting
from partitions.spelling import beside_known
from partitions.unit_values import NUMBERS, TIMES, WORDS, Kind
from partitions.watermark import compare_values

_FITS: Mapping[Kind, Callable[[Any], bool]] = {
    "instant": lambda value: isinstance(value, datetime) and value.tzinfo is not None,
    "local": lambda value: isinstance(value, date) and getattr(value, "tzinfo", None) is None,
    "day": lambda value: isinstance(value, date) and getattr(value, "tzinfo", None) is None,
    "text": lambda value: isinstance(value, str),
    "whole": lambda value: isinstance(value, int | float | Decimal),
    "number": lambda value: isinstance(value, int | float | Decimal),
    "flag": lambda value: True,
}
"""Which stored values a column can be compared with; a date counts as its midnight. Flags are refused for what they are."""


def bounds(
    definition: ColumnWatermark,
    state: ColumnState,
    observed: Observed,
    now: datetime,
    replace_until: ColumnState | None = None,
) -> tuple[Range, ...]:
    """Return what a run reads of each column.

    The lower bound is the stored value, moved down by the look-back. The upper bound is now minus ``settle`` by the source's clock, and
    the column's maximum if the source knows it; whichever is lower. A day is read when it is over, so its bound is exclusive.

    Args:
        definition: what the user declared.
        state: what is read so far.
        observed: of the source.
        now: the run's clock, aware, for ``closing_day``.
        replace_until: the state up to which rows of the table make room, after a rewind: a run reads at least so far, for rows that are
            gone at the source.

    Raises:
        PlanError: a column cannot have a watermark, or the look-back moves none of them.
        ConfigurationError: a stored value has no common order with the source's.
    """
    ranges = tuple(
        _range(definition, column, state.marks.get(column), observed, now, _mark(replace_until, column))
        for column in definition.columns
    )
    _check_look_back(definition, observed)
    _check_settle(definition, observed)
    return ranges


def _check_settle(definition: ColumnWatermark, observed: Observed) -> None:
    """Raise PlanError for a time to settle beside numbers alone: they have no age, and rows that are committed late would be lost."""
    held = {observed.kinds[name] for name in definition.columns if name in observed.kinds}
    if definition.settle_time and held and held <= set(NUMBERS):
        raise PlanError(
            f"watermark.settle: expected no duration beside numbers in {', '.join(definition.columns)}, which have no age, found"
            f" {lasting(definition.settle_time.total_seconds())}. Of a table of PostgreSQL leave `settle` out: rows wait for open transactions then. Of any"
            " other source look back by value: `backward: {by: 1000}` with merge_keys"
        )


def _check_look_back(definition: ColumnWatermark, observed: Observed) -> None:
    """Raise PlanError if no unit of the look-back moves any of the columns: the user would believe that rows are read again."""
    back = definition.backward
    if back is None or not back.reads_again:
        return
    held = {observed.kinds[name] for name in definition.columns if name in observed.kinds}
    names = ", ".join(definition.columns)
    if held <= set(NUMBERS) and not back.moves_numbers:
        expected, found = "{by: 1000}, which looks back by value", f"numbers in {names}"
    elif held <= set(TIMES) and not back.moves_times:
        expected, found = "days, hours, months, years or closing_day", f"times in {names}"
    else:
        return
    units = ", ".join(f"{unit}: {count}" for unit, count in back.given.items())
    raise PlanError(
        f"watermark.backward: expected {expected}, found {{{units}}} beside {found}. Nothing would be read again. Correct it, or turn it off with"
        " `backward: {}`"
    )


def plan(
    definition: ColumnWatermark,
    state: ColumnState,
    ranges: Sequence[Range],
    observed: Observed,
    now: datetime,
    *,
    dataflow: str,
    number: int,
    cuts: Sequence[Any] = (),
    parts: int = 1,
    replace_until: ColumnState | None = None,
) -> Plan[ColumnSlice]:
    """Plan the slices of a run.

    Args:
        definition: what the user declared.
        state: what is read so far.
        ranges: from :func:`bounds`.
        observed: of the source.
        now: the clock, aware.
        dataflow: its name.
        number: of the entry that the state is of; 0 without one.
        cuts: where parts end within the range of the only column: ascending, each inclusive.
        parts: of a slice, each of which may be read by a connection of its own.
        replace_until: the state up to which rows of the table make room, after a rewind; None: no rewind is under way.
    """
    first = not state.marks
    reads_nulls = definition.nulls == "read" or (definition.nulls == "first" and first)
    new = [range_ for range_ in ranges if _holds_new_rows(range_, state.marks.get(range_.column), observed)]
    again = definition.reads_again and not first
    nulls = definition.nulls == "read" and observed.nulls != 0
    made = Plan[ColumnSlice](dataflow, "column", number, now, "")
    if not (new or again or nulls or replace_until is not None):
        return nothing_new(made, definition, state, observed)
    whole = ColumnSlice(
        state.watermark(),
        tuple(ranges),
        reads_nulls,
        replaces=replace_until is not None,
        version=observed.version,
        source=observed.source,
    )
    slices = cut_at(whole, cuts, parts, inclusive=observed.sent is None)
    if replace_until is not None:
        slices = replacing_below(slices, replace_until)
    slices, deferred = slices_of_run(definition, slices)
    skips = _left_out(definition, state, observed) + deferred + _waiting(definition, observed)
    why = _why(definition, state, slices, bool(new))
    return replace(made, why=why, slices=slices, skips=skips, warnings=observed.warnings)


def check_types(state: ColumnState, observed: Observed, dataflow: str) -> None:
    """Raise PlanError if a column of the source holds something else than its stored value: none of its rows would be above it, or all."""
    for column, mark in state.marks.items():
        kind = observed.kinds.get(column)
        if kind is not None and not _FITS[kind](mark.value):
            raise PlanError(
                f"dataflow {dataflow}: watermark.columns: expected values such as the stored one of {column}, {shown(mark.value)}, found a column with"
                f" {WORDS[kind]}: its type has changed. Put the type back, or load the table again: strandline state reset {dataflow} --replace --reason TEXT"
            )


def nothing_new(
    made: Plan[ColumnSlice],
    definition: ColumnWatermark,
    state: ColumnState,
    observed: Observed,
) -> Plan[ColumnSlice]:
    """Return the plan without slices, for no row is to be read."""
    skips = tuple(
        Skip(column, _why_not(definition, state.marks.get(column)))
        for column in definition.columns
        if column not in observed.waits
    )
    skips += _left_out(definition, state, observed) + _waiting(definition, observed)
    waits = any(column in observed.waits for column in definition.columns)
    why = (
        "what is above the watermark waits for open transactions"
        if waits
        else "nothing is above the watermark"
    )
    return replace(made, why=why, slices=(), skips=skips, warnings=observed.warnings)


def _waiting(definition: ColumnWatermark, observed: Observed) -> tuple[Skip, ...]:
    """The rows that wait for open transactions."""
    return tuple(
        Skip(
            column,
            f"new rows wait for an open transaction, which may still write below them: {observed.waits[column]}",
        )
        for column in definition.columns
        if column in observed.waits
    )


def _left_out(definition: ColumnWatermark, state: ColumnState, observed: Observed) -> tuple[Skip, ...]:
    """The rows without a value that the policy leaves out, if the source knows how many there are."""
    if not observed.nulls or definition.nulls == "read" or (definition.nulls == "first" and not state.marks):
        return ()
    only = ": the first run alone reads them" if definition.nulls == "first" else ""
    found = f"{counted(observed.nulls, 'row')} without a value"
    return (Skip(", ".join(definition.columns), f"{found} left out (nulls: {definition.nulls}{only})"),)


def _mark(state: ColumnState | None, column: str) -> Mark | None:
    return state.marks.get(column) if state is not None else None


def _range(
    definition: ColumnWatermark,
    column: str,
    stored: Mark | None,
    observed: Observed,
    now: datetime,
    until: Mark | None,
) -> Range:
    kind = observed.kinds.get(column)
    if kind is None and observed.columns and column not in observed.columns:
        raise PlanError(
            f"watermark.columns: expected columns of the source, found {beside_known([column], observed.columns)}. Name those that are there,"
            " or put the old names back at the source"
        )
    if kind in (None, "flag"):
        found = observed.refused.get(column, "no column of that name" if kind is None else WORDS[kind])
        raise PlanError(
            f"watermark.columns: expected a column with times, dates, numbers or text, found {column}, which is {found}"
        )
    upper = upper_bound(definition, column, observed)
    if until is not None and (upper is None or not upper.covers(until)):
        upper = until  # rows up to there are in the table, and make room; what lies above is the next run's
    is_known = upper is not None or column in observed.maxima
    if stored is not None and is_known and (upper is None or not upper.covers(stored)):
        upper = stored  # what a look-back reads again, it reads up to there
    if stored is None:
        return Range(
            column, None, upper.value if upper else None, upper_inclusive=upper.inclusive if upper else True
        )
    local = now.astimezone(definition.zone)
    lower = definition.backward.lower(stored.value, local) if definition.backward else stored.value
    inclusive = not stored.inclusive or definition.boundary == "inclusive"
    return Range(
        column,
        lower,
        upper.value if upper else None,
        lower_inclusive=inclusive,
        upper_inclusive=upper.inclusive if upper else True,
    )


def upper_bound(definition: ColumnWatermark, column: str, observed: Observed) -> Mark | None:
    """Return the bound above, as far as it is known before the read; None: it is not known, or the column has no value."""
    limit = time_limit(definition, column, observed)
    if limit is not None and observed.sent is not None:
        limit = Mark(observed.sent(limit.value), False)
    if column not in observed.maxima:
        return limit
    highest = observed.maxima[column]
    if highest is None:
        return None
    return limit if limit is not None and Mark(highest).covers(limit) else Mark(highest)


def time_limit(definition: ColumnWatermark, column: str, observed: Observed) -> Mark | None:
    """Return where time itself ends what is read; None for columns that hold no time."""
    settled = min(observed.now, observed.settled or observed.now) - definition.settle_time
    match observed.kinds.get(column):
        case "instant":
            return Mark(settled)
        case "local":
            return _local_limit(settled, definition.zone)
        case "day":
            # Today is not over: its rows are read tomorrow, unless each run reads the last day again.
            day = _local_limit(settled, definition.zone).value.date()
            return Mark(day, definition.boundary == "inclusive")
    return None


def _local_limit(settled: datetime, zone: tzinfo) -> Mark:
    """The local time up to which rows are read: in the first pass of a repeated hour below its start, since the second pass is still to come."""
    moment = settled.astimezone(zone)
    stretch = None if moment.fold else repeated(moment)
    wall = (stretch.start if stretch else moment).astimezone(zone)
    return Mark(wall.replace(tzinfo=None, fold=0), stretch is None)


def _holds_new_rows(range_: Range, stored: Mark | None, observed: Observed) -> bool:
    """Whether rows may lie above the stored value: they do unless the bounds or the source say otherwise."""
    if observed.maxima.get(range_.column, range_) is None:
        return False
    if stored is None or range_.upper is None:
        return True
    return not stored.covers(Mark(range_.upper, range_.upper_inclusive))


def _why(definition: ColumnWatermark, state: ColumnState, slices: Sequence[ColumnSlice], new: bool) -> str:
    in_slices = f", in {len(slices)} slices" if len(slices) > 1 else ""
    if not state.marks:
        return f"first run: all rows{in_slices}"
    if not new:
        because = (
            "look-back"
            if definition.looks_back
            else "boundary: inclusive"
            if definition.reads_again
            else "nulls: read"
        )
        return f"{because}: rows that are not above the watermark are read again"
    above = ", ".join(f"{name} {shown(mark.value)}" for name, mark in state.marks.items())
    again = [
        f"{range_.column} {shown(range_.lower)}"
        for range_ in slices[0].ranges
        if (mark := state.marks.get(range_.column)) is not None
        and range_.lower is not None
        and compare_values(range_.lower, mark.value) < 0
    ]
    looks_back = f"; the look-back reads again from {', '.join(again)} on" if again else ""
    return f"rows above {above}{looks_back}{in_slices}"


def _why_not(definition: ColumnWatermark, stored: Mark | None) -> str:
    why = "no row has a value" if stored is None else f"no row lies above {shown(stored.value)}"
    is_time = stored is None or isinstance(stored.value, date)
    settle = definition.settle_time
    settles = lasting(settle.total_seconds()) if settle and is_time else ""
    return f"{why}; younger rows settle for {settles}" if settles else why
