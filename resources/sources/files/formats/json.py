"""JSON: an object a line (ndjson), or a document a file (json)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from partitions.api.values import kind_of_values
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.sources.formats import Option
from resources.sources.files.failures import bad_encoding
from resources.sources.files.fields import RECORD
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.records import (
    all_corrupt_records,
    corrupt_files,
    corrupt_records,
    rows_of,
)
from resources.sources.files.formats.variants import (
    columns_of_records,
    names_in_records,
    unknown_in_records,
    wider_numbers,
)
from resources.sources.files.lines import (
    Lines,
    line_of,
    line_with_field,
    undecodable_line,
    whole_text,
)
from resources.sources.files.misfit import BadRecord, misfit_in_document, misfit_in_object
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import rescued_records
from resources.sources.files.scan import Scanner
from resources.sources.schema import time_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_LOOKED_AT = 10_000
"""Records of a sample whose texts say whether a column holds times."""


class _Json(FormatReader):
    READER: ClassVar[str] = "json"

    def unknown_fields(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, list[str]]:
        """Parse all records once for it."""
        return unknown_in_records(self, spark, files, pinned)

    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Look at all records."""
        return names_in_records(self, spark, files, names)

    def other_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, StructType]:
        """Look for fields that are not pinned; only files that have some are read for their types."""
        return columns_of_records(self, spark, files, pinned)

    def wider_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Read the files with the widest whole numbers that they hold."""
        return wider_numbers(self, spark, files, pinned)

    def rescue(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        own: StructType | None,
        data: StructType,
        scanner: Scanner,
    ) -> DataFrame:
        """Parse each record once as it is, and once with the pinned columns."""
        from pyspark.sql.types import StructField, StructType, VariantType

        spark.conf.set("spark.sql.variant.allowDuplicateKeys", "true")
        schema = StructType([StructField(RECORD, VariantType())])
        records = self.scan_good(spark, files, schema, scanner, singleVariantColumn=RECORD)
        return rescued_records(records, data, {key: str(value) for key, value in self.source.options.items()})

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns that stand in these files; an error of the parser names no file, so one that is no UTF-8 is looked for."""
        try:
            inferred = super().infer(spark, files)
            return None if inferred is None else self._with_times(spark, files, inferred)
        except Exception as error:
            found = (self._undecodable(file) for file in files if "JsonParseException" in str(error))
            if (bad := next((bad for bad in found if bad is not None), None)) is not None:
                raise bad from error
            raise

    def _with_times(
        self, spark: SparkSession, files: Sequence[SourceFile], inferred: StructType
    ) -> StructType:
        """Return the schema in which columns of the watermark hold what their texts say: as texts, times in two zones would have another order."""
        from pyspark.sql.types import StructField, StructType

        named = self._dataflow.column.columns if self._dataflow.kind == "column" else ()
        texts = [
            each
            for each in inferred.fields
            if each.name in named and each.dataType.simpleString() == "string"
        ]
        if not texts:
            return inferred
        rows = self.scan(spark, files, StructType(texts)).limit(_LOOKED_AT).collect()
        types = time_types()
        found = {each.name: types.get(kind_of_values(row[each.name] for row in rows)) for each in texts}
        return StructType(
            [StructField(each.name, found.get(each.name) or each.dataType) for each in inferred.fields]
        )

    def closer(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Look at the bytes as well: what is no UTF-8 fails wherever the parser stumbles over it."""
        return super().closer(spark, file, pinned) or self._undecodable(file)

    def _undecodable(self, file: SourceFile) -> BadFile | None:
        line = undecodable_line(self.place, file.path)
        return bad_encoding(file.path, line, 'encoding: windows-1252, lineSep: "\\n"') if line else None


class NdjsonFiles(_Json):
    """An object a line."""

    def line_of_field(self, path: str, name: str) -> int | None:
        """Read the lines."""
        return line_with_field(self.place, path, name)

    def bad_records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, BadRecord]:
        """Return a line of each file that has a bad one."""
        return {
            bad.path: BadRecord(
                bad.text,
                misfit_in_object(bad.text, bad.parsed, bad.schema),
                line_of(self.place, bad.path, bad.text),
            )
            for bad in corrupt_records(self, spark, files, pinned)
        }

    def records_aside(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema, most: int
    ) -> Sequence[tuple[str, BadRecord]]:
        """Look through all lines."""
        bad = all_corrupt_records(self, spark, files, pinned, most)
        lines = Lines(self.place, [(each.path, each.text) for each in bad])
        return [
            (
                each.path,
                BadRecord(
                    each.text,
                    misfit_in_object(each.text, each.parsed, each.schema),
                    lines.next(each.path, each.text),
                ),
            )
            for each in bad
        ]


class JsonFiles(_Json):
    """An array of objects, or one object, a file."""

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """A document goes over several lines."""
        return {"multiLine": True}

    def bad_records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, BadRecord]:
        """Return the first bad one of the records in each document: Spark gives a row for each of them, in their order."""
        return {
            file.path: misfit_in_document(
                whole_text(self.place, file.path), rows_of(self, spark, file, schema), schema
            )
            for file, schema in corrupt_files(self, spark, files, pinned)
        }
