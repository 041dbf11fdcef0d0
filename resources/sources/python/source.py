"""Rows that a function of the user yields, staged as Parquet while they come (docs/reference/python-functions.md).

The function is told the bounds, and its rows are filtered by the same predicate: one that ignores its bounds costs time, and doubles nothing.
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
from partitions.window.predicates import WindowColumns, extents_predicate, split_disjoint
from resources.dialects.arrow import arrow_expression
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sources.python.batches import Raw, cast_to, own_type, row_count
from resources.sources.python.bounded_requests import BoundedRequests
from resources.sources.python.call import FunctionCaller
from resources.sources.python.calls import FetchedRows, FunctionCalls, MeantRows, StartedCall
from resources.sources.python.highest import higher, told_highest
from resources.sources.python.request import RowRequest
from resources.sources.python.schema import SAMPLE_CALLS, FunctionSchema, arrow_schema
from resources.sources.python.staged_rows import RowStaging
from resources.sources.python.values import plain_value
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
        """Use a function; nothing is imported or called yet.

        Args:
            dataflow: the definition.
            source: what it says of the function.
            code: where the function is, and what it is given.
            staging: where its rows are put.
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
        """Which pinned columns the function does not yield any more."""
        return tuple(self._schema.remarks)

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The rows of a call without bounds, in their order."""
        request = self._caller.request()
        with closing(self._caller.batches(request)) as batches:
            for batch in batches:
                if isinstance(batch, list):
                    for row in batch:
                        yield self._plain(row, columns, request)
                    continue
                some = batch.select([name for name in columns if name in batch.column_names])
                for part in some.to_batches():
                    yield from part.to_pylist()

    def _plain(self, row: Mapping[str, Any], columns: Sequence[str], request: RowRequest) -> dict[str, Any]:
        try:
            return {**row, **{name: plain_value(row[name]) for name in columns if name in row}}
        except ValueError as error:
            raise self._caller.wrong(
                SchemaError(
                    f"expected values that can be compared, found {error}", reason="incompatible_schema"
                ),
                request,
            ) from None

    # The schema

    def pin(self, spark: SparkSession) -> str | None:
        """The declared schema, or that of the first rows without bounds; None if there are none.

        Raises:
            ConfigurationError: a column that the definition names is not there, or cannot be compared.
            SourceError: the function fails.
        """
        return self._schema.pin(spark, lambda: self._schema.sampled)

    def pin_sample(self, spark: SparkSession, extents: Sequence[Extent]) -> str | None:
        """The declared schema, or that of the first rows of these extents; None if there are none.

        Raises:
            ConfigurationError, SourceError: as :meth:`pin`.
        """
        requests = [self._requests.within(extent) for extent in split_disjoint(extents)[:SAMPLE_CALLS]]
        return self._schema.pin(spark, lambda: self._schema.inferred(requests))

    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare ``source.schema`` with what was pinned; rows are compared as they come.

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
        """One call for each stretch of time of each unit. Its rows are fetched and staged now.

        Raises:
            ConfigurationError: a unit's value cannot be one of its column.
            SourceError: the function fails, or yields something else than expected.
        """
        schema, calls, earlier = pinned_struct(pinned), list[MeantRows](), list[Predicate]()
        columns = self._columns_told(kinds(schema))
        for extent in split_disjoint(extents):
            rows = extents_predicate([extent], columns)
            request = self._requests.within(extent, columns.kinds.get(columns.window or ""))
            calls.append(MeantRows(request, rows, tuple(earlier)))
            if not columns.elsewhere:
                earlier.append(rows)  # two units may be one value of the column
        return self._rows.frame(spark, calls, schema)

    def _columns_told(self, known: dict[str, ValueType]) -> WindowColumns:
        """Which columns tell a row's window and unit; of what none tells the function itself takes care."""
        source, window = self._source, self._dataflow.window
        units = {f"unit.{name}" for name in window.unit_fields if name not in source.unit_columns}
        ends = {"start", "end"} if window.time_entry is not None and source.window_column is None else set()
        return WindowColumns(
            known, source.window_column, source.unit_columns, self._zone, frozenset(units | ends)
        )

    # Rows above a column watermark

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:
        """The clock is the run's; only the function ``highest`` tells the highest values before rows are fetched."""
        declared_kinds = {
            name: self._schema.declared[name] for name in columns if name in self._schema.declared
        }
        asked_columns = columns if self._source.highest is not None else ()
        maxima = {
            name: told_highest(self._caller, self._dataflow, self._source, self._schema, name)
            for name in asked_columns
        }
        return SourceObservation(now, declared_kinds, maxima)

    def look_at(self, columns: Sequence[str]) -> Mapping[str, ValueType | None]:
        """Call the function without bounds for its first rows."""
        if self._schema.sampled is None:
            return dict.fromkeys(columns)
        sampled_kinds = kinds(self._schema.sampled)
        return {name: sampled_kinds[name] for name in columns if name in sampled_kinds}

    def holds_any(self, rows: Predicate) -> bool:
        """Call the function up to the first of these rows; a read of the same bounds goes on there, if it can do without the batches before."""
        request, passed = self._requests.above(rows), 0
        call = self._calls.batches(request)
        for batch in call:
            if row_count(self._compared(batch, rows, request)):
                if not passed:
                    self._calls.keep(StartedCall(request, batch, call))
                return True
            passed += row_count(self._compared(batch, _without_value(rows), request))
        return False

    def highest(self, column: str, rows: Predicate) -> Any:
        """Look through all rows."""
        request, highest = self._requests.above(rows), None
        for batch in self._calls.batches(request):
            highest = higher(highest, self._compared(batch, rows, request, column), column)
        return highest

    def fetched_up_to(self, rows: Predicate, columns: Sequence[str]) -> Mapping[str, Any]:
        """Stage rows, and tell the highest value of columns in them.

        Raises:
            SourceError: the function fails, or yields something else than expected.
        """
        schema, highest = self._schema.columns or self._schema.sampled, dict[str, Any].fromkeys(columns)
        if schema is None:
            return highest

        def note_highest(table: pa.Table) -> None:
            highest.update((name, higher(highest[name], table, name)) for name in columns)

        call = MeantRows(self._requests.above(rows), rows)
        paths = self._rows.put([call], arrow_schema(schema), note_highest)
        self._fetched = FetchedRows(rows, paths)
        return highest

    def read_rows(
        self,
        spark: SparkSession,
        parts: Sequence[Predicate],
        pinned: str,
    ) -> DataFrame:
        """One call for each part, unless its rows were fetched before their bound was known."""
        schema, fetched = pinned_struct(pinned), self._fetched
        self._fetched = None
        if fetched is not None and len(parts) == 1 and fetched.begins_like(parts[0]):
            return spark.read.schema(schema).parquet(*fetched.paths).where(predicate_sql(parts[0], SPARK))
        return self._rows.frame(
            spark, [MeantRows(self._requests.above(part), part) for part in parts], schema
        )

    @override
    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that no batch of the rows that were read last has."""
        return tuple(map(LackingColumn, self._rows.lacking(pinned_struct(pinned).fieldNames())))

    def _compared(self, batch: Raw, rows: Predicate, request: RowRequest, *more: str) -> pa.Table:
        """The rows of a batch that are meant, with the columns that tell which these are, before all columns are known."""
        import pyarrow as pa

        try:
            types = {
                name: self._schema.type_of(name, rows) or own_type(batch, name)
                for name in (*columns_of(rows), *more)
            }
            table = cast_to(batch, pa.schema(types.items()), self._schema.zone_name, ignore_unknown=True)
        except SchemaError as error:
            raise self._caller.wrong(error, request) from None
        return table.filter(arrow_expression(rows, table.schema))


def _deciding_columns(dataflow: Dataflow, source: PythonSource) -> frozenset[str]:
    """The columns whose values tell which rows are wanted."""
    if dataflow.kind == "column":
        return frozenset(dataflow.column.columns)
    return frozenset(filter(None, [source.window_column]))


def _without_value(rows: Predicate) -> Predicate:
    """The rows without a value in any column that is compared: a first run reads them, too."""
    return AllOf(tuple(Among(name, (None,)) for name in columns_of(rows)))
