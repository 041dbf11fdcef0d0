"""The rows that a user's own asset returned, ready to be written into its table by Spark.

Rows of Spark stay with Spark. All others are staged as Parquet files, with values that are exactly those
of the frame (docs/reference/dagster.md, Your own assets).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import RowsRefused, SchemaError
from partitions.evolution import SchemaChange, schema_changes
from partitions.loads import Replace
from partitions.predicate import Predicate
from partitions.schema_types import Schema, all_nullable, plain_type, widens
from partitions.unit_values import ValueType
from resources.dagster.frames import ReturnedRows, is_spark_frame, returned_rows
from resources.dialects.arrow import arrow_expression
from resources.sources.python.batches import cast_to, inferred_schema
from resources.sources.python.yielded import InvalidYield
from resources.sources.schema import value_types_of
from resources.spark.frames import read_once
from resources.spark.process import error_line
from resources.sql import quoted
from resources.staging import Staging
from resources.tables.rows.replacement import is_outside

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_REMEDY = (
    "Give the column a type in the asset's metadata strandline/schema, or in the frame with astype or cast"
)


@dataclass(frozen=True)
class PartitionRows:
    """The rows of the partitions of a run.

    Attributes:
        where: over the columns of the rows.
        columns: the columns that tell the partition of a row.
        text: the partitions, for people.
    """

    where: Predicate
    columns: Sequence[str]
    text: str


FindPartitions = Callable[[Mapping[str, ValueType]], PartitionRows | None]
"""Returns the rows that the run may store, by the types of their columns; None: any row."""


@dataclass(frozen=True)
class AssetRows:
    """Rows that may be written several times, each time the same ones.

    Attributes:
        frame: returns them.
        partitions: the partitions that they belong to; None: they are the whole table.
    """

    frame: Callable[[], DataFrame]
    partitions: PartitionRows | None


@contextmanager
def open_rows(
    value: object,
    what: str,
    *,
    table: Schema | None,
    declared: str | None = None,
    find_partitions: FindPartitions,
    zone: str,
    staging: Staging,
    session: Callable[[], SparkSession],
) -> Iterator[AssetRows]:
    """Yield the rows of a value that an asset returned; they exist inside the block.

    Args:
        value: what the asset returned.
        what: the asset, for errors.
        table: the columns of its table; None if there is no table.
        declared: Spark's DDL of columns whose type the user has set; None: no column.
        find_partitions: returns the partitions of the run.
        zone: the zone of times without one, in columns of instants.
        staging: where rows are staged that Spark does not have.
        session: starts Spark.

    Raises:
        ConfigurationError: no table can hold values of this type, or a column cannot tell the partition.
        RowsRefused: a value, a column or a row does not fit; nothing was written.
    """
    types = _declared_types(session(), declared) if declared is not None else None
    if is_spark_frame(value):
        session()  # says what Spark lacks for the table
        _check_declared(value, types, what)
        yield _rows_of_spark(value, what, table, find_partitions)
        return
    with staging.emptied(), closing(returned_rows_of(value, what)) as rows:
        yield _StagedRows(what, table, types, zone, staging, session).stage(rows, find_partitions)


def _declared_types(session: SparkSession, ddl: str) -> StructType:
    columns: StructType = session.createDataFrame([], ddl).schema
    return columns


def _check_declared(frame: Any, declared: StructType | None, what: str) -> None:
    """Raise if a Spark frame lacks a declared column, or has it with another type."""
    own = {field.name.casefold(): field.dataType.simpleString() for field in frame.schema}
    for field in declared or ():
        expected, existing = field.dataType.simpleString(), own.get(field.name.casefold())
        if existing != expected:
            raise RowsRefused(
                f"{what}: expected the column {field.name} {expected}, as its metadata strandline/schema says, found"
                f" {existing or 'no such column'}. Nothing was stored. Cast it in the asset, or correct the metadata"
            )


def returned_rows_of(value: object, what: str) -> ReturnedRows:
    """Return the rows of a value that needs no Spark.

    Raises:
        ConfigurationError: no table can hold values of this type.
        RowsRefused: its values have no types.
    """
    try:
        return returned_rows(value, what)
    except InvalidYield as error:
        raise RowsRefused(f"{what}: {error}. Nothing was stored. {_REMEDY}") from error


def _rows_of_spark(value: Any, what: str, table: Schema | None, find_partitions: FindPartitions) -> AssetRows:
    schema = all_nullable(value.schema.jsonValue())
    partitions = find_partitions(value_types_of(schema))
    if partitions is None:
        return AssetRows(lambda: value, None)
    check_columns(schema, table, what)
    try:
        # The rows are read twice, and a second evaluation could return others.
        rows = read_once(value)
        outside = rows.where(is_outside(Replace(partitions.where))).select(*map(quoted, partitions.columns))
        examples = outside.limit(1).collect()
    except Exception as error:
        raise RowsRefused(
            f"{what}: Spark cannot compute its rows: {error_line(error).rstrip('.')}. Nothing was stored. Correct "
            "the query in the asset"
        ) from error
    if examples:
        raise _outside_error(what, partitions, examples[0].asDict())
    return AssetRows(lambda: rows, partitions)


@dataclass(frozen=True)
class _StagedRows:
    """Stages the rows of one value; see :func:`open_rows`."""

    what: str
    table: Schema | None
    declared: StructType | None
    zone: str
    staging: Staging
    session: Callable[[], SparkSession]

    def stage(self, rows: ReturnedRows, find_partitions: FindPartitions) -> AssetRows:
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = self._schema(rows, keeps_types=False)
        partitions = find_partitions(value_types_of(_as_json(schema)))
        if partitions is not None and self.table is not None:
            schema = self._schema(rows, keeps_types=True)
            check_columns(_as_json(schema), self.table, self.what)
            partitions = find_partitions(value_types_of(_as_json(schema)))
        urls = self._stage(rows, schema, partitions)
        columns = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        return AssetRows(lambda: self.session().read.schema(columns).parquet(*urls), partitions)

    def _stage(self, rows: ReturnedRows, schema: pa.Schema, partitions: PartitionRows | None) -> list[str]:
        inside = arrow_expression(partitions.where, schema) if partitions is not None else None
        with self.staging.batches("rows", schema) as staged:
            for batch in rows.batches:
                try:
                    fitted = cast_to(batch, schema, self.zone)
                except SchemaError as error:
                    raise RowsRefused(
                        f"{self.what}: {error.message}. Nothing was stored. Convert the column in the asset"
                    ) from error
                if partitions is not None and fitted.filter(inside).num_rows < fitted.num_rows:
                    raise self._outside_error(fitted, partitions)
                staged.write(fitted)
        return [self.staging.folder.child(file.path).spark_url for file in staged.files]

    def _outside_error(self, rows: pa.Table, partitions: PartitionRows) -> RowsRefused:
        import pyarrow.compute as pc

        inside = pc.coalesce(arrow_expression(partitions.where, rows.schema), pc.scalar(False))
        outside = rows.filter(~inside).select(partitions.columns).slice(0, 1)
        return _outside_error(self.what, partitions, outside.to_pylist()[0])

    def _schema(self, rows: ReturnedRows, *, keeps_types: bool) -> pa.Schema:
        """Return the columns of the rows, as the table gets them.

        Args:
            rows: the rows.
            keeps_types: whether columns keep their type in the table, unless that of the rows is wider.
        """
        sample = list(rows.batches) if rows.schema is None else [rows.schema.empty_table()]
        known_types = self._table_types | self._declared_types
        if not any(batch.column_names if hasattr(batch, "column_names") else batch for batch in sample):
            if self.table is None:
                raise RowsRefused(
                    f"{self.what}: expected rows with columns, found neither rows nor columns, and its table "
                    "does not exist yet. Return a frame with the table's columns"
                )
            return self._whole_table
        try:
            schema = inferred_schema(sample, known_types, _REMEDY)
        except InvalidYield as error:
            raise RowsRefused(f"{self.what}: {error}. Nothing was stored") from error
        schema = self._with_declared_types(schema)
        return _with_table_types(schema, self._table_types) if keeps_types else schema

    def _with_declared_types(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns with the types that the user has set.

        Raises:
            RowsRefused: a column with a type is missing.
        """
        import pyarrow as pa

        types, names = self._declared_types, {name.casefold() for name in schema.names}
        if missing := [field.name for field in self.declared or () if field.name.casefold() not in names]:
            raise RowsRefused(
                f"{self.what}: expected the column {missing[0]}, as its metadata strandline/schema says, found"
                f" {', '.join(schema.names)}. Nothing was stored. Return the column, or correct the metadata"
            )
        return pa.schema([(field.name, types.get(field.name.casefold(), field.type)) for field in schema])

    @property
    def _declared_types(self) -> dict[str, pa.DataType]:
        if self.declared is None:
            return {}
        from pyspark.sql.pandas.types import to_arrow_schema

        return {field.name.casefold(): field.type for field in to_arrow_schema(self.declared)}

    @property
    def _whole_table(self) -> pa.Schema:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        return (
            to_arrow_schema(StructType.fromJson(dict(self.table)))
            if self.table is not None
            else pa.schema([])
        )

    @property
    def _table_types(self) -> dict[str, pa.DataType]:
        return {field.name.casefold(): field.type for field in self._whole_table}


