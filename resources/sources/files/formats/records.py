"""Records that do not parse: Spark gives the text of each in a column of its own, beside what it could read of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.path.source import SourceFile
from resources.sources.files.fields import RECORD
from resources.sources.files.formats.format import CORRUPT, FormatReader
from resources.sources.files.paths import spellings
from resources.sources.files.pinned import PinnedSchema
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MOST_RECORDS = 10_000
"""Of a document that are looked at one by one."""


class Corrupt(NamedTuple):
    """A record that Spark could not read.

    Attributes:
        path: of its file.
        text: of the record.
        parsed: what Spark made of it: NULL if it could not read a field.
        schema: that it was read with.
    """

    path: str
    text: str
    parsed: Mapping[str, Any]
    schema: StructType


def corrupt_records(
    form: FormatReader, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
) -> Iterator[Corrupt]:
    """Yield a record that does not parse of each file that has one."""
    from pyspark.sql import functions as F

    for group, schema in read_alike(form, files, pinned):
        frame = _permissive(form, spark, group, schema)
        path = form.scanner.path_of(group)
        # Other columns go along: Spark refuses to select that one alone.
        bad = frame.filter(F.col(quoted(CORRUPT)).isNotNull()).groupBy(path.alias("path"))
        for row in bad.agg(F.first(F.struct("*")).alias("row")).collect():
            parsed = row["row"].asDict(recursive=True)
            text = parsed.pop(CORRUPT)
            yield Corrupt(row["path"], text, parsed, schema)


def all_corrupt_records(
    form: FormatReader, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema, most: int
) -> list[Corrupt]:
    """Return the records that do not parse, at most so many, in the order of the files."""
    from pyspark.sql import functions as F

    found: list[Corrupt] = []
    for group, schema in read_alike(form, [file for file in files if file.size > 0], pinned):
        frame = _permissive(form, spark, group, schema)
        path = form.scanner.path_of(group)
        bad = frame.filter(F.col(quoted(CORRUPT)).isNotNull())
        for row in bad.select(path.alias("path"), F.struct("*").alias("row")).limit(most).collect():
            parsed = row["row"].asDict(recursive=True)
            found.append(Corrupt(row["path"], parsed.pop(CORRUPT), parsed, schema))
    order = {file.path: number for number, file in enumerate(files)}
    return sorted(found, key=lambda corrupt: order[corrupt.path])[:most]


def corrupt_files(
    form: FormatReader, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
) -> Iterator[tuple[SourceFile, StructType]]:
    """Yield files with a record that does not parse, where its text would be that of the whole file; with the schema that they were read with."""
    from pyspark.sql import functions as F

    for group, schema in read_alike(form, files, pinned):
        frame = _permissive(form, spark, group, schema)
        path = form.scanner.path_of(group).alias("path")
        any_column = F.first(F.struct(*map(quoted, schema.names))).alias("row")
        rows = frame.filter(F.col(quoted(CORRUPT)).isNotNull()).groupBy(path).agg(any_column).collect()
        bad = {row["path"] for row in rows}
        yield from ((file, schema) for file in group if file.path in bad)


def rows_of(
    form: FormatReader, spark: SparkSession, file: SourceFile, schema: StructType
) -> list[dict[str, Any]]:
    """Return what Spark makes of the first records of a file, in their order."""
    rows = form.scan(spark, [file], schema, mode="PERMISSIVE").limit(_MOST_RECORDS).collect()
    return [row.asDict(recursive=True) for row in rows]


def first_corrupt(
    form: FormatReader, spark: SparkSession, file: SourceFile, schema: StructType
) -> tuple[int, dict[str, Any]]:
    """Return the number of a file's first record that does not parse, from 1, and what Spark made of it."""
    from pyspark.sql import functions as F

    number, is_corrupt = 0, F.col(quoted(CORRUPT)).isNotNull()
    frame = _permissive(form, spark, [file], schema)
    record = F.when(is_corrupt, F.struct(*map(quoted, schema.names)))
    for number, row in enumerate(frame.select(is_corrupt, record).toLocalIterator(), 1):
        if row[0]:
            return number, row[1].asDict(recursive=True)
    return number, {}


def read_alike(
    form: FormatReader, files: Sequence[SourceFile], pinned: PinnedSchema
) -> Iterator[tuple[list[SourceFile], StructType]]:
    """Yield files that go into one scan, with the columns that stand in them."""
    schemas = form.schemas(files, pinned.data)
    apart: dict[tuple[str, str], list[SourceFile]] = {}
    for file in files:
        own = schemas.get(file.path)
        apart.setdefault((form.apart(file.path), "" if own is None else own.json()), []).append(file)
    for alike in apart.values():
        for group in form.scanner.together(alike):
            data = pinned.beside(spellings(file.path for file in group)).data
            yield group, schemas.get(group[0].path, data)


def _permissive(
    form: FormatReader, spark: SparkSession, files: Sequence[SourceFile], schema: StructType
) -> DataFrame:
    from pyspark.sql.types import StringType, StructField, StructType, VariantType

    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    if form.rescues and form.READER == "json":  # a value that does not fit makes no bad record
        whole = StructType([StructField(RECORD, VariantType()), StructField(CORRUPT, StringType())])
        return form.scan(spark, files, whole, singleVariantColumn=RECORD, **options)
    wide = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    return form.scan(spark, files, wide, **options)
