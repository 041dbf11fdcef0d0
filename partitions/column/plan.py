"""Plan the rows that a run reads: above the stored values, up to bounds fixed before the read.

See docs/reference/columns.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, tzinfo
from decimal import Decimal
from typing import Any

from partitions.column.definition import ColumnWatermark
from partitions.column.predicates import ColumnRange, format_bound
from partitions.column.slices import ColumnSlice, cut_slice, limit_slices, mark_replacing
from partitions.column.source import SourceObservation
from partitions.column.state import ColumnState, ReadBound
from partitions.errors import PlanError
from partitions.local_time import repeated_time
from partitions.plan import Plan, Skip, format_duration, pluralize
from partitions.spelling import describe_missing
from partitions.unit_values import NUMBERS, TIMES, WORDS, ValueType
from partitions.watermark import compare_values

_FITS: Mapping[ValueType, Callable[[Any], bool]] = {
    "instant": lambda value: isinstance(value, datetime) and value.tzinfo is not None,
    "local": lambda value: isinstance(value, date) and getattr(value, "tzinfo", None) is None,
    "day": lambda value: isinstance(value, date) and getattr(value, "tzinfo", None) is None,
    "text": lambda value: isinstance(value, str),
    "whole": lambda value: isinstance(value, int | float | Decimal),
    "number": lambda value: isinstance(value, int | float | Decimal),
    "flag": lambda value: True,
}
"""Which stored values fit a column's type; a date counts as its midnight. Flags are refused elsewhere."""


def ranges_to_read(
    definition: ColumnWatermark,
    state: ColumnState,
    observed: SourceObservation,
    now: datetime,
    replace_until: ColumnState | None = None,
) -> tuple[ColumnRange, ...]:
    """Return the range that a run reads of each column.

    The lower bound is the stored value, moved down by the look-back. The upper bound is now minus
    ``settle`` by the source's clock, or the column's maximum if the source knows it and it is lower. A day
    is read when it is over, so its bound is exclusive.

    Args:
        definition: the user's definition.
        state: the state before the run.
        observed: the observation of the source.
        now: the run's clock, aware, for ``closing_day``.
        replace_until: the state before a rewind: a run reads at least up to it, so that rows deleted at
        the source are deleted from the table, too.

    Raises:
        PlanError: a column cannot have a watermark, or the look-back moves none of them.
        ConfigurationError: a stored value has no common order with the source's.
    """
    ranges = tuple(
        _range(definition, column, state.bounds.get(column), observed, now, _bound_of(replace_until, column))
        for column in definition.columns
    )
    _check_look_back(definition, observed)
    _check_settle(definition, observed)
    return ranges


def _check_settle(definition: ColumnWatermark, observed: SourceObservation) -> None:
    """Raise PlanError for a settle time if all columns are numbers.

    Numbers have no age, so rows that are committed late would be lost.
    """
    value_types = {observed.kinds[name] for name in definition.columns if name in observed.kinds}
    if definition.settle_time and value_types and value_types <= set(NUMBERS):
        raise PlanError(
            f"watermark.settle: expected no duration beside numbers in {', '.join(definition.columns)}, which have no age, found"
            f" {format_duration(definition.settle_time.total_seconds())}. For a table of PostgreSQL remove `settle`: its rows then wait for open transactions. For any"
            " other source look back by value: `backward: {by: 1000}` with merge_keys"
        )


def _check_look_back(definition: ColumnWatermark, observed: SourceObservation) -> None:
    """Raise PlanError if no unit of the look-back moves any column.

    The user would expect rows to be read again.
    """
    back = definition.backward
    if back is None or not back.reads_again:
        return
    value_types = {observed.kinds[name] for name in definition.columns if name in observed.kinds}
    names = ", ".join(definition.columns)
    if value_types <= set(NUMBERS) and not back.moves_numbers:
        expected, actual = "{by: 1000}, which looks back by value", f"numbers in {names}"
    elif value_types <= set(TIMES) and not back.moves_times:
        expected, actual = "days, hours, months, years or closing_day", f"times in {names}"
    else:
        return
    units = ", ".join(f"{unit}: {count}" for unit, count in back.units.items())
    raise PlanError(
        f"watermark.backward: expected {expected}, found {{{units}}} beside {actual}. Nothing would be read again. Correct it, or turn it off with"
        " `backward: {}`"
    )


