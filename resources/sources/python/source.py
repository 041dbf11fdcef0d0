"""Rows that a function of the user yields, staged as Parquet while they come (docs/source-python.md).

The function is told the bounds, and its rows are filtered by the same predicate: one that ignores its bounds costs time, and doubles nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.column.predicates import ranges_of
from partitions.column.source import Observed
from partitions.dataflow import Dataflow
from partitions.errors import SchemaError, SourceError
from partitions.instants import as_datetime
from partitions.loads import Lacking
from partitions.local_time import covering, repeated
from partitions.path.definition import PathWatermark
from partitions.plan import counted
from partitions.predicate import NOTHING, AllOf, Among, Predicate, columns_of
from partitions.sources import PythonSource
from partitions.unit_values import Kind, fitted
from partitions.watermark import compare_values
from partitions.window.extent import Extent
from partitions.window.predicates import Columns, disjoint, rows_of
from resources.dialects.arrow import expression
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.sources.evolving import FOLLOWS
from resources.sources.python.batches import (
    Raw,
    cast_to,
    column_names,
    own_type,
    row_count,
)
from resources.sources.python.call import FunctionCaller
from resources.sources.python.calls import FetchedRows, MeantRows, StartedCall
from resources.sources.python.request import RowRequest
from resources.sources.python.schema import SAMPLE_CALLS, FunctionSchema, arrow_schema
from resources.sources.python.values import of_python, own_array, plain_value
from resources.sources.schema import kinds, pinned_struct
from resources.sources.source import ReadsAbove, RowSource, TellsLacking
from resources.staging import Staging
from resources.user_functions import UserCode

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


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
        self._dataflow, self._source, self._staging = dataflow, source, staging
        watermark = dataflow.watermark
        self._zone = dataflow.zone
        self._zone_name = "UTC" if isinstance(watermark, PathWatermark) else watermark.timezone
        self._caller = FunctionCaller(dataflow.name, source, code)
        self._schema = FunctionSchema(dataflow, source, self._caller, self._zone_name)
        self._ahead: StartedCall | None = None
        self._brought: set[str] = set()
        self._fetched: FetchedRows | None = None
        self._files = 0

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
        requests = [self._within(extent) for extent in disjoint(extents)[:SAMPLE_CALLS]]
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
        for extent in disjoint(extents):
            rows = rows_of([extent], columns)
            calls.append(
                MeantRows(self._within(extent, columns.kinds.get(columns.window or "")), rows, tuple(earlier))
            )
            if not columns.elsewhere:
                earlier.append(rows)  # two units may be one value of the column
        return self._staged(spark, calls, schema)

    def _within(self, extent: Extent, kind: Kind | None = None) -> RowRequest:
        """The request for an extent; its ends hold all rows of which a window column of that kind says that they are in it."""
        (unit,) = extent.units
        covered = covering(extent.lower, extent.upper, kind, self._zone)
        ends = [None if ms is None else as_datetime(ms, self._zone) for ms in covered]
        if self._source.window_column is not None and ends[0] is not None:
            # What it yields without a zone counts as of the second pass, and is asked for with both.
            ends[0] = self._first_pass(ends[0]).astimezone(self._zone)
        return self._caller.request(start=ends[0], end=ends[1], unit=dict(unit))

    def _columns_told(self, known: dict[str, Kind]) -> Columns:
        """Which columns tell a row's window and unit; of what none tells the function itself takes care."""
        source, window = self._source, self._dataflow.window
        units = {f"unit.{name}" for name in window.unit_fields if name not in source.unit_columns}
        ends = {"start", "end"} if window.time_entry is not None and source.window_column is None else set()
        return Columns(known, source.window_column, source.unit_columns, self._zone, frozenset(units | ends))

    # Rows above a column watermark

    def observe(self, columns: Sequence[str], now: datetime) -> Observed:
        """The clock is the run's; only the function ``highest`` tells the highest values before rows are fetched."""
        declared_kinds = {
            name: self._schema.declared[name] for name in columns if name in self._schema.declared
        }
        maxima = {name: self._told(name) for name in columns} if self._source.highest is not None else {}
        return Observed(now, declared_kinds, maxima)

    def look_at(self, columns: Sequence[str]) -> Mapping[str, Kind | None]:
        """Call the function without bounds for its first rows."""
        if self._schema.sampled is None:
            return dict.fromkeys(columns)
        sampled_kinds = kinds(self._schema.sampled)
        return {name: sampled_kinds[name] for name in columns if name in sampled_kinds}

    def holds_any(self, rows: Predicate) -> bool:
        """Call the function up to the first of these rows; a read of the same bounds goes on there, if it can do without the batches before."""
        request, passed = self._above(rows), 0
        call = self._calling(request)
        for batch in call:
            if row_count(self._compared(batch, rows, request)):
                if not passed:
                    self._ahead = StartedCall(request, batch, call)
                return True
            passed += row_count(self._compared(batch, _without_value(rows), request))
        return False

    def highest(self, column: str, rows: Predicate) -> Any:
        """Look through all rows."""
        request, highest = self._above(rows), None
        for batch in self._calling(request):
            highest = _higher(highest, self._compared(batch, rows, request, column), column)
        return highest

    def fetched_up_to(self, rows: Predicate, columns: Sequence[str]) -> Mapping[str, Any]:
        """Stage rows, and tell the highest value of columns in them.

        Raises:
            SourceError: the function fails, or yields something else than expected.
        """
        schema, highest = self._schema.columns or self._schema.sampled, dict[str, Any].fromkeys(columns)
        if schema is None:
            return highest
        arrow, call = arrow_schema(schema), MeantRows(self._above(rows), rows)
        with self._staging.batches(self._next_name(), arrow) as staged:
            for table in self._tables(call, arrow):
                staged.write(table)
                highest = {name: _higher(highest[name], table, name) for name in columns}
        paths = [self._staging.folder.child(file.path).spark_url for file in staged.files]
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
            return spark.read.schema(schema).parquet(*fetched.paths).where(sql(parts[0], SPARK))
        return self._staged(spark, [MeantRows(self._above(part), part) for part in parts], schema)

    def _above(self, rows: Predicate) -> RowRequest:
        """The request for rows above bounds. A time without zone counts as one of the second pass, so both passes of an hour are asked for."""
        return self._caller.request(
            bounds={
                each.column: replace(each, lower=self._first_pass(each.lower)) for each in ranges_of(rows)
            }
        )

    def _first_pass(self, bound: Any) -> Any:
        """A lower bound; of an instant in an hour that a clock repeats the start of its first pass."""
        if not isinstance(bound, datetime) or bound.tzinfo is None:
            return bound
        stretch = repeated(bound.astimezone(self._zone))
        return bound if stretch is None else stretch.start

    def _told(self, column: str) -> Any:
        """The highest value of a column, by the function ``highest``."""
        import pyarrow as pa

        highest = self._caller.highest(self._caller.request(), column)
        kind = self._schema.declared.get(column)
        try:
            type_ = self._schema.type_of(column, NOTHING)
            array = (
                own_array([highest], self._zone_name)
                if type_ is None
                else of_python([highest], type_, self._zone_name)
            )
            value = array[0].as_py()
            return value if kind is None else fitted(value, kind, self._zone)
        except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            raise SourceError(
                f"dataflow {self._dataflow.name}: function {self._source.highest}: expected the highest value of {column}, or None: {error}",
                code="function_yield",
            ) from None

    # Fetching

    def _staged(self, spark: SparkSession, calls: Sequence[MeantRows], schema: StructType) -> DataFrame:
        """Call the function, and put what is asked for where Spark reads it."""
        self._brought = set()
        if not calls:
            return spark.createDataFrame([], schema)
        arrow = arrow_schema(schema)
        with self._staging.batches(self._next_name(), arrow) as staged:
            for call in calls:
                for table in self._tables(call, arrow):
                    staged.write(table)
        paths = [self._staging.folder.child(file.path).spark_url for file in staged.files]
        return spark.read.schema(schema).parquet(*paths)

    def _tables(self, call: MeantRows, schema: pa.Schema) -> Iterator[pa.Table]:
        """What is asked for of each batch."""
        ignores = self._dataflow.unknown_fields == "ignore"
        for batch in self._calling(call.request):
            self._brought |= {name.casefold() for name in column_names(batch)}
            try:
                complete_batch = self._schema.with_all(batch, schema)
                table = cast_to(complete_batch, schema, self._zone_name, ignore_unknown=ignores)
            except SchemaError as error:
                self._schema.follow(batch, schema)
                if error.reason != "unknown_field" or self._dataflow.target.schema_mode not in FOLLOWS:
                    raise self._caller.wrong(error, call.request) from None
                table = cast_to(
                    complete_batch, schema, self._zone_name, ignore_unknown=True
                )  # columns without a value
            yield table.filter(call.condition(schema))

    @override
    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[Lacking]:
        """Return the pinned columns that no batch of the rows that were read last has."""
        names = pinned_struct(pinned).fieldNames() if self._brought else ()
        return tuple(Lacking(name) for name in names if name.casefold() not in self._brought)

    def _calling(self, request: RowRequest) -> Generator[Raw]:
        """The batches of a call, or the rest of one that a look has begun."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.request == request:
            yield ahead.first
            yield from ahead.call
            return
        if ahead is not None:
            ahead.call.close()
        yield from self._with_named_columns(request)

    def _with_named_columns(self, request: RowRequest) -> Generator[Raw]:
        """The batches of a call, which must have a column that tells whether a row is wanted: a dict row need not have each."""
        named, count, has_any = self._named_columns, 0, False
        for batch in self._caller.batches(request):
            count += row_count(batch)
            has_any = has_any or not named.isdisjoint(column_names(batch))
            yield batch
        if count and named and not has_any:
            missing = " or ".join(sorted(named))
            error = SchemaError(
                f"expected a column {missing}, found none in {counted(count, 'row')}",
                reason="missing_column",
                field=missing,
            )
            raise self._caller.wrong(error, request)

    @property
    def _named_columns(self) -> frozenset[str]:
        """The columns whose values tell which rows are wanted."""
        if self._dataflow.kind == "column":
            return frozenset(self._dataflow.column.columns)
        return frozenset(filter(None, [self._source.window_column]))

    def _compared(self, batch: Raw, rows: Predicate, request: RowRequest, *more: str) -> pa.Table:
        """The rows of a batch that are meant, with the columns that tell which these are, before all columns are known."""
        import pyarrow as pa

        try:
            types = {
                name: self._schema.type_of(name, rows) or own_type(batch, name)
                for name in (*columns_of(rows), *more)
            }
            table = cast_to(batch, pa.schema(types.items()), self._zone_name, ignore_unknown=True)
        except SchemaError as error:
            raise self._caller.wrong(error, request) from None
        return table.filter(expression(rows, table.schema))

    def _next_name(self) -> str:
        self._files += 1
        return f"rows-{self._files}"


def _without_value(rows: Predicate) -> Predicate:
    """The rows without a value in any column that is compared: a first run reads them, too."""
    return AllOf(tuple(Among(name, (None,)) for name in columns_of(rows)))


def _higher(highest: Any, table: pa.Table, column: str) -> Any:
    """The higher one of a value and all values of a column; NULL, infinity and NaN are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table.column(column)
    if pa.types.is_floating(values.type):
        values = values.filter(pc.is_finite(values))
    value = pc.max(values).as_py() if len(values) else None
    if value is None or highest is None:
        return highest if value is None else value
    return value if compare_values(value, highest) > 0 else highest
