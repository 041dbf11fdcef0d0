"""The columns of CSV: names of a header, and the first types that hold all values under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.path.source import SourceFile
from partitions.records.forms import INTEGER_BITS, Reading
from partitions.schema_merging import with_wider_integers as with_wider
from partitions.schema_merging import with_widest_integers
from partitions.schema_types import Schema
from resources.sources.files.exact_texts import is_exact
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.inferring import type_of_sample
from resources.sources.files.inferring import types_of_texts as first_types
from resources.sql import all_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class CsvColumns(FormatReader):
    """Infers the types of the values under a header."""

    def as_texts(self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]) -> DataFrame:
        """The values of files under one header, as they stand there."""
        return self.scan(spark, files, texts_of(names), mode="PERMISSIVE", enforceSchema="true")

    def types_of_sample(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Schema:
        """Return the types of the first file with a record that hold the values of all files; what is text in a later file alone changes none."""
        first = next((file for file in files if not self.as_texts(spark, [file], names).isEmpty()), files[0])
        schema = self.types_of_texts(spark, [first], names)
        return schema if len(files) == 1 else self._with_types_of_all(spark, files, names, schema)

    def _with_types_of_all(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str], first: Schema
    ) -> Schema:
        """Return the schema of the first of files with the types that hold the values of all of them; whole numbers beside a text are still as wide."""
        sample = self.types_of_texts(spark, files, names)
        fields = [
            {**field, "type": type_of_sample(field["type"], of_all["type"])}
            for field, of_all in zip(first["fields"], sample["fields"], strict=True)
        ]
        schema = {**first, "fields": fields}
        has_text = any(
            field["type"] in INTEGER_BITS and of_all["type"] == "string"
            for field, of_all in zip(fields, sample["fields"], strict=True)
        )
        return self.with_wider_integers(spark, files, names, schema) if has_text else schema

    def with_wider_integers(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str], schema: Schema
    ) -> Schema:
        """Return a schema whose whole numbers are as wide as those of files under one header."""
        return with_wider(schema, self.types_of_texts(spark, files, names, Reading.of(self.source.options)))

    def widths(
        self, spark: SparkSession, files: Sequence[SourceFile], columns: Schema, reading: Reading
    ) -> Schema:
        """Return the columns of files under one header whose whole numbers are as wide as those of the lines that fit then."""
        from pyspark.sql import functions as F

        wide = with_widest_integers(columns)["fields"]
        whole = [field["name"] for field in columns["fields"] if field["type"] in INTEGER_BITS]
        fits = all_of(
            [
                F.coalesce(is_exact(F.col(quoted(field["name"])), field["type"], reading), F.lit(True))
                for field in wide
            ]
        )
        if not whole:
            return columns
        rows = self.as_texts(spark, files, [field["name"] for field in wide]).where(fits)
        texts = [F.col(quoted(name)) for name in whole]
        types = first_types(rows, texts, self.source.options, reading, several=False)
        found = dict(zip(whole, types, strict=True))
        fields = [{**field, "type": found.get(field["name"], field["type"])} for field in columns["fields"]]
        return {**columns, "fields": fields}

    def types_of_texts(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        names: Sequence[str],
        reading: Reading | None = None,
    ) -> Schema:
        """The types that hold all values of files under one header; a column without a value is text.

        Without a reading, what only looks like a number, such as ``0012``, is text.
        """
        from pyspark.sql import functions as F

        reading = reading or Reading.of(self.source.options, inferred=True)
        rows = self.as_texts(spark, files, names)
        texts = [F.col(quoted(name)) for name in names]
        types = first_types(rows, texts, self.source.options, reading, several=False)
        fields = [
            {"name": name, "type": data_type, "nullable": True, "metadata": {}}
            for name, data_type in zip(names, types, strict=True)
        ]
        return {"type": "struct", "fields": fields}


def texts_of(names: Sequence[str]) -> StructType:
    """Return columns of texts."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([StructField(name, StringType()) for name in names])