def plan(
    definition: ColumnWatermark,
    state: ColumnState,
    ranges: Sequence[ColumnRange],
    observed: SourceObservation,
    now: datetime,
    *,
    dataflow: str,
    state_number: int,
    cuts: Sequence[Any] = (),
    parts: int = 1,
    replace_until: ColumnState | None = None,
) -> Plan[ColumnSlice]:
    """Plan the slices of a run.

    Args:
        definition: the user's definition.
        state: the state before the run.
        ranges: from :func:`ranges_to_read`.
        observed: the observation of the source.
        now: the clock, aware.
        dataflow: the dataflow's name.
        state_number: the number of the state's entry; 0 if there is none.
        cuts: ends of parts within the range of the only column: ascending, inclusive.
        parts: the most parts of a slice, each of which a connection of its own may read.
        replace_until: the state before a rewind, up to which the table's rows are replaced; None: there
        was no rewind.
    """
    first = not state.bounds
    reads_nulls = definition.nulls == "read" or (definition.nulls == "first" and first)
    new = [range_ for range_ in ranges if _holds_new_rows(range_, state.bounds.get(range_.column), observed)]
    again = definition.reads_again and not first
    nulls = definition.nulls == "read" and observed.nulls != 0
    empty_plan = Plan[ColumnSlice](dataflow, "column", state_number, now, "")
    if not (new or again or nulls or replace_until is not None):
        return plan_nothing(empty_plan, definition, state, observed)
    whole = ColumnSlice(
        state.watermark(),
        tuple(ranges),
        reads_nulls,
        replaces=replace_until is not None,
        version=observed.version,
        source=observed.source,
    )
    slices = cut_slice(whole, cuts, parts, inclusive=observed.highest_sendable is None)
    if replace_until is not None:
        slices = mark_replacing(slices, replace_until)
    slices, deferred = limit_slices(definition, slices)
    skips = _left_out(definition, state, observed) + deferred + _waiting(definition, observed)
    why = _why(definition, state, slices, bool(new))
    return replace(empty_plan, why=why, slices=slices, skips=skips, warnings=observed.warnings)


def check_types(state: ColumnState, observed: SourceObservation, dataflow: str) -> None:
    """Raise PlanError if a column's type no longer matches its stored value.

    Otherwise none of its rows would be above it, or all.
    """
    for column, bound in state.bounds.items():
        value_type = observed.kinds.get(column)
        if value_type is not None and not _FITS[value_type](bound.value):
            raise PlanError(
                f"dataflow {dataflow}: watermark.columns: expected values such as the stored one of {column}, {format_bound(bound.value)}, found a column with"
                f" {WORDS[value_type]}: its type has changed. Restore the type, or reload the table: strandline state reset {dataflow} --replace --reason TEXT"
            )


def plan_nothing(
    empty_plan: Plan[ColumnSlice],
    definition: ColumnWatermark,
    state: ColumnState,
    observed: SourceObservation,
) -> Plan[ColumnSlice]:
    """Return the plan without slices, with the reasons why there is no row to read."""
    skips = tuple(
        Skip(column, _why_not(definition, state.bounds.get(column)))
        for column in definition.columns
        if column not in observed.waits
    )
    skips += _left_out(definition, state, observed) + _waiting(definition, observed)
    waits = any(column in observed.waits for column in definition.columns)
    why = "rows above the watermark wait for open transactions" if waits else "no row is above the watermark"
    return replace(empty_plan, why=why, slices=(), skips=skips, warnings=observed.warnings)


def _waiting(definition: ColumnWatermark, observed: SourceObservation) -> tuple[Skip, ...]:
    """Return skips for rows that wait for open transactions."""
    return tuple(
        Skip(
            column,
            "new rows wait for an open transaction, which may still write rows below them: "
            f"{observed.waits[column]}",
        )
        for column in definition.columns
        if column in observed.waits
    )


def _left_out(
    definition: ColumnWatermark, state: ColumnState, observed: SourceObservation
) -> tuple[Skip, ...]:
    """Return a skip for rows without a value that ``nulls`` leaves out, if the source knows their number."""
    if not observed.nulls or definition.nulls == "read" or (definition.nulls == "first" and not state.bounds):
        return ()
    only = ": only the first run reads them" if definition.nulls == "first" else ""
    row_count = f"{pluralize(observed.nulls, 'row')} without a value"
    return (Skip(", ".join(definition.columns), f"{row_count} left out (nulls: {definition.nulls}{only})"),)


def _bound_of(state: ColumnState | None, column: str) -> ReadBound | None:
    return state.bounds.get(column) if state is not None else None


