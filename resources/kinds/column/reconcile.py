"""The comparison of rows above columns with their table (docs/how-to/is-my-table-right.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from partitions.column.state import ColumnState, ReadBound
from partitions.errors import ConfigurationError
from partitions.predicate import EVERYTHING
from partitions.reconcile.ranges import Ranges
from partitions.replay.bounds import typed_bound
from partitions.replay.chunks import chunks
from partitions.replay.every import fitted_bound, parse_interval
from partitions.unit_values import ValueType
from partitions.watermark import compare_values
from resources.kinds.column.opening import column_look, source_and_look
from resources.reconcile.opening import open_source
from resources.reconcile.rows import OpenedSource, ReconcileRows
from resources.reconcile.side import ComparedSide
from resources.replay.options import name_dataflow_in_errors


@dataclass(frozen=True)
class ColumnReconcile(ReconcileRows):
    """The comparison of a column watermark: its ranges are those of the first watermark column."""

    def check(self) -> None:
        """Check that the state has a value to compare up to, too."""
        super().check()
        if not self._state.bounds:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected a watermark to compare up to, found none: it has loaded no row"
                " with a value"
            )

    @contextmanager
    def opened(self) -> Iterator[OpenedSource]:
        """Yield a database in one snapshot, a lake table at one version, or all rows of another source."""
        staging = self.stores.staging(self.dataflow)
        with staging.emptied():
            above = source_and_look(self.stores, self.dataflow, staging)[1].above
            spark, pinned = self.stores.engine(self.dataflow).session, self.pinned_columns
            with open_source(
                self, above, lambda: above.read_rows(spark(), (EVERYTHING,), pinned())
            ) as source:
                yield source

    def ranges(self, source: ComparedSide) -> Ranges:
        """Return the ranges up to the watermark, or to the requested end below it."""
        definition = self.dataflow.column
        column, mark = definition.columns[0], self._state.bounds.get(definition.columns[0])
        kind = self._kind_of(column) if not self.options.is_whole or self.options.every else None
        with name_dataflow_in_errors(self.dataflow):
            lower = self._bound("start", self.options.start, kind)
            requested = self._bound("end", self.options.end, kind)
            self.options.check_range(lower, requested)
            end = self._end(requested, mark)
            edges = self._edges(source, lower, end, kind) if self.options.every else ()
        takes_nulls = definition.nulls != "skip" or len(definition.columns) > 1
        return Ranges(
            column,
            self._state,
            definition.columns,
            lower,
            end,
            tuple(edges),
            with_nulls=takes_nulls and self.options.is_whole,
            requires_value=definition.nulls == "skip",
        )

    @property
    def _state(self) -> ColumnState:
        return ColumnState.of(self.entry.state())

    def _kind_of(self, column: str) -> ValueType | None:
        """Return the type of the column's values, as the source tells it."""
        look = column_look(self.stores, self.dataflow)
        return look.data_types(look.above.observe(self.dataflow.column.columns, self.now)).get(column)

    def _bound(self, name: str, text: str | None, kind: ValueType | None) -> Any:
        if text is None or kind == "text":
            return text
        return fitted_bound(self.dataflow.column.columns[0], typed_bound(name, text), kind)

    def _end(self, requested: Any, mark: ReadBound | None) -> ReadBound | None:
        """Return the lower of the requested end and the watermark."""
        if requested is None:
            return mark
        bound = ReadBound(requested, inclusive=False)
        return bound if mark is None or mark.covers(bound) else mark

    def _edges(
        self, source: ComparedSide, lower: Any, end: ReadBound | None, kind: ValueType | None
    ) -> Sequence[Any]:
        """Return where ranges begin, from the first value of the source on."""
        column = self.dataflow.column.columns[0]
        first = source.lowest(column) if lower is None else lower
        last = end.value if end else None
        assert self.options.every is not None
        interval = parse_interval(self.options.every)
        if first is None or last is None or compare_values(first, last) >= 0:
            return ()
        cut = chunks(column, _chunk_bound(first), _chunk_bound(last), interval)
        return [fitted_bound(column, chunk.lower, kind) for chunk in cut[1:]]


def _chunk_bound(value: Any) -> Any:
    """Return a bound that chunks are counted from; of a fraction the whole number below it."""
    if isinstance(value, Decimal | float):
        return int(value // 1)
    if isinstance(value, date | datetime | int):
        return value
    raise ConfigurationError(
        "--every: expected a watermark column of dates, times or numbers, found text. Leave it out: the rows are one range"
    )
