"""Infer the columns of JSON records with Spark, and correct them by one pass over the texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from partitions.api.values import kind_of_values
from partitions.empty_texts import with_empty_texts
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.first_types import UnclearColumns, types_of_document, types_of_lines
from partitions.records.json_decoding import MAX_LEVELS, Spellings, depth_of, find_case_conflict_in_records
from partitions.records.json_lines import JsonRule
from partitions.schema_merging import new_fields
from partitions.schema_policy import defers_types
from partitions.schema_types import Schema
from partitions.untyped_columns import without_values
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.failures import bad_document_error, bad_records_error, case_conflict_error
from resources.sources.files.formats.format import CORRUPT, FileColumns, FormatReader
from resources.sources.files.formats.json_bytes import find_decoding_error, json_encoding
from resources.sources.files.formats.variants import (
    infer_columns,
    names_in_records,
    struct_of,
    wider_numbers,
)
from resources.sources.files.json_check import bad_records_of, is_deeper
from resources.sources.files.lines import read_text
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner
from resources.sources.files.text_lines import TEXT, lines_of
from resources.sources.schema import time_types

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_LOOKED_AT = 10_000
"""The most records of a sample that are tested for times."""

_EMPTY_TEXT = r'[:\[,]\s*""'
"""A place where a value may be an empty text."""

_IN_TWO_CASES = re.compile(r"\[COLUMN_ALREADY_EXISTS\]")


class _TextFacts(NamedTuple):
    """Facts about the texts of records that Spark's inference misses.

    Attributes:
        deep: the paths of files with records nested more deeply than Spark's types can be.
        shape: the type of the records with an empty text, as ``schema_of_variant_agg`` returns it.
    """

    deep: frozenset[str]
    shape: str


class JsonColumns(FileColumns):
    """A finder of the columns of JSON records."""

    def __init__(self, form: FormatReader) -> None:
        """Store the format's reader; read nothing."""
        super().__init__(form)
        self._inspected: tuple[Sequence[SourceFile], _TextFacts] | None = None

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns of the records that can be read.

        Bad records are reported when the files are checked.

        Raises:
            BadFile: names of a file differ in case only; or no record of the files can be read.
        """
        schema = self._infer_columns(spark, files)
        if not schema.fields:
            self._refuse_unreadable(spark, files)
        return self._with_times(spark, files, self._defer_types(spark, files, schema))

    def _defer_types(
        self, spark: SparkSession, files: Sequence[SourceFile], schema: StructType
    ) -> StructType:
        """Return the schema with fields that have no value yet left untyped.

        Fields that the definition names are text; so are all fields if a step may name any.
        """
        if not defers_types(self._form.dataflow):
            return schema
        valued = self._infer_columns(spark, files, dropFieldIfAllNull="true")
        return self._form.rules.with_deferred_types(without_values(schema.jsonValue(), valued.jsonValue()))

    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the names that any record of a file has, from all records."""
        return names_in_records(self._form, spark, files, names)

    def incoming_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Return the pinned columns plus new ones from records; only files with unknown fields are read."""
        unknown = check().unknown
        columns: dict[str, StructType] = {}
        for group in self._form.scanner.scan_groups([file for file in files if file.path in unknown]):
            columns[group[0].path] = struct_of(
                new_fields(json.loads(pinned.columns), infer_columns(self._form, spark, group))
            )
        return columns

    def wider_integers(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Return the pinned columns with wide enough integers, from all records."""
        return wider_numbers(self._form, spark, files, pinned)

    def infer_by_spark(self, spark: SparkSession, files: Sequence[SourceFile], **changes: str) -> StructType:
        """Return the columns that Spark's reader infers, without records that it cannot infer.

        Spark fails at records nested too deeply, and at names that are one column.

        Raises:
            BadFile: such a record is part of a document, or was staged.
        """
        deep, _ = self._inspect(spark, files)
        # Copies of staged rows would overwrite them: both lie in the staging folder.
        is_staged = self._form.place.url.startswith(self._form.staging.place.url)
        if self._form.READS_DOCUMENTS or is_staged:
            for file in files:
                if file.path in deep:
                    raise self._depth_error(file.path)
            return super().infer_by_spark(spark, files, **changes)
        if deep:
            return self._columns_without(spark, files, self._lines_without_types(spark, files), **changes)
        try:
            return super().infer_by_spark(spark, files, **changes)
        except Exception as error:
            if _IN_TWO_CASES.search(str(error)) is None:
                raise
            lines = self._lines_without_types(spark, files)
            if not lines:
                raise
            return self._columns_without(spark, files, lines, **changes)

    def _columns_without(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        lines: Mapping[str, Collection[str]],
        **changes: str,
    ) -> StructType:
        """Return the columns that Spark infers from copies without these lines, given by path."""
        with self._form.staging.emptied():
            self._form.copies.write_copies(
                {file: lines.get(file.path, ()) for file in files}, self._form.header_line
            )
            return self._form.scan(spark, files, None, Scanner(self._form.staging.folder), **changes).schema

    def _lines_without_types(
        self, spark: SparkSession, files: Sequence[SourceFile]
    ) -> Mapping[str, Collection[str]]:
        """Return the records for which Spark cannot infer columns, by the path of their file.

        Records with the first spelling of a name are kept, those with another one are not.
        """
        from pyspark.sql import functions as F

        spellings = Spellings()
        lines: dict[str, set[str]] = {}
        text = F.try_validate_utf8(F.col(TEXT))
        for file in files:  # in their order, which one scan of several files does not keep
            rows = lines_of(spark, self._form.scanner, [file], self._form.own_options).select(
                text.alias(TEXT)
            )
            for row in rows.where(F.col(TEXT).isNotNull()).toLocalIterator():
                if not spellings.add_record(row[TEXT]):
                    lines.setdefault(file.path, set()).add(row[TEXT])
        return lines

    def _inspect(self, spark: SparkSession, files: Sequence[SourceFile]) -> _TextFacts:
        """Inspect the texts of all records once for what Spark's inference misses; keep the last result."""
        from pyspark.sql import functions as F

        if self._inspected is None or self._inspected[0] != tuple(files):
            text_options = {"wholetext": "true"} if self._form.READS_DOCUMENTS else {}
            texts = [
                lines_of(spark, self._form.scanner, group, self._form.own_options, **text_options).select(
                    self._form.scanner.path_of(group).alias("path"), TEXT
                )
                for group in self._form.scanner.scan_groups(files)
            ]
            text = F.col(TEXT)
            record = F.try_parse_json(F.ltrim(text, F.lit("\ufeff")))
            inspected_texts = reduce(lambda rows, more: rows.union(more), texts).withColumn(
                "is_deep", is_deeper(text, MAX_LEVELS)
            )
            (row,) = inspected_texts.agg(
                F.collect_set(F.when(F.col("is_deep"), F.col("path"))).alias("deep"),
                F.schema_of_variant_agg(F.when(text.rlike(_EMPTY_TEXT) & ~F.col("is_deep"), record)).alias(
                    "shape"
                ),
            ).collect()
            self._inspected = (tuple(files), _TextFacts(frozenset(row["deep"]), row["shape"]))
        return self._inspected[1]

    def _depth_error(self, path: str) -> BadFile:
        text = read_text(self._form.place, path, json_encoding(self._form.source))
        lines = [text] if self._form.READS_DOCUMENTS else text.splitlines()
        number, levels = next(
            (
                (number, levels)
                for number, line in enumerate(lines, 1)
                if (levels := depth_of(line)) > MAX_LEVELS
            ),
            (1, MAX_LEVELS + 1),
        )
        where = "" if self._form.READS_DOCUMENTS else f"line {number}: "
        return bad_document_error(
            path,
            f"{where}expected objects and arrays at most {MAX_LEVELS} levels deep where types are inferred, found "
            f"{levels}: declare source.schema, with the deep field as string or variant",
        )

    def _infer_columns(self, spark: SparkSession, files: Sequence[SourceFile], **options: str) -> StructType:
        from pyspark.sql.types import StructType

        try:
            schema = self.infer_by_spark(
                spark, files, mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT, **options
            )
        except Exception as error:
            if "JsonParseException" in str(error):  # of bytes that are no text, whatever the mode
                bad = next(
                    (
                        bad
                        for file in files
                        if (bad := find_decoding_error(self._form, file.path)) is not None
                    ),
                    None,
                )
                if bad is not None:
                    raise bad from error
            if _IN_TWO_CASES.search(str(error)) is None:
                raise
            return self._infer_columns(spark, self._files_spelled_alike(spark, files, error), **options)
        inferred = StructType([field for field in schema.fields if field.name != CORRUPT])
        return struct_of(self.with_empty_texts(spark, files, inferred.jsonValue()))

    def with_empty_texts(self, spark: SparkSession, files: Sequence[SourceFile], schema: Schema) -> Schema:
        """Add the types of records with an empty text, if there are any; skip records that cannot be read."""
        return with_empty_texts(schema, self._inspect(spark, files).shape)

    def _files_spelled_alike(
        self, spark: SparkSession, files: Sequence[SourceFile], error: Exception
    ) -> Sequence[SourceFile]:
        """Return the files that spell names as the files before them.

        The other files are reported when they are checked.

        Raises:
            BadFile: a file spells a name in two ways, or an object of it has a name twice.
        """
        if len(files) == 1:
            two_spellings = find_case_conflict_in_records(
                read_text(self._form.place, files[0].path, json_encoding(self._form.source))
            )
            if two_spellings is None:
                self._refuse_unreadable(spark, files)
                raise error
            raise case_conflict_error(files[0].path, *two_spellings) from error
        spellings: dict[str, str] = {}
        files_spelled_alike: list[SourceFile] = []
        for file in files:
            names = self._infer_columns(spark, [file]).names
            if all(spellings.get(name.casefold(), name) == name for name in names):
                spellings |= {name.casefold(): name for name in names}
                files_spelled_alike.append(file)
        if len(files_spelled_alike) == len(files):
            raise error
        return files_spelled_alike

    def _refuse_unreadable(self, spark: SparkSession, files: Sequence[SourceFile]) -> None:
        """Raise BadFile for the first file without a readable record."""
        rule = JsonRule.of(None, True)
        for file in files:
            if (bad := find_decoding_error(self._form, file.path)) is not None:
                raise bad
            text = read_text(self._form.place, file.path, json_encoding(self._form.source))
            fault, items = (
                rule.judge_document(text) if self._form.READS_DOCUMENTS else (None, rule.judge_lines(text))
            )
            if fault is not None:
                raise bad_document_error(file.path, fault.reason)
            if items:
                raise bad_records_error(
                    file.path, bad_records_of(items), show=self._form.dataflow.show_bad_records
                )
            if file.path in self._inspect(spark, files).deep:
                raise self._depth_error(file.path)
            if (two_spellings := find_case_conflict_in_records(text)) is not None:
                raise case_conflict_error(file.path, *two_spellings)
            if (why := _explain_no_fields(text, documents=self._form.READS_DOCUMENTS)) is not None:
                raise bad_document_error(file.path, why)

    def _with_times(
        self, spark: SparkSession, files: Sequence[SourceFile], inferred: StructType
    ) -> StructType:
        """Return the schema with time types for watermark columns whose texts are times.

        As texts, times in two zones would sort wrongly.
        """
        from pyspark.sql.types import StructField, StructType

        watermark_columns = self._form.dataflow.watermark.value_columns
        texts = [
            column
            for column in inferred.fields
            if column.name in watermark_columns and column.dataType.simpleString() == "string"
        ]
        if not texts:
            return inferred
        rows = self._form.scan(spark, files, StructType(texts), mode="PERMISSIVE").limit(_LOOKED_AT).collect()
        types = time_types()
        times = {column.name: types.get(kind_of_values(row[column.name] for row in rows)) for column in texts}
        return StructType(
            [
                StructField(column.name, times.get(column.name) or column.dataType)
                for column in inferred.fields
            ]
        )


def _explain_no_fields(text: str, *, documents: bool) -> str | None:
    """Return why Spark finds no field in valid JSON; None if there simply is none."""
    try:
        types = types_of_document(text) if documents else types_of_lines(text)
    except UnclearColumns as fault:
        return str(fault) if fault.effect == "bad" else None
    return "Spark reads none of its records" if types.columns else None