def _range(
    definition: ColumnWatermark,
    column: str,
    stored: ReadBound | None,
    observed: SourceObservation,
    now: datetime,
    until: ReadBound | None,
) -> ColumnRange:
    value_type = observed.kinds.get(column)
    if value_type is None and observed.columns and column not in observed.columns:
        raise PlanError(
            f"watermark.columns: expected columns of the source, found {describe_missing([column], observed.columns)}. Name existing columns,"
            " or restore the old names at the source"
        )
    if value_type in (None, "flag"):
        reason = WORDS[value_type] if value_type else observed.refused_columns.get(column)
        described = (
            f"{column}, which is {reason}" if reason else f"no column {column}. Name a column of the rows"
        )
        raise PlanError(
            f"watermark.columns: expected a column with times, dates, numbers or text, found {described}"
        )
    upper = upper_bound(definition, column, observed)
    if until is not None and (upper is None or not upper.covers(until)):
        upper = until  # the table's rows up to there are replaced; the next run reads the rows above
    is_known = upper is not None or column in observed.maxima
    if stored is not None and is_known and (upper is None or not upper.covers(stored)):
        upper = stored  # a look-back reads again up to the stored value
    if stored is None:
        return ColumnRange(
            column, None, upper.value if upper else None, upper_inclusive=upper.inclusive if upper else True
        )
    local = now.astimezone(definition.zone)
    lower = definition.backward.lower_bound(stored.value, local) if definition.backward else stored.value
    inclusive = not stored.inclusive or definition.boundary == "inclusive"
    return ColumnRange(
        column,
        lower,
        upper.value if upper else None,
        lower_inclusive=inclusive,
        upper_inclusive=upper.inclusive if upper else True,
    )


def upper_bound(definition: ColumnWatermark, column: str, observed: SourceObservation) -> ReadBound | None:
    """Return the upper bound; None if it is unknown before the read, or if the column has no value."""
    limit = time_limit(definition, column, observed)
    if limit is not None and observed.highest_sendable is not None:
        limit = ReadBound(observed.highest_sendable(limit.value), False)
    if column not in observed.maxima:
        return limit
    highest = observed.maxima[column]
    if highest is None:
        return None
    return limit if limit is not None and ReadBound(highest).covers(limit) else ReadBound(highest)


def time_limit(definition: ColumnWatermark, column: str, observed: SourceObservation) -> ReadBound | None:
    """Return the bound that time itself sets; None for columns without times."""
    settled = min(observed.now, observed.settled or observed.now) - definition.settle_time
    match observed.kinds.get(column):
        case "instant":
            return ReadBound(settled)
        case "local":
            return _local_limit(settled, definition.zone)
        case "day":
            # Today is not over: its rows are read tomorrow, unless each run reads the last day again.
            day = _local_limit(settled, definition.zone).value.date()
            return ReadBound(day, definition.boundary == "inclusive")
    return None


def _local_limit(settled: datetime, zone: tzinfo) -> ReadBound:
    """Return the local time up to which rows are read.

    In the first pass of a repeated hour this is before its start, since the second pass is still to come.
    """
    moment = settled.astimezone(zone)
    stretch = None if moment.fold else repeated_time(moment)
    wall = (stretch.start if stretch else moment).astimezone(zone)
    return ReadBound(wall.replace(tzinfo=None, fold=0), stretch is None)


def _holds_new_rows(range_: ColumnRange, stored: ReadBound | None, observed: SourceObservation) -> bool:
    """Return whether rows may lie above the stored value: yes, unless the bounds or the source deny it."""
    if observed.maxima.get(range_.column, range_) is None:
        return False
    if stored is None or range_.upper is None:
        return True
    return not stored.covers(ReadBound(range_.upper, range_.upper_inclusive))


def _why(definition: ColumnWatermark, state: ColumnState, slices: Sequence[ColumnSlice], new: bool) -> str:
    in_slices = f", in {len(slices)} slices" if len(slices) > 1 else ""
    if not state.bounds:
        return f"first run: all rows{in_slices}"
    if not new:
        reads = (
            f"the look-back again ({definition.backward.in_words})"
            if definition.backward is not None and definition.looks_back
            else "rows at the watermark again (boundary: inclusive)"
            if definition.reads_again
            else "rows without a value again (nulls: read)"
        )
        return f"nothing new; the next run reads {reads}"
    above = ", ".join(f"{name} {format_bound(bound.value)}" for name, bound in state.bounds.items())
    again = [
        f"{range_.column} {format_bound(range_.lower)}"
        for range_ in slices[0].ranges
        if (bound := state.bounds.get(range_.column)) is not None
        and range_.lower is not None
        and compare_values(range_.lower, bound.value) < 0
    ]
    looks_back = f"; the look-back reads again from {', '.join(again)} on" if again else ""
    return f"rows above {above}{looks_back}{in_slices}"


def _why_not(definition: ColumnWatermark, stored: ReadBound | None) -> str:
    why = "no row has a value" if stored is None else f"no row lies above {format_bound(stored.value)}"
    is_time = stored is None or isinstance(stored.value, date)
    settle = definition.settle_time
    settles = format_duration(settle.total_seconds()) if settle and is_time else ""
    return f"{why}; younger rows settle for {settles}" if settles else why
