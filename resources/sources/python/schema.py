"""Tell the columns of a function's rows: declared, or inferred from its first rows, and how they change (docs/reference/python-functions.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from partitions.column.predicates import ranges_of
from partitions.dataflow import Dataflow
from partitions.ddl import Column, parse_ddl, value_types
from partitions.errors import SchemaError, SchemaEvolved
from partitions.path.definition import PathWatermark
from partitions.predicate import Predicate
from partitions.sources import PythonSource
from partitions.unit_values import ValueType, value_type_of
from resources.sources.evolving import FOLLOWS, changed, evolution_of
from resources.sources.files.failures import schema_mismatch_error
from resources.sources.files.pinned import PinnedSchema
from resources.sources.python.arrow_types import number_type
from resources.sources.python.batches import (
    Raw,
    WrongYield,
    fitting_schema,
    inferred_schema,
    row_count,
)
from resources.sources.python.call import FunctionCaller
from resources.sources.python.request import RowRequest
from resources.sources.schema import check_columns, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


_SAMPLE_ROWS = 10_000
_SAMPLE_BYTES = 64 * 2**20
SAMPLE_CALLS = 20
"""Calls until one yields a row that a schema is inferred from."""


class FunctionSchema:
    """The columns of a function's rows.

    Attributes:
        pinned: the schema as it is in the log; None while nothing tells it.
        columns: the same, as Spark reads it.
        remarks: which pinned columns the function does not yield any more.
        zone_name: of the zone of times that name none.
    """

    def __init__(self, dataflow: Dataflow, source: PythonSource, caller: FunctionCaller) -> None:
        """Use what the definition declares, or what a call yields."""
        self._dataflow, self._source, self._caller = dataflow, source, caller
        self._mode = dataflow.target.schema_mode
        watermark = dataflow.watermark
        self.zone_name = "UTC" if isinstance(watermark, PathWatermark) else watermark.timezone
        self.pinned: PinnedSchema | None = None
        self.columns: StructType | None = None
        self.remarks: dict[str, None] = {}

    def check(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare ``source.schema`` with what was pinned; rows are compared as they come. Errors name ``dataflow``.

        Raises:
            SchemaError: reason ``incompatible_schema``.
        """
        was = PinnedSchema.of(pinned)
        self.pinned, self.columns = was, was.struct
        if self._source.schema_ == was.declared:
            return
        declared = self._declared_in(spark)
        if declared is None or plain(declared) == was.struct:
            return
        if self._mode in FOLLOWS:
            evolution = evolution_of(self._mode, dataflow, was, plain(declared), "source.schema")
            if evolution.action != "none":
                again = replace(was, declared=self._source.schema_)
                raise self._evolved(changed(again, evolution.schema, evolution.changes, "source.schema"))
            return
        raise schema_mismatch_error(
            f"source.schema: expected the schema that was pinned ({was.struct.simpleString()}), found another ({declared.simpleString()})",
            "Put it back",
            dataflow,
            None,
        )

    def pin(self, spark: SparkSession, inferred: Callable[[], StructType | None]) -> str | None:
        """Return the declared schema as text, or the inferred one; None if nothing tells it."""
        declared = self._declared_in(spark)
        schema = inferred() if declared is None else declared
        if schema is None:
            return None
        self.columns = plain(schema)
        check_columns(self._source, self.columns)
        self.pinned = PinnedSchema(self.columns.json(), (), self._source.schema_)
        return self.pinned.to_text()

    def _declared_in(self, spark: SparkSession) -> StructType | None:
        if self._source.schema_ is None:
            return None
        return spark.createDataFrame([], self._source.schema_).schema

    @cached_property
    def declared(self) -> Mapping[str, ValueType]:
        """What columns hold, by the declared schema."""
        return {} if self._source.schema_ is None else value_types(self._source.schema_)

    @cached_property
    def _declared_columns(self) -> Mapping[str, Column]:
        """Columns of the declared schema, by name."""
        text = self._source.schema_
        return {} if text is None else {column.name: column for column in parse_ddl(text)}

    @cached_property
    def sampled(self) -> StructType | None:
        """The columns of the first rows, asked for without bounds; None if there are no rows."""
        return self.inferred([self._caller.request()])

    def inferred(self, requests: Iterable[RowRequest]) -> StructType | None:
        """Return the columns of the first request that has rows; None if none has."""
        from pyspark.sql.pandas.types import from_arrow_schema

        sample: list[Raw] = next((rows for request in requests if (rows := self._sample(request))), [])
        if not sample:
            return None
        try:
            return from_arrow_schema(inferred_schema(sample), prefer_timestamp_ntz=True)
        except WrongYield as error:
            raise SchemaError(
                f"dataflow {self._dataflow.name}: {self._source.label}: {error}", reason="incompatible_schema"
            ) from None

    def _sample(self, request: RowRequest) -> list[Raw]:
        sample: list[Raw] = []
        with closing(self._caller.batches(request)) as batches:
            for batch in batches:
                if row_count(batch):
                    sample.append(batch)
                if _is_enough(sample):
                    break
        return sample

    def with_all(self, batch: Raw, schema: pa.Schema) -> Raw:
        """A batch with NULL for columns that it lacks, in a mode in which the source may lose some."""
        import pyarrow as pa

        if self._mode not in FOLLOWS or isinstance(batch, list):
            return batch
        missing = set(schema.names) - set(batch.column_names)
        if missing:
            names = ", ".join(sorted(missing))
            self.remarks[f"{self._source.label} yields no {names} any more: NULL in these rows"] = None
        for name in missing:
            batch = batch.append_column(name, pa.nulls(len(batch), schema.field(name).type))
        return batch

    def follow(self, batch: Raw, schema: pa.Schema) -> None:
        """Raise SchemaEvolved if the schema mode accepts what a batch has beside the pinned columns; SchemaError if it accepts none of it."""
        if self._mode not in FOLLOWS or self.pinned is None:
            return
        from pyspark.sql.pandas.types import from_arrow_schema

        try:
            fields = fitting_schema(batch, schema, self.zone_name)
        except SchemaError:
            return  # the batch's own error says more
        incoming = from_arrow_schema(fields, prefer_timestamp_ntz=True)
        evolution = evolution_of(self._mode, self._dataflow.name, self.pinned, incoming, self._source.label)
        if evolution.action != "none":
            raise self._evolved(changed(self.pinned, evolution.schema, evolution.changes, self._source.label))

    def _evolved(self, evolved: SchemaEvolved) -> SchemaEvolved:
        """Fetch with the new columns from here on."""
        self.pinned = PinnedSchema.of(evolved.pinned)
        self.columns = self.pinned.struct
        return evolved

    def type_of(self, column: str, rows: Predicate) -> pa.DataType | None:
        """The type of a column by the declared schema, or by the bounds that it is compared with; None for numbers of no declared type, which compare as they are."""
        import pyarrow as pa

        if (declared := number_type(self._declared_columns.get(column))) is not None:
            return declared

        ranges = [range_ for range_ in ranges_of(rows) if range_.column == column]
        bounds = [bound for range_ in ranges for bound in (range_.lower, range_.upper) if bound is not None]
        kind = self.declared.get(column) or (value_type_of(bounds[0]) if bounds else None)
        types: dict[ValueType | None, pa.DataType] = {
            "instant": pa.timestamp("us", "UTC"),
            "local": pa.timestamp("us"),
            "day": pa.date32(),
            "text": pa.string(),
        }
        return types.get(kind)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return a schema of Spark as one of Arrow."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema)


def _is_enough(sample: Sequence[Raw]) -> bool:
    size = sum(batch.nbytes for batch in sample if not isinstance(batch, list))
    return sum(map(row_count, sample)) >= _SAMPLE_ROWS or size >= _SAMPLE_BYTES
