"""Rows of a user's function, staged as Parquet while they arrive.

The function receives the bounds, and its rows are filtered by the same predicate: a function that ignores
its bounds costs time, but duplicates nothing. See docs/reference/python-functions.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.column.source import SourceObservation
from partitions.dataflow import Dataflow
from partitions.errors import SchemaError
from partitions.loads import LackingColumn
from partitions.predicate import AllOf, Among, Predicate, columns_of
from partitions.sources import PythonSource
from partitions.unit_values import ValueType
from partitions.window.extent import Extent
from partitions.window.predicates import ExtentColumns, extents_predicate, split_disjoint
from resources.dialects.arrow import arrow_expression
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sources.python.batches import cast_to, own_type, row_count
from resources.sources.python.bounded_requests import BoundedRequests
from resources.sources.python.call import FunctionCaller
from resources.sources.python.calls import FetchedRows, FunctionCalls, RequestedRows, StartedCall
from resources.sources.python.highest import call_highest, higher
from resources.sources.python.request import Request
from resources.sources.python.schema import SAMPLE_CALLS, FunctionSchema, arrow_schema
from resources.sources.python.staged_rows import RowStaging
from resources.sources.python.values import plain_value
from resources.sources.python.yielded import Raw
from resources.sources.schema import kinds, pinned_struct
from resources.sources.source import ReadsAbove, RowSource, TellsLacking
from resources.staging import Staging
from resources.user_functions import UserCode

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class PythonRows(RowSource, ReadsAbove, TellsLacking):
    """The rows of one function."""

    def __init__(self, dataflow: Dataflow, source: PythonSource, code: UserCode, staging: Staging) -> None:
        """Configure the source; nothing is imported or called yet.

        Args:
            dataflow: the definition.
            source: the source's definition.
            code: where the function is, and the settings that it receives.
            staging: where its rows are staged.
        """
        self._dataflow, self._source, self._zone = dataflow, source, dataflow.zone
        self._caller = FunctionCaller(dataflow.name, source, code)
        self._schema = FunctionSchema(dataflow, source, self._caller)
        self._requests = BoundedRequests(self._caller, source, self._zone)
        self._calls = FunctionCalls(self._caller, _deciding_columns(dataflow, source))
        self._rows = RowStaging(dataflow, self._schema, self._caller, self._calls, staging)
        self._fetched: FetchedRows | None = None

    @property
    def remarks(self) -> Sequence[str]:
        """Warnings: about pinned columns that the function no longer yields, and rows of no request."""
        return (*self._schema.remarks, *self._rows.remarks)

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a call without bounds, in their order."""
        request = self._caller.request()
        with closing(self._caller.batches(request)) as batches:
            for batch in batches:
                if isinstance(batch, list):
                    for row in batch:
                        yield self._plain(row, columns, request)
                    continue
                selected = batch.select([name for name in columns if name in batch.column_names])
                for part in selected.to_batches():
                    yield from part.to_pylist()

    def _plain(self, row: Mapping[str, Any], columns: Sequence[str], request: Request) -> dict[str, Any]:
        try:
            return {**row, **{name: plain_value(row[name]) for name in columns if name in row}}
        except ValueError as error:
            raise self._caller.misfit_error(
                SchemaError(
                    f"expected values that can be compared, found {error}", reason="incompatible_schema"
                ),
                request,
            ) from None

    # The schema

    def pin(self, spark: SparkSession) -> str | None:
        """Return the declared schema, or that of the first rows without bounds; None without rows.

        Raises:
            ConfigurationError: a column that the definition names is missing, or cannot be compared.
            SourceError: the function fails.
        """
        return self._schema.pin(spark, lambda: self._schema.sampled_columns)

    def pin_sample(self, spark: SparkSession, extents: Sequence[Extent]) -> str | None:
        """Return the declared schema, or that of the first rows of these extents; None without rows.

        Raises:
            ConfigurationError, SourceError: as :meth:`pin`.
        """
        requests = [self._requests.within(extent) for extent in split_disjoint(extents)[:SAMPLE_CALLS]]
        return self._schema.pin(spark, lambda: self._schema.infer(requests))

    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare ``source.schema`` with the pinned schema; rows are compared on reading.

        Raises:
            SchemaError: reason ``incompatible_schema``.
        """
        self._schema.check(spark, pinned, dataflow)

    # Windows and units

    def read(
        self,
        spark: SparkSession,
        extents: Sequence[Extent],
        pinned: str,
    ) -> DataFrame:
        """Return the rows of the extents, fetched and staged now, with one call per unit and range.

        Raises:
            ConfigurationError: a column cannot hold a unit's value.
            SourceError: the function fails, or yields something unexpected.
        """
        schema, calls, earlier = pinned_struct(pinned), list[RequestedRows](), list[Predicate]()
        columns = self._window_columns(kinds(schema))
        for extent in split_disjoint(extents):
            rows = extents_predicate([extent], columns)
            request = self._requests.within(extent, columns.kinds.get(columns.window or ""))
            calls.append(RequestedRows(request, rows, tuple(earlier)))
            if not columns.elsewhere:
                earlier.append(rows)  # two units may be one value of the column
        return self._rows.frame(spark, calls, schema)

    def _window_columns(self, value_types: dict[str, ValueType]) -> ExtentColumns:
        """Return the columns that identify a row's window and unit.

        The function itself is responsible for windows and units without a column.
        """
        source, window = self._source, self._dataflow.window
        units = {f"unit.{name}" for name in window.unit_fields if name not in source.unit_columns}
        ends = {"start", "end"} if window.time_entry is not None and source.window_column is None else set()
        return ExtentColumns(
            value_types, source.window_column, source.unit_columns, self._zone, frozenset(units | ends)
        )

    # Rows above a column watermark

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:
        """Return the run's clock, declared types, and highest values from the function ``highest``."""
        declared_kinds = {
            name: self._schema.declared[name] for name in columns if name in self._schema.declared
        }
        asked_columns = columns if self._source.highest is not None else ()
        maxima = {
            name: call_highest(self._caller, self._dataflow, self._source, self._schema, name)
            for name in asked_columns
        }
        return SourceObservation(now, declared_kinds, maxima)

    def look_at(self, columns: Sequence[str]) -> Mapping[str, ValueType | None]:
        """Return the data types of columns in the first rows of a call without bounds."""
        if self._schema.sampled_columns is None:
            return dict.fromkeys(columns)
        sampled_kinds = kinds(self._schema.sampled_columns)
        return {name: sampled_kinds[name] for name in columns if name in sampled_kinds}

    def holds_any(self, rows: Predicate) -> bool:
        """Return whether the function yields such a row, reading up to the first one.

        A later read with the same bounds continues there, if it does not need the earlier batches.
        """
        request, other_rows = self._requests.above(rows), 0
        call = self._calls.batches(request)
        for batch in call:
            if row_count(self._matching_rows(batch, rows, request)):
                if not other_rows:
                    self._calls.keep(StartedCall(request, batch, call))
                return True
            other_rows += row_count(self._matching_rows(batch, _without_value(rows), request))
        return False

    def highest(self, column: str, rows: Predicate) -> Any:
        """Return the highest value of a column, reading all rows."""
        request, highest = self._requests.above(rows), None
        for batch in self._calls.batches(request):
            highest = higher(highest, self._matching_rows(batch, rows, request, column), column)
        return highest

    def fetched_up_to(self, rows: Predicate, columns: Sequence[str]) -> Mapping[str, Any]:
        """Stage rows, and return the highest value of each column in them.

        Raises:
            SourceError: the function fails, or yields something unexpected.
        """
        schema, highest = (
            self._schema.columns or self._schema.sampled_columns,
            dict[str, Any].fromkeys(columns),
        )
        if schema is None:
            return highest

        def note_highest(table: pa.Table) -> None:
            highest.update((name, higher(highest[name], table, name)) for name in columns)

        call = RequestedRows(self._requests.above(rows), rows)
        paths = self._rows.stage([call], arrow_schema(schema), note_highest)
        self._fetched = FetchedRows(rows, paths)
        return highest

    def read_rows(
        self,
        spark: SparkSession,
        parts: Sequence[Predicate],
        pinned: str,
    ) -> DataFrame:
        """Return the rows of the parts, with one call per part unless they are staged already."""
        schema, staged_rows = pinned_struct(pinned), self._fetched
        self._fetched = None
        if staged_rows is not None and len(parts) == 1 and staged_rows.has_same_lower_bounds(parts[0]):
            return spark.read.schema(schema).parquet(*staged_rows.paths).where(predicate_sql(parts[0], SPARK))
        return self._rows.frame(
            spark, [RequestedRows(self._requests.above(part), part) for part in parts], schema
        )

    @override
    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that no batch of the last read has."""
        return tuple(map(LackingColumn, self._rows.lacking(pinned_struct(pinned).fieldNames())))

    def _matching_rows(self, batch: Raw, rows: Predicate, request: Request, *extra_columns: str) -> pa.Table:
        """Return the matching rows of a batch with the compared columns, before all columns are known."""
        import pyarrow as pa

        try:
            types = {
                name: self._schema.type_of(name, rows) or own_type(batch, name)
                for name in (*columns_of(rows), *extra_columns)
            }
            table = cast_to(batch, pa.schema(types.items()), self._schema.zone_name, ignore_unknown=True)
        except SchemaError as error:
            raise self._caller.misfit_error(error, request) from None
        return table.filter(arrow_expression(rows, table.schema))


def _deciding_columns(dataflow: Dataflow, source: PythonSource) -> frozenset[str]:
    """Return the columns whose values decide which rows are read."""
    return frozenset(dataflow.watermark.value_columns or filter(None, [source.window_column]))


def _without_value(rows: Predicate) -> Predicate:
    """Return the predicate of rows without a value in any compared column; a first run reads them."""
    return AllOf(tuple(Among(name, (None,)) for name in columns_of(rows)))
