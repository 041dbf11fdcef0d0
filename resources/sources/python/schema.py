"""The columns of a function's rows, declared or inferred from its first rows, and their changes.

See docs/reference/python-functions.md.
"""

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
from partitions.predicate import Predicate
from partitions.sources import PythonSource
from partitions.unit_values import ValueType, value_type_of
from resources.sources.evolving import FOLLOWS, evolution_of, schema_evolved
from resources.sources.files.failures import schema_mismatch_error
from resources.sources.files.pinned import PinnedSchema
from resources.sources.python.arrow_types import number_type
from resources.sources.python.batches import fitting_schema, inferred_schema, row_count
from resources.sources.python.call import FunctionCaller
from resources.sources.python.request import Request
from resources.sources.python.yielded import InvalidYield, Raw
from resources.sources.schema import check_columns, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


_SAMPLE_ROWS = 10_000
_SAMPLE_BYTES = 64 * 2**20
SAMPLE_CALLS = 20
"""The most calls until one yields a row that a schema is inferred from."""


class FunctionSchema:
    """The columns of a function's rows.

    Attributes:
        pinned: the schema in the log; None while it is unknown.
        columns: the same, as Spark reads it.
        remarks: warnings about pinned columns that the function no longer yields.
        zone_name: the name of the zone of times without zone.
    """

    def __init__(self, dataflow: Dataflow, source: PythonSource, caller: FunctionCaller) -> None:
        """Use the declared schema, or the one that a call yields."""
        self._dataflow, self._source, self._caller = dataflow, source, caller
        self._mode = dataflow.target.schema_mode
        self.zone_name = dataflow.watermark.zone_name
        self.pinned: PinnedSchema | None = None
        self.columns: StructType | None = None
        self.remarks: dict[str, None] = {}

    def check(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare ``source.schema`` with the pinned schema; rows are compared on reading.

        Errors name ``dataflow``.

        Raises:
            SchemaError: reason ``incompatible_schema``.
        """
        pinned_schema = PinnedSchema.of(pinned)
        self.pinned, self.columns = pinned_schema, pinned_schema.struct
        if self._source.schema_ == pinned_schema.declared:
            return
        declared = self._declared_in(spark)
        if declared is None or plain(declared) == pinned_schema.struct:
            return
        if self._mode in FOLLOWS:
            evolution = evolution_of(
                self._mode, dataflow, self._source, pinned_schema, plain(declared), "source.schema"
            )
            if evolution.action != "none":
                redeclared = replace(pinned_schema, declared=self._source.schema_)
                raise self._evolved(
                    schema_evolved(redeclared, evolution.schema, evolution.changes, "source.schema")
                )
            return
        raise schema_mismatch_error(
            f"source.schema: expected the pinned schema ({pinned_schema.struct.simpleString()}), found a different "
            f"one ({declared.simpleString()})",
            "Restore it",
            dataflow,
            None,
        )

    def pin(self, spark: SparkSession, infer: Callable[[], StructType | None]) -> str | None:
        """Return the declared or inferred schema as text; None if it is unknown."""
        declared = self._declared_in(spark)
        schema = infer() if declared is None else declared
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
        """The data types of the declared schema's columns."""
        return {} if self._source.schema_ is None else value_types(self._source.schema_)

    @cached_property
    def _declared_columns(self) -> Mapping[str, Column]:
        """The columns of the declared schema, by name."""
        text = self._source.schema_
        return {} if text is None else {column.name: column for column in parse_ddl(text)}

    @cached_property
    def sampled_columns(self) -> StructType | None:
        """The columns of the first rows of a call without bounds; None if there are no rows."""
        return self.infer([self._caller.request()])

    def infer(self, requests: Iterable[Request]) -> StructType | None:
        """Return the columns of the first request that has rows; None if none has."""
        from pyspark.sql.pandas.types import from_arrow_schema

        sample: list[Raw] = next((rows for request in requests if (rows := self._sample(request))), [])
        if not sample:
            return None
        try:
            return from_arrow_schema(inferred_schema(sample), prefer_timestamp_ntz=True)
        except InvalidYield as error:
            raise SchemaError(
                f"dataflow {self._dataflow.name}: {self._source.label}: {error}", reason="incompatible_schema"
            ) from None

    def _sample(self, request: Request) -> list[Raw]:
        sample: list[Raw] = []
        with closing(self._caller.batches(request)) as batches:
            for batch in batches:
                if row_count(batch):
                    sample.append(batch)
                if _is_enough(sample):
                    break
        return sample

    def with_missing_columns(self, batch: Raw, schema: pa.Schema) -> Raw:
        """Return a batch with NULL for missing columns, if the mode allows the source to lose some."""
        import pyarrow as pa

        if self._mode not in FOLLOWS or isinstance(batch, list):
            return batch
        missing = set(schema.names) - set(batch.column_names)
        if missing:
            names = ", ".join(sorted(missing))
            self.remarks[f"{self._source.label} no longer yields {names}: these rows have NULL there"] = None
        for name in missing:
            batch = batch.append_column(name, pa.nulls(len(batch), schema.field(name).type))
        return batch

    def follow(self, batch: Raw, schema: pa.Schema) -> None:
        """Raise SchemaEvolved if the schema mode follows a batch's other columns, SchemaError if it cannot.

        A mode that follows no columns raises nothing here.
        """
        if self._mode not in FOLLOWS or self.pinned is None:
            return
        from pyspark.sql.pandas.types import from_arrow_schema

        try:
            fields = fitting_schema(batch, schema, self.zone_name)
        except SchemaError:
            return  # the batch's own error says more
        incoming = from_arrow_schema(fields, prefer_timestamp_ntz=True)
        evolution = evolution_of(
            self._mode, self._dataflow.name, self._source, self.pinned, incoming, self._source.label
        )
        if evolution.action != "none":
            raise self._evolved(
                schema_evolved(self.pinned, evolution.schema, evolution.changes, self._source.label)
            )

    def _evolved(self, evolved: SchemaEvolved) -> SchemaEvolved:
        """Return the error, and fetch with the new columns from here on."""
        self.pinned = PinnedSchema.of(evolved.pinned)
        self.columns = self.pinned.struct
        return evolved

    def type_of(self, column: str, rows: Predicate) -> pa.DataType | None:
        """Return a column's type from the declared schema, or from bounds it is compared with.

        None for numbers without a declared type, which compare as they are.
        """
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
    """Return a Spark schema as an Arrow schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema)


def _is_enough(sample: Sequence[Raw]) -> bool:
    size = sum(batch.nbytes for batch in sample if not isinstance(batch, list))
    return sum(map(row_count, sample)) >= _SAMPLE_ROWS or size >= _SAMPLE_BYTES
