"""Find fields beside the pinned columns, by parsing records as variants.

docs/explanation/adr/0012 has the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from partitions.errors import SchemaError
from partitions.path.source import SourceFile
from partitions.schema_merging import new_fields, with_widest_integers
from partitions.schema_types import Schema
from resources.sources.files.fields import RECORD, find_top_level_names
from resources.sources.files.formats.format import CORRUPT, FormatReader
from resources.sources.files.formats.scan_groups import group_for_scans
from resources.sources.files.pinned import PinnedSchema
from resources.spark.settings import temporary_settings
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


def case_sensitive_names(spark: SparkSession) -> AbstractContextManager[None]:
    """Make Spark distinguish names by case until the block ends; otherwise it would merge their values."""
    return temporary_settings(spark, {"spark.sql.caseSensitive": "true"})


_TWICE = re.compile(r"\[COLUMN_ALREADY_EXISTS\][^`]*`([^`]+)`")


def names_in_records(
    form: FormatReader, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Return the names, of a given list, that any record of a file has: case-folded, by path."""
    names_by_path: dict[str, frozenset[str]] = {}
    for records, path in _as_variants(form, spark, files):
        names_by_path |= find_top_level_names(records, path, names)
    return names_by_path


def _as_variants(
    form: FormatReader, spark: SparkSession, files: Sequence[SourceFile]
) -> Iterator[tuple[DataFrame, Column]]:
    """Yield the records of files as variants, and the column with each record's path."""
    from pyspark.sql.types import StringType, StructField, StructType, VariantType

    schema = StructType([StructField(RECORD, VariantType()), StructField(CORRUPT, StringType())])
    options = {
        "singleVariantColumn": RECORD,
        "mode": "PERMISSIVE",  # the load reports records that do not parse
        "columnNameOfCorruptRecord": CORRUPT,
    }
    # Accept a name that occurs twice: the reader takes its last value. The check for such names must run without this setting.
    with temporary_settings(spark, {"spark.sql.variant.allowDuplicateKeys": "true"}):
        for group in form.scanner.scan_groups([file for file in files if file.size > 0]):
            yield form.scan(spark, group, schema, **options), form.scanner.path_of(group)


def columns_of_records(
    form: FormatReader,
    spark: SparkSession,
    files: Sequence[SourceFile],
    pinned: PinnedSchema,
    prefix: str,
) -> dict[str, StructType]:
    """Return the pinned columns plus new ones from records, by the path of the first file of each scan.

    A field without a value in any record gets no type, which loses nothing.
    """
    columns: dict[str, StructType] = {}
    for group in form.scanner.scan_groups(files):
        record_schema = infer_columns(form, spark, group)
        pinned_columns = json.loads(pinned.columns)
        columns[group[0].path] = struct_of(
            _with_attributes(new_fields(pinned_columns, record_schema), record_schema, prefix)
        )
    return columns


def _with_attributes(schema: Schema, record_schema: Schema, prefix: str) -> Schema:
    """Return the schema with objects for simple columns whose elements have attributes.

    Schema evolution then reports the change, instead of dropping the attributes.
    """
    types = {field["name"]: field["type"] for field in record_schema["fields"]}

    def type_of(field: Mapping[str, Any]) -> Any:
        record_type = types.get(field["name"])
        item = (
            record_type["elementType"]
            if isinstance(record_type, dict) and record_type["type"] == "array"
            else record_type
        )
        inner = item["fields"] if isinstance(item, dict) and item["type"] == "struct" else []
        has_attributes = prefix and any(part["name"].startswith(prefix) for part in inner)
        return record_type if isinstance(field["type"], str) and has_attributes else field["type"]

    return {**schema, "fields": [{**field, "type": type_of(field)} for field in schema["fields"]]}


def wider_numbers(
    form: FormatReader, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
) -> StructType | None:
    """Return the pinned columns with wider types for integers that do not fit; None if all fit.

    Skips records that no wider type takes.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    wider: dict[str, DataType] = {}
    for group, data in group_for_scans(form, [file for file in files if file.size > 0], pinned):
        wide = struct_of(with_widest_integers(data.jsonValue()))
        pairs = [
            (pinned_field, wide_field)
            for pinned_field, wide_field in zip(data.fields, wide.fields, strict=True)
            if pinned_field != wide_field
        ]
        if not pairs:
            continue
        corrupt = StructField(CORRUPT, StringType())
        rows = form.scan_rows(
            spark,
            group,
            StructType([*wide.fields, corrupt]),
            mode="PERMISSIVE",
            columnNameOfCorruptRecord=CORRUPT,
        ).where(F.col(CORRUPT).isNull())
        are_lost = [
            F.bool_or(
                ~F.expr(
                    f"{quoted(wide_field.name)} <=> cast(try_cast({quoted(wide_field.name)} AS {pinned_field.dataType.simpleString()}) AS {wide_field.dataType.simpleString()})"
                )
            ).alias(f"c{number}")
            for number, (pinned_field, wide_field) in enumerate(pairs)
        ]
        (row,) = rows.agg(*are_lost).collect()
        wider |= {
            wide_field.name: wide_field.dataType
            for number, (_, wide_field) in enumerate(pairs)
            if row[number]
        }
    if not wider:
        return None
    return StructType(
        [
            StructField(field.name, wider.get(field.name, field.dataType), field.nullable)
            for field in pinned.struct.fields
        ]
    )


def infer_columns(form: FormatReader, spark: SparkSession, files: Sequence[SourceFile]) -> Schema:
    """Return the columns that records have a value for; skip records that do not parse.

    Raises:
        SchemaError: names differ in case only.
    """
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
        "dropFieldIfAllNull": "true",
    }
    try:
        columns: dict[str, Any] = form.columns.infer_by_spark(spark, files, **options).jsonValue()
    except Exception as error:
        if (match := _TWICE.search(str(error))) is None:
            raise
        raise SchemaError(
            f"column {match[1]}: expected a unique name, found others that differ from it in upper and lower case "
            "only",
            reason="incompatible_schema",
            field=match[1],
        ) from error
    schema = {**columns, "fields": [field for field in columns["fields"] if field["name"] != CORRUPT]}
    return form.columns.with_empty_texts(spark, files, schema) or schema


def struct_of(schema: Schema) -> StructType:
    """Return Spark's type for a schema in its JSON form."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(dict(schema))
