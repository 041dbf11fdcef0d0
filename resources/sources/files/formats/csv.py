"""CSV and TSV: a header, and a record a line unless values go over several."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.sources.formats import Option
from resources.sources.files.failures import BAD_HEADER, OPEN_QUOTE, bad_header, open_quote
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.records import corrupt_records
from resources.sources.files.lines import first_line, line_of
from resources.sources.files.misfit import BadRecord, misfit_in_line, values_of
from resources.sources.files.paths import spellings
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OWN_QUOTES = frozenset({"quote", "escape", "comment", "linesep"})
"""Options, in lower case, with which a line and its quotes are something else."""


class CsvFiles(FormatReader):
    """Values between separators, under a header."""

    READER: ClassVar[str] = "csv"

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """There is a header, which is compared with the schema: else reordered columns would be read into each other."""
        return {
            "header": True,
            "enforceSchema": infer,
            "sep": separator(path),
            "inferSchema": infer,
            "escape": '"',  # a quote in quotes is doubled (RFC 4180); Spark's own way is a backslash
        }

    def apart(self, path: str) -> str:
        """Files with tabs are read apart from others."""
        return separator(path)

    def misleading(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Iterator[BadFile]:
        """Yield files with an open quote."""
        yield from self._with_open_quotes(spark, files)
        yield from super().misleading(spark, files, pinned)

    def closer(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Look at the header first."""
        return self._header(file, pinned) or super().closer(spark, file, pinned)

    def alike(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema, bad: BadFile
    ) -> list[BadFile]:
        """Return those with another header, an open quote, or a bad record."""
        if bad.code == BAD_HEADER:
            return [header for file in files if (header := self._header(file, pinned))]
        if bad.code == OPEN_QUOTE:
            return list(self._with_open_quotes(spark, files))
        return super().alike(spark, files, pinned, bad)

    def bad_records(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, BadRecord]:
        """Return a line of each file that has a bad one."""
        return {
            bad.path: BadRecord(
                bad.text,
                misfit_in_line(bad.text, bad.parsed, bad.schema, self._separator(bad.path)),
                line_of(self.place, bad.path, bad.text),
            )
            for bad in corrupt_records(self, spark, files, pinned)
        }

    def _with_open_quotes(self, spark: SparkSession, files: Sequence[SourceFile]) -> Iterator[BadFile]:
        lines = self._open_quotes(spark, files) if files else {}
        for file in files:
            if file.path in lines:
                yield open_quote(file.path, line_of(self.place, file.path, lines[file.path]))

    def _open_quotes(self, spark: SparkSession, files: Sequence[SourceFile]) -> dict[str, str]:
        """A line that ends within quotes, by the path of each file that has one.

        Spark closes the value there, and takes the next line for a record: rows that no writer wrote. Nothing is looked for if values may go
        over several lines, or the user's options say what a quote is.
        """
        options = {key.lower(): str(value).lower() for key, value in self.source.options.items()}
        wide = any(size in options.get("encoding", options.get("charset", "")) for size in ("16", "32"))
        if options.get("multiline") == "true" or wide or _OWN_QUOTES & options.keys():
            return {}
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructType

        line_of_path: dict[str, str] = {}
        line, schema = F.col("value"), StructType().add("value", StringType())
        for group in self.scanner.together([file for file in files if file.size > 0]):
            for given in {self._separator(file.path) for file in group}:
                if len(given) != 1:
                    continue
                alike = [file for file in group if self._separator(file.path) == given]
                # Each line as text: the options of the CSV reader mean nothing here.
                lines = self.scanner.scan(spark, alike, schema, "text", self._encoding)
                bad = lines.where(line.rlike(_open_quote(given)))
                path = self.scanner.path_of(alike).alias("path")
                rows = bad.groupBy(path).agg(F.first(line).alias("line"))
                line_of_path |= {row["path"]: row["line"] for row in rows.collect()}
        return line_of_path

    @property
    def _encoding(self) -> dict[str, str]:
        return {
            key: str(value)
            for key, value in self.source.options.items()
            if key.lower() in ("encoding", "charset")
        }

    def _header(self, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Compare a file's header with the one that it must have."""
        if str(self.source.options.get("header", True)).lower() != "true":
            return None
        expected = pinned.beside(spellings([file.path])).data.fieldNames()
        text = first_line(self.place, file.path)
        found = None if text is None else values_of(text, self._separator(file.path))
        if found is None or _folded(expected) == _folded(found):
            return None
        return bad_header(file.path, expected, found)

    def _separator(self, path: str) -> str:
        """The user's own goes before what the ending says."""
        given = self.source.options.get("sep", self.source.options.get("delimiter"))
        return separator(path) if given is None else str(given)


def separator(path: str) -> str:
    """Return what separates the values of a file, as its ending says."""
    return "\t" if ".tsv" in path.rpartition("/")[2] else ","


def _folded(names: Sequence[str]) -> list[str]:
    """As Spark compares them."""
    return [name.lower() for name in names]


def _open_quote(separator: str) -> str:
    """A pattern for lines that end within quotes. It never goes back, so that a long line costs no more than its length."""
    other = f"[^{re.escape(separator)}]*+"
    quoted_value = '"(?:[^"]++|"")*+'
    return f'^(?:(?:{quoted_value}"{other}|(?!"){other}){re.escape(separator)})*+{quoted_value}$'