def check_columns(rows: Schema, table: Schema | None, what: str) -> None:
    """Raise if rows that replace a part of a table would lose columns of it, or do not fit them.

    Raises:
        RowsRefused: names the columns.
    """
    if table is None:
        return
    misfits = [change for change in schema_changes(all_nullable(table), all_nullable(rows)) if _loses(change)]
    if misfits:
        raise RowsRefused(
            f"{what}: expected the columns of its table, since a partition replaces a part of it, found "
            f"others: {'; '.join(map(str, misfits))}. Nothing was stored. Return these columns as the table "
            "has them (NULL where there is no value); or start another table: name it in the asset's "
            "metadata strandline/table"
        )


def _loses(change: SchemaChange) -> bool:
    if change.new_type is None:
        return True
    return change.old_type is not None and not (change.widens or change.narrows)


def _with_table_types(schema: pa.Schema, table_types: Mapping[str, pa.DataType]) -> pa.Schema:
    import pyarrow as pa

    fields = []
    for field in schema:
        table_type = table_types.get(field.name.casefold(), field.type)
        is_nested = pa.types.is_nested(field.type) or pa.types.is_nested(table_type)
        own, of_table = (_json_type(data_type) for data_type in (field.type, table_type))
        keeps = plain_type(own) == plain_type(of_table) if is_nested else not widens(of_table, own)
        fields.append(pa.field(field.name, table_type if keeps else field.type))
    return pa.schema(fields)


def _json_type(data_type: pa.DataType) -> Any:
    import pyarrow as pa

    return _as_json(pa.schema([("value", data_type)]))["fields"][0]["type"]


def _as_json(schema: pa.Schema) -> Schema:
    from pyspark.sql.pandas.types import from_arrow_schema

    columns: Schema = json.loads(from_arrow_schema(schema, prefer_timestamp_ntz=True).json())
    return columns


def _outside_error(what: str, partitions: PartitionRows, example: Mapping[str, Any]) -> RowsRefused:
    values = ", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in example.items())
    return RowsRefused(
        f"{what}: expected rows of {partitions.text} alone, found rows outside, such as {values}. "
        "Nothing was stored. Return only rows of the run's partitions",
        code="rows_outside",
    )
