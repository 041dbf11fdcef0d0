"""CSV and TSV: a header, and a record a line unless values go over several."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.sources.formats import Option
from resources.sources.files.failures import (
    BAD_ENCODING,
    BAD_HEADER,
    OPEN_QUOTE,
    bad_encoding,
    bad_header,
    open_quote,
)
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.records import all_corrupt_records, corrupt_records
from resources.sources.files.formats.variants import inferred, struct_of, wider_numbers
from resources.sources.files.lines import Lines, first_line, line_of, undecodable_line
from resources.sources.files.misfit import BadRecord, misfit_in_line, values_of
from resources.sources.files.paths import spellings
from resources.sources.files.pinned import PinnedSchema
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructField, StructType

_OWN_QUOTES = frozenset({"quote", "escape", "comment", "linesep"})
"""Options, in lower case, with which a line and its quotes are something else."""

_OF_LINES = _OWN_QUOTES | {"sep", "delimiter", "header", "encoding", "charset", "multiline", "mode"}
"""Options, in lower case, that say nothing of a value."""


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

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """The columns of headers that are others than the pinned one, in the order of the header; in mode strict there is only one header.

        In mode rescue the columns of each header as texts.
        """
        if self.is_strict:
            return {}
        if self.rescues:
            return {file.path: _texts(names) for file in files if (names := self._names(file)) is not None}
        by_name = {field.name.lower(): field for field in data.fields}
        schemas: dict[str, StructType] = {}
        for file in files:
            header = self._names(file)
            if header is not None and _folded(header) != _folded(data.fieldNames()):
                known = [by_name[name.lower()] for name in header if name.lower() in by_name]
                schemas[file.path] = type(data)(known)
        return schemas

    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the headers, without Spark."""
        headers = {file.path: self._names(file) for file in files}
        return {
            path: frozenset(name.casefold() for name in header)
            for path, header in headers.items()
            if header is not None
        }

    def other_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, StructType]:
        """Read the headers, without Spark; files with new names are read for the types of these."""
        known, groups = set(_folded(pinned.struct.fieldNames())), dict[tuple[str, ...], list[SourceFile]]()
        for file in files:
            header = self._names(file)
            if header is not None and not known.issuperset(_folded(header)):
                groups.setdefault((self._separator(file.path), *header), []).append(file)
        columns: dict[str, StructType] = {}
        for alike in groups.values():
            for group in self.scanner.together(alike):
                fields = inferred(self, spark, group)["fields"]
                new = [field for field in fields if field["name"].lower() not in known]
                columns[group[0].path] = struct_of({"type": "struct", "fields": new})
        return columns

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Look at the files under the header of the first: Spark takes any other header for values, which are text."""
        headers = {file.path: self._names(file) for file in files}
        first = next((header for header in headers.values() if header is not None), None)
        return super().infer(spark, [file for file in files if headers[file.path] in (None, first)])

    def wider_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Read the files with the widest whole numbers that they hold."""
        return wider_numbers(self, spark, files, pinned)

    def parsed(self, given: StructField, wanted: StructField) -> Column:
        """Read the text as a file of one value, with the user's options for values."""
        from pyspark.sql import functions as F

        options = {
            key: str(value) for key, value in self.source.options.items() if key.lower() not in _OF_LINES
        }
        line = F.to_csv(F.struct(F.col(quoted(given.name)).alias("c")), {"quoteAll": "true", "escape": '"'})
        schema = f"c {wanted.dataType.simpleString()}"
        return F.from_csv(line, schema, {**options, "escape": '"', "mode": "PERMISSIVE"}).getField("c")

    def misleading(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Iterator[BadFile]:
        """Yield files with an open quote, or with bytes that are no text."""
        yield from self._misread(spark, files)
        yield from super().misleading(spark, files, pinned)

    def closer(self, spark: SparkSession, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Look at the header first."""
        return self._header(file, pinned) or super().closer(spark, file, pinned)

    def alike(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema, bad: BadFile
    ) -> list[BadFile]:
        """Return those with another header, an open quote, bytes that are no text, or a bad record."""
        if bad.code == BAD_HEADER:
            return [header for file in files if (header := self._header(file, pinned))]
        if bad.code in (OPEN_QUOTE, BAD_ENCODING):
            return list(self._misread(spark, files))
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
                    misfit_in_line(each.text, each.parsed, each.schema, self._separator(each.path)),
                    lines.next(each.path, each.text),
                ),
            )
            for each in bad
        ]

    def _misread(self, spark: SparkSession, files: Sequence[SourceFile]) -> Iterator[BadFile]:
        """Yield files that Spark would load without an error and otherwise than they were written: open quotes, bytes that are no text.

        Spark closes an open quote at the end of its line, and takes the next line for a record: rows that no writer wrote. Quotes are not
        looked at if values may go over several lines, or the user's options say what a quote is. A byte that is no UTF-8 becomes U+FFFD; it
        is not looked for if the user names an encoding.
        """
        options = {key.lower(): str(value).lower() for key, value in self.source.options.items()}
        wide = any(size in options.get("encoding", options.get("charset", "")) for size in ("16", "32"))
        quotes = not (options.get("multiline") == "true" or wide or _OWN_QUOTES & options.keys())
        if not files or (self._encoding and not quotes):
            return
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructType

        lines_of: dict[str, tuple[str | None, bool]] = {}
        line, schema = F.col("value"), StructType().add("value", StringType())
        undecodable = F.lit(False) if self._encoding else ~F.is_valid_utf8(line)
        for group in self.scanner.together([file for file in files if file.size > 0]):
            for given in {self._separator(file.path) for file in group}:
                alike = [file for file in group if self._separator(file.path) == given]
                # Each line as text: the options of the CSV reader mean nothing here.
                lines = self.scanner.scan(spark, alike, schema, "text", self._encoding)
                looks = quotes and len(given) == 1
                is_open = line.rlike(_open_quote(given)) if looks else F.lit(False)
                bad = lines.where(is_open | undecodable)
                path = self.scanner.path_of(alike).alias("path")
                quote = F.first(F.when(is_open, line), ignorenulls=True).alias("quote")
                rows = bad.groupBy(path).agg(quote, F.bool_or(undecodable).alias("undecodable"))
                lines_of |= {row["path"]: (row["quote"], row["undecodable"]) for row in rows.collect()}
        for file in files:
            quote_line, is_undecodable = lines_of.get(file.path, (None, False))
            if is_undecodable:
                yield bad_encoding(file.path, undecodable_line(self.place, file.path))
            elif quote_line is not None:
                yield open_quote(file.path, line_of(self.place, file.path, quote_line))

    @property
    def _encoding(self) -> dict[str, str]:
        return {
            key: str(value)
            for key, value in self.source.options.items()
            if key.lower() in ("encoding", "charset")
        }

    def _header(self, file: SourceFile, pinned: PinnedSchema) -> BadFile | None:
        """Compare a file's header with the one that it must have."""
        if not (self._has_header and self.is_strict):
            return None
        expected = pinned.beside(spellings([file.path])).data.fieldNames()
        found = self._names(file)
        if found is None or _folded(expected) == _folded(found):
            return None
        takes = self._dataflow.target.schema_mode == "strict" and self._dataflow.may_take_columns
        return bad_header(file.path, expected, found, takes=takes)

    @property
    def _has_header(self) -> bool:
        return str(self.source.options.get("header", True)).lower() == "true"

    def _names(self, file: SourceFile) -> list[str] | None:
        """The names in a file's header; None if there is none."""
        if not self._has_header:
            return None
        text = first_line(self.place, file.path, *self._encoding.values())
        return None if text is None else values_of(text, self._separator(file.path))

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


def _texts(names: Sequence[str]) -> StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([StructField(name, StringType()) for name in names])


def _open_quote(separator: str) -> str:
    """A pattern for lines that end within quotes. It never goes back, so that a long line costs no more than its length."""
    other = f"[^{re.escape(separator)}]*+"
    quoted_value = '"(?:[^"]++|"")*+'
    return f'^(?:(?:{quoted_value}"{other}|(?!"){other}){re.escape(separator)})*+{quoted_value}$'
