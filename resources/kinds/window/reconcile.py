"""The comparison of loaded windows x units with their table (docs/how-to/is-my-table-right.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from typing_extensions import override

from partitions.column.state import ColumnState, ReadBound
from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from partitions.predicate import Predicate
from partitions.reconcile.ranges import MAX_RANGES, Ranges
from partitions.replay.bounds import typed_bound
from partitions.sentinels import Watermark
from partitions.sources.database_types import ColumnType
from partitions.unit_values import TIMES, ValueType
from partitions.window.extent import Extent
from partitions.window.loaded_spans import Span, loaded_spans
from partitions.window.predicates import ExtentColumns, extents_predicate
from partitions.window.state import WindowState
from partitions.window.units import unit_of
from resources.kinds.window.columns import WindowColumns
from resources.reconcile.opening import open_source
from resources.reconcile.rows import OpenedSource, ReconcileRows
from resources.reconcile.side import ComparedSide
from resources.replay.options import name_dataflow_in_errors
from resources.sources.files.source import FileSource
from resources.sources.schema import kind_of


@dataclass(frozen=True)
class WindowReconcile(ReconcileRows):
    """The comparison of a window watermark: its ranges are the loaded windows of each unit."""

    no_repair = "windows are read again by a replay"

    @override
    def check(self) -> None:
        """Check that rows tell their window and unit, and that a window is loaded, too."""
        super().check()
        definition, name = self.dataflow.source, self.dataflow.name
        obstacle = None
        if self.options.every:
            obstacle = "--every (the ranges are the windows of the definition)"
        elif self.dataflow.tagged or self._columns.window is None:
            obstacle = "rows without a window_column, or without a column for a value of the unit"
        elif getattr(definition, "placeholders", frozenset()):
            obstacle = "a query with placeholders, which only returns the rows of one window or unit"
        elif self._state.old:
            obstacle = "rows of windows that an earlier definition cut, which the next runs replace"
        if obstacle is not None:
            raise ConfigurationError(
                f"dataflow {name}: reconcile expects a source whose rows tell their window and unit, found {obstacle}"
            )
        if not self._spans():
            raise ConfigurationError(
                f"dataflow {name}: expected loaded windows to compare, found none"
                + ("" if self.options.is_whole else " in this range")
            )

    @contextmanager
    def opened(self) -> Iterator[OpenedSource]:
        """Yield a database, a lake table at one version, or the loaded windows of another source."""
        staging = self.stores.staging(self.dataflow)
        with staging.emptied():
            source: Any = self.stores.source(self.dataflow, staging)
            if isinstance(source, FileSource):
                raise ConfigurationError(
                    f"dataflow {self.dataflow.name}: reconcile compares windows of a database, a table of the lake, an API"
                    " or a function, found folders of files"
                )
            spark = self.stores.engine(self.dataflow).session
            loaded = self._extents(self._spans())
            read = lambda: source.read(spark(), loaded, self.pinned_columns())  # noqa: E731 - read at most once
            with open_source(self, source, read) as opened:
                yield opened

    def ranges(self, source: ComparedSide) -> Ranges:
        """Return the loaded windows of each unit; of very many, several windows are one range."""
        columns, spans = self._extent_columns(source.columns()), self._spans()
        assert columns.window is not None
        windows = sorted({span for of_unit in spans.values() for span in of_unit})
        starts, last = [start for start, _ in windows], max(end for _, end in windows)
        units = [unit for unit in spans if unit_of(unit)] if self._columns.units else []
        size = -(-len(starts) * max(1, len(units)) // MAX_RANGES)
        edges = list(dict.fromkeys(columns.bound(start) for start in starts[::size]))
        return Ranges(
            columns.window,
            ColumnState(),
            (columns.window, *dict.fromkeys(self._columns.units.values())),
            edges[0],
            ReadBound(columns.bound(last), inclusive=False),
            tuple(edges[1:]),
            with_nulls=False,
            units=tuple((unit_of(unit), _rows_of_unit(unit, columns)) for unit in units),
            loaded=extents_predicate(self._extents(loaded_spans(self._state)), columns),
        )

    @override
    def reach(self, ranges: Ranges) -> Watermark:
        """Return the end of the last loaded window."""
        return ranges.reach

    @property
    def _columns(self) -> WindowColumns:
        return WindowColumns.of(self.dataflow)

    @property
    def _state(self) -> WindowState:
        return WindowState.of(self.entry.state())

    def _spans(self) -> Mapping[str, Sequence[Span]]:
        """Return the loaded windows of each unit that intersect the requested range."""
        with name_dataflow_in_errors(self.dataflow):
            start, end = (
                None if text is None else self._milliseconds(typed_bound(name, text))
                for name, text in (("start", self.options.start), ("end", self.options.end))
            )
            self.options.check_range(start, end)
        chosen = {
            unit: [
                span
                for span in spans
                if (start is None or span[1] > start) and (end is None or span[0] < end)
            ]
            for unit, spans in loaded_spans(self._state).items()
        }
        return {unit: spans for unit, spans in chosen.items() if spans}

    def _milliseconds(self, bound: Any) -> int:
        """Return a bound as epoch milliseconds; without a zone it is in that of the definition."""
        if isinstance(bound, datetime):
            return milliseconds(bound if bound.tzinfo else bound.replace(tzinfo=self.dataflow.zone))
        if isinstance(bound, date):
            return milliseconds(
                datetime(bound.year, bound.month, bound.day, tzinfo=self.dataflow.zone or UTC)
            )
        raise ConfigurationError(f"--start, --end: expected a date or a time, found {bound!r}")

    def _extents(self, spans: Mapping[str, Sequence[Span]]) -> list[Extent]:
        return [
            Extent(start, end, (unit_of(unit),)) for unit, of_unit in spans.items() for start, end in of_unit
        ]

    def _extent_columns(self, types: Mapping[str, ColumnType | None]) -> ExtentColumns:
        """Return the columns that tell a row's window and unit, with the types that the source has."""
        kinds = {
            name: kind
            for name, type_ in types.items()
            if type_ is not None and not type_.dimensions and (kind := _value_type(type_)) is not None
        }
        columns = self._columns
        with name_dataflow_in_errors(self.dataflow):
            checked = ExtentColumns.checked(kinds, columns.window, columns.units, self.dataflow.zone)
        if columns.window is not None and kinds[columns.window] not in TIMES:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected a window_column with times or dates, found {columns.window}"
            )
        return checked


def _rows_of_unit(unit: str, columns: ExtentColumns) -> Predicate:
    return extents_predicate([Extent(None, None, (unit_of(unit),))], columns)


def _value_type(type_: ColumnType) -> ValueType | None:
    return kind_of(type_.data_type.partition("(")[0])
