"""Rows that a function of the user yields, staged as Parquet while they come (docs/source-python.md).

The function is told the bounds, and its rows are filtered by the same predicate: one that ignores its bounds costs time, and doubles nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from partitions.column.predicates import Range, bounds_of
from partitions.column.source import Observed
from partitions.dataflow import Dataflow
from partitions.ddl import kinds_of
from partitions.errors import SchemaError, SourceError
from partitions.instants import as_datetime
from partitions.path.definition import PathWatermark
from partitions.predicate import AnyOf, Predicate, columns_of
from partitions.sources import PythonSource
from partitions.unit_values import Kind, fitted
from partitions.watermark import compare_values
from partitions.window.extent import Extent
from partitions.window.predicates import Columns, disjoint, rows_of
from resources.dialects.arrow import expression
from resources.functions import UserCode
from resources.sources.files.failures import other_schema
from resources.sources.files.pinned import PinnedSchema
from resources.sources.python.batches import Raw, WrongYield, cast_to, inferred_schema, own_type, row_count
from resources.sources.python.call import FunctionCaller
from resources.sources.python.request import RowRequest
from resources.sources.schema import kind_of, kinds, pinned_struct, plain
from resources.staging import Staging

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_SAMPLE_ROWS = 10_000
_SAMPLE_BYTES = 64 * 2**20


class PythonRows:
    """The rows of one function."""

    def __init__(
        self,
        dataflow: Dataflow,
        source: PythonSource,
        code: UserCode,
        staging: Staging,
        pinned: Callable[[], str | None],
    ) -> None:
        """Use a function; nothing is imported or called yet.

        Args:
            dataflow: the definition.
            source: what it says of the function.
            code: where the function is, and what it is given.
            staging: where its rows are put.
            pinned: looks up the text of the schema that the state has; None if it has none yet.
        """
        self._dataflow, self._source, self._staging, self._pinned = dataflow, source, staging, pinned
        self._zone = dataflow.zone
        watermark = dataflow.watermark
        self._zone_name = "UTC" if isinstance(watermark, PathWatermark) else watermark.timezone
        self._caller = FunctionCaller(dataflow.name, source, code)
        self._ahead: _Ahead | None = None
        self._reads = 0

    def version(self) -> None:
        """None: a function has no versions."""
        return

    def pin(self, spark: SparkSession) -> str:
        """The declared schema, or that of the first rows without bounds."""
        return self.pin_from(spark, ())

    def pin_from(self, spark: SparkSession, extents: Sequence[Extent]) -> str:
        """The declared schema, or that of the first rows of some extents.

        Raises:
            SchemaError: the function yields no row that tells it.
        """
        declared = self._declared(spark)
        if declared is None:
            declared = self._inferred(extents) if extents else self._sampled
        return PinnedSchema(plain(declared).json(), (), self._source.schema_).to_text()

    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare ``source.schema`` with what was pinned; rows are compared as they come."""
        was = PinnedSchema.of(pinned)
        if self._source.schema_ == was.declared:
            return
        declared = self._declared(spark)
        if declared is None or plain(declared) == was.struct:
            return
        now, then = declared.simpleString(), was.struct.simpleString()
        raise other_schema(
            f"source.schema: expected the schema that was pinned ({then}), found another ({now})",
            "Put it back",
            dataflow,
            None,
        )

    def read(
        self,
        spark: SparkSession,
        extents: Sequence[Extent],
        pinned: str,
        version: object = None,  # noqa: ARG002 - a function has no versions
    ) -> DataFrame:
        """One call for each stretch of time of each unit."""
        schema = pinned_struct(pinned)
        asked = [(self._request_for(extent), extent) for extent in disjoint(extents)]
        known = kinds(schema)
        earlier: list[Predicate] = []
        calls: list[tuple[RowRequest, Predicate, Sequence[Predicate]]] = []
        for request, extent in asked:
            rows = rows_of([extent], self._columns_told(known))
            calls.append((request, rows, tuple(earlier)))
            if self._tells_all(extent):
                earlier.append(rows)  # two units may be one value of the column
        return self._staged(spark, calls, schema)

    def failure(self, error: Exception) -> None:  # noqa: ARG002 - part of what all readers of rows have
        """None: the function is called before anything is written."""
        return

    def observe(self, columns: Sequence[str], now: datetime) -> Observed:
        """Its clock is the run's; the highest values are those that the function ``highest`` returns."""
        known = self._kinds
        maxima: dict[str, Any] = {}
        for column in columns if self._source.highest is not None else ():
            maxima[column] = self._highest_told(column, known)
        return Observed(now, {name: known[name] for name in columns if name in known}, maxima)

    def cuts(self, range_: Range, rows: int, most: int, version: object) -> Sequence[Any]:  # noqa: ARG002 - part of what all sources have
        """None: only the rows would tell."""
        return ()

    def holds_any(self, rows: Predicate, version: object) -> bool:  # noqa: ARG002 - a function has no versions
        """Call the function up to the first of these rows; a read of the same bounds continues there."""
        self._forget()
        request = self._above(rows)
        call = self._caller.batches(request)
        for batch in call:
            if self._compared(batch, rows, request).num_rows:
                self._ahead = _Ahead(request, batch, call)
                return True
        return False

    def highest(self, column: str, rows: Predicate, version: object) -> Any:  # noqa: ARG002 - a function has no versions
        """Look through all rows; a function ``highest`` spares this."""
        import pyarrow.compute as pc

        request, found = self._above(rows), None
        for batch in self._caller.batches(request):
            table = self._compared(batch, rows, request, column)
            value = pc.max(table.column(column)).as_py() if table.num_rows else None
            if value is not None and (found is None or compare_values(value, found) > 0):
                found = value
        return found

    def read_rows(
        self,
        spark: SparkSession,
        parts: Sequence[Predicate],
        pinned: str,
        version: object,  # noqa: ARG002 - a function has no versions
    ) -> DataFrame:
        """One call for each part."""
        calls = [(self._above(part), part, ()) for part in parts]
        return self._staged(spark, calls, pinned_struct(pinned))

    def _staged(
        self,
        spark: SparkSession,
        calls: Sequence[tuple[RowRequest, Predicate, Sequence[Predicate]]],
        schema: StructType,
    ) -> DataFrame:
        """Call the function, and put what is asked for where Spark reads it."""
        from pyspark.sql.pandas.types import to_arrow_schema

        if not calls:
            return spark.createDataFrame([], schema)
        arrow: pa.Schema = to_arrow_schema(schema)
        self._reads += 1
        with self._staging.batches(f"rows-{self._reads}", arrow) as staged:
            for request, rows, earlier in calls:
                condition = expression(rows)
                for each in earlier:
                    condition &= ~expression(AnyOf((each,)))  # NULL is not true there
                for batch in self._batches(request):
                    staged.write(self._cast(batch, arrow, request).filter(condition))
        folder = self._staging.folder
        paths = [folder.child(file.path).spark_url for file in staged.files]
        return spark.read.schema(schema).parquet(*paths)

    def _batches(self, request: RowRequest) -> Iterator[Raw]:
        """The batches of a call, or the rest of one that a look has begun."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead.request != request:
            if ahead is not None:
                ahead.call.close()
            yield from self._caller.batches(request)
            return
        yield ahead.first
        yield from ahead.call

    def _forget(self) -> None:
        if self._ahead is not None:
            self._ahead.call.close()
            self._ahead = None

    def _cast(self, batch: Raw, schema: pa.Schema, request: RowRequest) -> pa.Table:
        ignores = self._dataflow.unknown_fields == "ignore"
        try:
            return cast_to(batch, schema, self._zone_name, ignore_unknown=ignores)
        except SchemaError as error:
            raise self._caller.wrong(error, request) from None

    def _compared(self, batch: Raw, rows: Predicate, request: RowRequest, *more: str) -> pa.Table:
        """The rows of a batch that are meant, with the columns that tell which these are."""
        import pyarrow as pa

        names = dict.fromkeys((*columns_of(rows), *more))
        known = {
            "instant": pa.timestamp("us", "UTC"),
            "local": pa.timestamp("us"),
            "day": pa.date32(),
            "whole": pa.int64(),
            "text": pa.string(),
        }
        types = {name: known.get(self._kinds[name]) or own_type(batch, name) for name in names}
        schema = pa.schema([pa.field(name, kind) for name, kind in types.items()])
        try:
            table = cast_to(batch, schema, self._zone_name, ignore_unknown=True)
        except SchemaError as error:
            raise self._caller.wrong(error, request) from None
        return table.filter(expression(rows))

    def _above(self, rows: Predicate) -> RowRequest:
        bounds = bounds_of(rows)
        return self._caller.request(bounds=bounds)

    def _request_for(self, extent: Extent) -> RowRequest:
        (unit,) = extent.units
        ends = [None if ms is None else as_datetime(ms, self._zone) for ms in (extent.lower, extent.upper)]
        return self._caller.request(start=ends[0], end=ends[1], unit=dict(unit))

    def _columns_told(self, known: dict[str, Kind]) -> Columns:
        """Which columns tell a row's window and unit; of what none tells the function itself takes care."""
        source = self._source
        units = {
            f"unit.{name}"
            for name in (self._dataflow.window.unit_fields or ())
            if name not in source.unit_columns
        }
        window = {"start", "end"} if source.window_column is None else set()
        return Columns(
            known, source.window_column, source.unit_columns, self._zone, frozenset(units | window)
        )

    def _tells_all(self, extent: Extent) -> bool:
        return self._source.rows_tell(timed=extent.lower is not None, unit_fields=tuple(extent.units[0]))

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        """What the columns hold: as pinned, as declared, or as the first rows tell."""
        pinned = self._pinned()
        if pinned is not None:
            fields = json.loads(PinnedSchema.of(pinned).columns)["fields"]
            held = {
                field["name"]: kind_of(field["type"]) for field in fields if isinstance(field["type"], str)
            }
            return {name: kind for name, kind in held.items() if kind is not None}
        if self._source.schema_ is not None:
            return kinds_of(self._source.schema_)
        return kinds(self._sampled)

    @cached_property
    def _sampled(self) -> StructType:
        """The columns of the first rows, asked for without bounds."""
        return self._inferred(())

    def _inferred(self, extents: Sequence[Extent]) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        requests = [self._request_for(extent) for extent in disjoint(extents)] or [self._caller.request()]
        sample: list[Raw] = []
        for request in requests:
            with closing(self._caller.batches(request)) as batches:
                for batch in batches:
                    sample.append(batch)
                    if _is_enough(sample):
                        break
            if sample:
                break
        if not any(map(row_count, sample)):
            raise SchemaError(
                f"dataflow {self._dataflow.name}: expected rows of {self._source.shown} that tell its columns, found none. Declare"
                " source.schema, or run it again when there are some",
                reason="no_rows",
            )
        try:
            return from_arrow_schema(inferred_schema(sample), prefer_timestamp_ntz=True)
        except WrongYield as error:
            raise SchemaError(
                f"dataflow {self._dataflow.name}: {self._source.shown}: {error}", reason="incompatible_schema"
            ) from None

    def _declared(self, spark: SparkSession) -> StructType | None:
        if self._source.schema_ is None:
            return None
        return spark.createDataFrame([], self._source.schema_).schema

    def _highest_told(self, column: str, known: dict[str, Kind]) -> Any:
        if column not in known:
            return None  # the plan says that there is no such column
        request = self._caller.request()
        value = self._caller.highest(request, column)
        try:
            return fitted(value, known[column], self._zone)
        except ValueError as error:
            raise SourceError(
                f"dataflow {self._dataflow.name}: function {self._source.highest}: expected the highest value of {column}, or None: {error}",
                code="function_yield",
            ) from None


def _is_enough(sample: Sequence[Raw]) -> bool:
    size = sum(batch.nbytes for batch in sample if not isinstance(batch, list))
    return sum(map(row_count, sample)) >= _SAMPLE_ROWS or size >= _SAMPLE_BYTES


class _Ahead:
    """A call that was begun by a look.

    Attributes:
        request: of the call.
        first: the batch that the look ended with; those before hold none of the rows.
        call: the rest.
    """

    def __init__(self, request: RowRequest, first: Raw, call: Generator[Raw]) -> None:
        self.request, self.first, self.call = request, first, call
