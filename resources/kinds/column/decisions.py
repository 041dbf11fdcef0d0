"""The rules of column watermarks for decisions (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from typing_extensions import override

from partitions.column.predicates import ColumnRange
from partitions.column.slices import ColumnSlice
from partitions.column.state import EXCLUSIVE, ColumnState, ReadBound
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark
from partitions.predicate import EVERYTHING, Among, Between
from partitions.sentinels import Watermark, deserialise, serialise
from partitions.unit_values import TIMES, fit_value, value_type_of
from partitions.watermark import compare_values
from resources.kinds.contract.decisions import LoadedBefore, StateRules
from resources.kinds.contract.lost_rows import LostRows, lost_in_all
from resources.kinds.state_of_entry import state_of
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry


class ColumnRules(StateRules):
    """The rules of one dataflow."""

    def __init__(self, dataflow: Dataflow, table: Table, history: Callable[[], Iterable[Entry]]) -> None:
        """Bind to a dataflow, its table, and all remaining entries of its log."""
        self._dataflow, self._table, self._history = dataflow, table, history
        self._columns = dataflow.column.columns

    def parse_watermark(self, text: str) -> str:
        """Parse the watermark's columns, each with a value."""
        try:
            values = self._with_times(deserialise(text))
            state = ColumnState.of(values)
        except (CorruptWatermark, ValueError) as error:
            raise ConfigurationError(f"{self._expected(text)} ({error})") from error
        unknown = [name for name in values if name not in (*self._columns, EXCLUSIVE)]
        if unknown or not state.bounds or not self._fits(state):
            raise ConfigurationError(self._expected(text))
        return serialise(state.watermark())

    def _with_times(self, values: Watermark) -> Watermark:
        """Convert texts to times or days where the stored value is one, in the watermark's zone.

        Raises:
            ValueError: a text is no time.
        """
        stored = self._stored()
        return {
            name: fit_value(value, value_type, self._dataflow.zone)
            if isinstance(value, str) and (value_type := value_type_of(stored.get(name))) in TIMES
            else value
            for name, value in values.items()
        }

    def _fits(self, state: ColumnState) -> bool:
        """Return whether each value can be compared with the stored one."""
        stored = self._stored()
        try:
            for name, mark in state.bounds.items():
                if name in stored:
                    compare_values(mark.value, stored[name])
        except ConfigurationError:
            return False
        return True

    def _stored(self) -> Mapping[str, Any]:
        """Return the newest entry's values."""
        newest = next(iter(self._history()), None)
        marks = state_of(ColumnState, self._dataflow, newest).bounds
        return {name: mark.value for name, mark in marks.items()}

    def _expected(self, text: str) -> str:
        stored = self._stored()
        form = ", ".join(
            f'"{name}": "2026-04-03T09:15:00+00:00"'
            if isinstance(stored.get(name), date)
            else f'"{name}": value'
            for name in self._columns
        )
        times = (
            ""
            if any(isinstance(value, date) for value in stored.values())
            else ', with a time as {"__datetime__": "2026-04-03T09:15:00+00:00"} or {"__date__": "2026-04-03"}'
        )
        return f"dataflow {self._dataflow.name}: expected a watermark such as {{{form}}}{times}, found {text[:200]}"

    @override
    def migrate_watermark(self, text: str, now: datetime, last: Entry | None) -> str:
        """Return the whole watermark: a value still means the same rows."""
        return text

    def watermark_from_rows(self) -> str | None:
        """Return the highest value of each column in the table."""
        state = ColumnState(self._highest())
        return serialise(state.watermark()) if state.bounds else None

    def watermark_from_bounds(self, text: str) -> str | None:
        """Return the highest times of the rows where a clock may have bounded the read.

        Rows may still arrive below such a bound, so it never becomes the watermark. A column without a
        value in the table has none afterwards. A bound that is itself the watermark stays.
        """
        dataflow, bounds = self._dataflow, ColumnState.of(deserialise(text))
        times = [name for name, mark in bounds.bounds.items() if isinstance(mark.value, date)]
        if not times or dataflow.source.incremental_support.saves_bound or dataflow.has_step:
            return text
        if not set(times) <= set(self._table.contents.columns()):
            return None
        highest = {name: self._highest_below(name, bounds.bounds[name]) for name in times}
        reached = {name: ReadBound(value) for name, value in highest.items() if value is not None}
        exact = {name: mark for name, mark in bounds.bounds.items() if name not in times}
        state = ColumnState({**exact, **reached}).cap_at(bounds)
        return serialise(state.watermark()) if state.bounds else None

    def _highest_below(self, name: str, bound: ReadBound) -> Any:
        rows = Between(name, None, bound.value, upper_inclusive=bound.inclusive)
        return self._table.contents.highest_values([name], None, rows)[name]

    def _highest(self) -> dict[str, ReadBound]:
        columns = [name for name in self._columns if name in self._table.contents.columns()]
        highest = self._table.contents.highest_values(columns) if columns else {}
        return {name: ReadBound(value) for name, value in highest.items() if value is not None}

    def replaces_reloaded_rows(self) -> bool:
        """Return whether rows have the columns that they were read by."""
        return set(self._columns) <= set(self._table.contents.columns())

    def loaded_upper_bound(self, entry: Entry) -> str:
        """Return a bound above everything that was ever loaded, also above earlier rewinds."""
        name = self._dataflow.name
        if not self.replaces_reloaded_rows():
            raise ConfigurationError(
                f"dataflow {name}: --replace deletes the rows that it reads again, and finds them by "
                f"their columns: expected {', '.join(self._columns)} in table {self._dataflow.table}, "
                f"found {', '.join(self._table.contents.columns()) or 'no table'}. Restore the columns, "
                "or run `state reset --replace`",
                choices=(f"strandline state reset {name} --replace --reason TEXT",),
            )
        state = state_of(ColumnState, self._dataflow, entry)
        for entry_ in self._history():
            state = state.raise_to(
                state_of(ColumnState, self._dataflow, entry_).for_columns(self._columns).bounds
            )
        return serialise(state.raise_to(self._highest()).watermark())

    def lost_above(self, entry: Entry, watermark: str) -> LostRows:
        """Compare the rows of entries above the watermark with those that the table holds there.

        Only all rows are counted if a load finds rows by keys, if something else than runs loaded some, or
        if the order of several columns, or of rows without a value, does not tell which ones lie above.
        """
        table, state = self._table, ColumnState.of(deserialise(watermark))
        in_all = lost_in_all(table, entry)
        if in_all.are_none or not self._dataflow.target.only_adds or len(self._columns) > 1:
            return in_all
        (column,) = self._columns
        bound = state.bounds.get(column)
        written = self._written_above(state)
        if written is None or column not in table.contents.columns():
            return in_all
        if table.contents.count_rows(Among(column, (None,))):
            return in_all
        above = (
            EVERYTHING
            if bound is None
            else ColumnRange(column, bound.value, None, lower_inclusive=not bound.inclusive).rows
        )
        return LostRows(max(written - table.contents.count_rows(above), 0), is_exact=True)

    def _written_above(self, state: ColumnState) -> int | None:
        """Return how many rows runs have written above a state; None if other entries load or move it."""
        rows = 0
        for past in self._history():
            reached = state_of(ColumnState, self._dataflow, past)
            if state.covers(reached):
                return rows
            if past.why not in ("run", "abandon", "maintain"):
                return None
            rows += past.rows
        return rows if not state.bounds else None

    def check_rewind(self) -> None:
        """Accept any rewind: values have an order."""

    def count_already_loaded(self, slices: Sequence[ColumnSlice], last: Entry | None) -> LoadedBefore:
        """Return how many ranges begin below the loaded state."""
        state = state_of(ColumnState, self._dataflow, last)
        again = [slice_ for slice_ in slices if _begins_below(slice_, state)]
        return LoadedBefore(len(again), "range")


def _begins_below(slice_: ColumnSlice, state: ColumnState) -> bool:
    return any(
        mark is not None and (range_.lower is None or compare_values(range_.lower, mark.value) < 0)
        for range_ in slice_.ranges
        for mark in [state.bounds.get(range_.column)]
    )
