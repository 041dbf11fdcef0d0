"""A closer look at files: unknown fields, open quotes, records that do not parse, headers (docs/guide-files.md, Bad files)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.path.source import SourceFile
from resources.sources.files.fields import RECORD, unknown_fields
from resources.sources.files.footers import FooterCache, paths_of, unknown_columns
from resources.sources.files.lines import first_line, whole_text
from resources.sources.files.misfit import BadRecord, misfit, misfit_in, values_of
from resources.sources.files.nanoseconds import shown
from resources.sources.files.paths import separator_of, spellings
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_CORRUPT = "_corrupt_record"
_OWN_QUOTES = frozenset({"quote", "escape", "comment", "linesep"})
"""Options of CSV, in lower case, with which a line and its quotes are something else."""
_MOST_RECORDS = 10_000
"""Of a document that are looked at one by one."""


class FileInspector:
    """Looks at files under a root."""

    def __init__(self, scanner: Scanner, footers: FooterCache) -> None:
        """Use what scans the files, and what their footers say."""
        self._scanner, self._footers = scanner, footers
        self._place, self._source = scanner.place, scanner.source

    def unknown(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> dict[str, list[str]]:
        """The fields of these files that the pinned schema lacks, dotted, by the path of each file that has some.

        Of JSON all records are parsed once for it, and the fields of one record of a file are told; of Parquet the footers are read. A CSV
        file's header is compared by Spark, when the file is loaded.
        """
        if self._source.format == "parquet":
            known = paths_of(pinned.struct)
            unknown_of = {
                path: unknown_columns(footer, known) for path, footer in self._footers.read(files).items()
            }
            return {path: [shown(each) for each in names] for path, names in unknown_of.items() if names}
        if self._source.format not in ("ndjson", "json"):
            return {}
        from pyspark.sql.types import StringType, StructField, StructType, VariantType

        # A name that is there twice is no reason to look away: the reader takes its last value.
        spark.conf.set("spark.sql.variant.allowDuplicateKeys", "true")
        schema = StructType([StructField(RECORD, VariantType()), StructField(_CORRUPT, StringType())])
        options = {
            "singleVariantColumn": RECORD,
            "mode": "PERMISSIVE",  # what does not parse is told when it is loaded
            "columnNameOfCorruptRecord": _CORRUPT,
        }
        names: dict[str, list[str]] = {}
        for group in self._scanner.together([file for file in files if file.size > 0]):
            path = self._scanner.path_of(group)
            names |= unknown_fields(self._scanner.scan(spark, group, schema, **options), pinned.struct, path)
        return names

    def open_quotes(self, spark: SparkSession, files: Sequence[SourceFile]) -> dict[str, str]:
        """A line that ends within quotes, by the path of each CSV file that has one.

        Spark closes the value there, and takes the next line for a record: rows that no writer wrote. Nothing is looked for if values may go
        over several lines, or the user's options say what a quote is.
        """
        options = {key.lower(): str(value).lower() for key, value in self._source.options.items()}
        wide = any(size in options.get("encoding", options.get("charset", "")) for size in ("16", "32"))
        lines = self._source.format == "csv" and options.get("multiline") != "true" and not wide
        if not lines or _OWN_QUOTES & options.keys():
            return {}
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructType

        line_of: dict[str, str] = {}
        line, schema = F.col("value"), StructType().add("value", StringType())
        for group in self._scanner.together([file for file in files if file.size > 0]):
            for separator in {separator_of(self._source, file.path) for file in group}:
                if len(separator) != 1:
                    continue
                alike = [file for file in group if separator_of(self._source, file.path) == separator]
                bad = self._scanner.scan(spark, alike, schema, form="text").where(
                    line.rlike(_open_quote(separator))
                )
                rows = bad.groupBy(self._scanner.path_of(alike).alias("path")).agg(
                    F.first(line).alias("line")
                )
                line_of |= {row["path"]: row["line"] for row in rows.collect()}
        return line_of

    def bad_records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> dict[str, BadRecord]:
        """A record that does not parse, for each of these files that has one; of Parquet, which has none of its own, nothing."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructField, StructType

        form = self._source.format
        if form == "parquet":
            return {}
        records: dict[str, BadRecord] = {}
        for group in self._scanner.together(files):
            data = pinned.beside(spellings(file.path for file in group)).data
            schema = StructType([*data.fields, StructField(_CORRUPT, StringType())])
            frame = self._scanner.scan(
                spark, group, schema, mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT
            )
            # Other columns go along: Spark refuses to select that one alone. Of a document it would be all of the file.
            row = F.first(F.struct("*") if form != "json" else F.struct(*map(quoted, data.names)))
            path = self._scanner.path_of(group)
            bad = frame.filter(F.col(_CORRUPT).isNotNull()).groupBy(path.alias("path"))
            for each in bad.agg(row.alias("row")).collect():
                if form == "json":
                    file = next(file for file in group if file.path == each["path"])
                    records[file.path] = self._bad_document(spark, file, data)
                    continue
                parsed = each["row"].asDict(recursive=True)
                text = parsed.pop(_CORRUPT)
                why = misfit(form, text, parsed, data, separator_of(self._source, group[0].path))
                records[each["path"]] = BadRecord(text, why)
        return records

    def _bad_document(self, spark: SparkSession, file: SourceFile, data: StructType) -> BadRecord:
        """The first bad one of the records in a document: Spark gives a row for each of them, in their order."""
        rows = self._scanner.scan(spark, [file], data, mode="PERMISSIVE").limit(_MOST_RECORDS).collect()
        return misfit_in(
            whole_text(self._place, file.path), [row.asDict(recursive=True) for row in rows], data
        )

    def expected_header(self, path: str, pinned: PinnedSchema) -> list[str] | None:
        """The names that the header of a CSV file must have, in their order; None if files have no header."""
        if self._source.format != "csv" or str(self._source.options.get("header", True)).lower() != "true":
            return None
        return pinned.beside(spellings([path])).data.fieldNames()

    def header(self, path: str) -> list[str] | None:
        """The names in the header of a CSV file; None if it has none, or none that reads."""
        text = first_line(self._place, path)
        return None if text is None else values_of(text, separator_of(self._source, path))


def _open_quote(separator: str) -> str:
    """A pattern for lines of CSV that end within quotes. It never goes back, so that a long line costs no more than its length."""
    other = f"[^{re.escape(separator)}]*+"
    quoted_value = '"(?:[^"]++|"")*+'
    return f'^(?:(?:{quoted_value}"{other}|(?!"){other}){re.escape(separator)})*+{quoted_value}$'
