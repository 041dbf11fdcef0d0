"""CSV and TSV files: a header, and one record a line unless values span lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.records.csv_form import LINE_BREAK, UNUSED_CHARACTER, CsvForm
from partitions.records.forms import TextOptions
from partitions.records.options import with_lower_names
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.custom_formats import has_custom_format, is_misread
from resources.sources.files.exact_texts import is_exact
from resources.sources.files.formats.csv_check import CsvCheck, options_of_line
from resources.sources.files.formats.csv_headers import CsvHeaders, fold_names, separator_of_path
from resources.sources.files.formats.csv_inferring import CsvColumns, text_columns
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.paths import folder_names
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner
from resources.sources.files.text_lines import TEXT, lines_of
from resources.sources.files.text_values import parse_text
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

_MADE_UP = re.compile(r"_c\d+")
"""The names that Spark gives to unnamed columns."""


class CsvFiles(FormatReader):
    """A reader of CSV and TSV files."""

    READER: ClassVar[str] = "csv"

    columns: CsvColumns

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; read nothing."""
        super().__init__(place, dataflow, staging)
        self._headers = CsvHeaders(place, self.source.options)
        self.columns = CsvColumns(self, self._headers)
        self._check = CsvCheck(self, self.columns, self._headers)

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """Return the reader options.

        The header is compared with the schema, so that a file with reordered columns fails.
        """
        form = self._headers.form_with_break(path)
        text_options: dict[str, Option] = {"multiLine": True} if form.is_wide else {}
        if form.needs_whole_text and form.line_break:
            text_options["lineSep"] = (
                form.line_break
            )  # otherwise Spark turns line breaks in quotes into line feeds
        return {
            "header": True,
            "enforceSchema": infer,
            "sep": separator_of_path(path),
            "escape": form.escape,  # a quote in quotes is doubled (RFC 4180); Spark's own way is a backslash
            **({"charToEscapeQuoteEscaping": UNUSED_CHARACTER} if form.escape == form.quote else {}),
            **text_options,
        }

    def scan_key(self, path: str) -> str:
        """Return the key that separates scans.

        Files differ by their separator, by their line break if values may span lines, and by whether they are read
        line by line.
        """
        by_line = "line by line" if path in self._check.line_by_line else ""
        return separator_of_path(path) + self._headers.form_with_break(path).line_break + by_line

    def has_folder_columns(self, path: str) -> bool:
        """Return whether Spark reads the file itself, and not its lines."""
        return path not in self._check.line_by_line

    def header_line(self, file: SourceFile) -> str | None:
        """Return the first record if it is a header."""
        header = self._headers.first_record(file) if self._headers.has_headers else None
        return None if header is None else header.text

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """Return, by path, the schema of each header that differs from the pinned one, in the header's order.

        In mode strict there are none. In mode rescue each header gives text columns.
        """
        if self.rules.is_strict:
            return {}
        headers = self._headers.by_path(files)
        if self.rules.rescues:
            return {path: text_columns(header.names) for path, header in headers.items()}
        by_name = {field.name.lower(): field for field in data.fields}
        return {
            path: type(data)([by_name[name.lower()] for name in header.names if name.lower() in by_name])
            for path, header in headers.items()
            if fold_names(header.names) != fold_names(data.fieldNames())
        }

    def schema_of_file(self, file: SourceFile, pinned: PinnedSchema) -> PinnedSchema:
        """Return the schema without the columns of folders, unless the header names them, too."""
        schema = pinned.for_folders((*folder_names([file.path]), *pinned.folders))
        if self.rules.rescues or not schema.folders or not self._headers.has_headers:
            return schema
        header = self._headers.first_record(file)
        names = () if header is None else fold_names(header.names)
        return schema.for_folders(name for name in schema.folders if name.lower() not in names)

    def parse_value(self, file_field: StructField, pinned_field: StructField) -> Column:
        """Parse a text with the user's options; NULL if the column's type does not hold it exactly."""
        from pyspark.sql import functions as F

        text = F.col(quoted(file_field.name))
        reading = TextOptions.of(self.source.options, inferred=self.source.schema_ is None)
        exact = is_exact(text, pinned_field.dataType.jsonValue(), reading)
        if has_custom_format(pinned_field.dataType.jsonValue(), reading):
            exact &= ~is_misread(
                lambda data_type: parse_text(text, data_type, self.own_options), pinned_field.dataType
            )
        return F.when(exact, parse_text(text, pinned_field.dataType, self.own_options))

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Compare the headers, and check all records against the rule of the schema."""
        return self._check.check(spark, files, pinned)

    def scan_rows(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        schema: StructType,
        scanner: Scanner | None = None,
        /,
        **changes: str,
    ) -> DataFrame:
        """Scan files; line by line if they have records that Spark's reader skips."""
        from pyspark.sql import functions as F

        form = self._headers.form(files[0].path)
        if files[0].path not in self._check.line_by_line:
            if form.header and any(_MADE_UP.fullmatch(name) for name in schema.names):
                changes = {**changes, "enforceSchema": "true"}  # Spark does not compare names that it made up
            return self.scan(spark, files, schema, scanner, **changes)
        text = F.col(TEXT)
        if any(file.path in self._check.with_header_again for file in files):
            whole = lines_of(spark, scanner or self.scanner, files, self.own_options, wholetext="true")
            lines = self._lines_below_header(whole, form)
        else:
            lines = lines_of(spark, scanner or self.scanner, files, self.own_options)
            headers = {header.text for header in self._headers.by_path(files).values()}
            lines = lines.where(~text.isin(*headers)) if headers else lines
        options = {**options_of_line(self, files[0].path), "mode": "FAILFAST", **changes}
        record = F.from_csv(text, F.lit(schema.toDDL()), options).alias("record")
        return lines.where(~self._is_no_record(text, form)).select(record).select("record.*")

    def _lines_below_header(self, texts: DataFrame, form: CsvForm) -> DataFrame:
        """Return the lines of whole texts behind the header, which is the first record."""
        from pyspark.sql import functions as F

        pattern = with_lower_names(self.source.options).get("linesep")
        lines = F.split(F.col(TEXT), LINE_BREAK if pattern is None else re.escape(pattern))
        records = F.filter(lines, lambda line: ~self._is_no_record(line, form))
        return texts.withColumn(TEXT, F.explode(F.slice(records, 2, F.greatest(F.size(records), F.lit(1)))))

    def _is_no_record(self, line: Column, form: CsvForm) -> Column:
        """Return whether a line is no record: blank, or a comment."""
        from pyspark.sql import functions as F

        is_blank = F.trim(line, F.lit(form.blanks)) == "" if form.blanks else line == ""
        return is_blank | line.startswith(form.comment) if form.comment else is_blank
