"""CSV and TSV: a header, and a record a line unless values go over several."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.records.csv_form import BREAK, NO_MARK, CsvForm
from partitions.records.forms import Reading
from partitions.records.options import by_lower_name
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.exact_texts import is_exact
from resources.sources.files.formats.csv_check import CsvCheck, options_of_line
from resources.sources.files.formats.csv_headers import CsvHeaders, folded, separator
from resources.sources.files.formats.csv_inferring import CsvColumns, texts_of
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.own_forms import has_own_form, misread
from resources.sources.files.paths import spellings
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.scan import Scanner
from resources.sources.files.text_lines import TEXT, lines_of
from resources.sources.files.text_values import value_of
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

_MADE_UP = re.compile(r"_c\d+")
"""The names that Spark gives to columns without one."""


class CsvFiles(FormatReader):
    """Values between separators, under a header."""

    READER: ClassVar[str] = "csv"

    columns: CsvColumns

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Look at no file yet."""
        super().__init__(place, dataflow, staging)
        self._headers = CsvHeaders(place, self.source.options)
        self.columns = CsvColumns(self, self._headers)
        self._check = CsvCheck(self, self.columns, self._headers)

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """There is a header, which is compared with the schema: else reordered columns would be read into each other."""
        form = self._headers.form_with_break(path)
        of_text: dict[str, Option] = {"multiLine": True} if form.is_wide else {}
        if form.is_whole and form.line_break:
            of_text["lineSep"] = form.line_break  # else Spark makes each line break in quotes a line feed
        return {
            "header": True,
            "enforceSchema": infer,
            "sep": separator(path),
            "escape": form.escape,  # a quote in quotes is doubled (RFC 4180); Spark's own way is a backslash
            **({"charToEscapeQuoteEscaping": NO_MARK} if form.escape == form.quote else {}),
            **of_text,
        }

    def apart(self, path: str) -> str:
        """Files with tabs are read apart from others; so are files with another line break, where values may go over several lines, or with lines that Spark's reader skips."""
        by_line = "line by line" if path in self._check.line_by_line else ""
        return separator(path) + self._headers.form_with_break(path).line_break + by_line

    def tells_folders(self, path: str) -> bool:
        """Return whether Spark reads the file, and not its lines."""
        return path not in self._check.line_by_line

    def header_line(self, file: SourceFile) -> str | None:
        """Return the first record if it is a header."""
        header = self._headers.first_record(file) if self._headers.are_there else None
        return None if header is None else header.text

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """The columns of headers that are others than the pinned one, in the order of the header; in mode strict there is only one header.

        In mode rescue the columns of each header as texts.
        """
        if self.rules.is_strict:
            return {}
        headers = self._headers.of(files)
        if self.rules.rescues:
            return {path: texts_of(header.names) for path, header in headers.items()}
        by_name = {field.name.lower(): field for field in data.fields}
        return {
            path: type(data)([by_name[name.lower()] for name in header.names if name.lower() in by_name])
            for path, header in headers.items()
            if folded(header.names) != folded(data.fieldNames())
        }

    def beside_folders(self, file: SourceFile, pinned: PinnedSchema) -> PinnedSchema:
        """Return the schema without the columns of folders, unless the header names them, too."""
        named = pinned.beside((*spellings([file.path]), *pinned.folders))
        if self.rules.rescues or not named.folders or not self._headers.are_there:
            return named
        header = self._headers.first_record(file)
        names = () if header is None else folded(header.names)
        return named.beside(name for name in named.folders if name.lower() not in names)

    def parsed(self, file_field: StructField, pinned_field: StructField) -> Column:
        """Read the text as a file of one value, with the user's options for values; NULL if the column's type does not hold it exactly."""
        from pyspark.sql import functions as F

        text = F.col(quoted(file_field.name))
        reading = Reading.of(self.source.options, inferred=self.source.schema_ is None)
        exact = is_exact(text, pinned_field.dataType.jsonValue(), reading)
        if has_own_form(pinned_field.dataType.jsonValue(), reading):
            exact &= ~misread(
                lambda data_type: value_of(text, data_type, self.own_options), pinned_field.dataType
            )
        return F.when(exact, value_of(text, pinned_field.dataType, self.own_options))

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Compare the headers, and hold all records against the rule of the schema."""
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
        """Scan files; those with lines that Spark's reader skips, though they are records, line by line."""
        from pyspark.sql import functions as F

        form = self._headers.form(files[0].path)
        if files[0].path not in self._check.line_by_line:
            if form.header and any(_MADE_UP.fullmatch(name) for name in schema.names):
                changes = {**changes, "enforceSchema": "true"}  # Spark compares no names that it has made up
            return self.scan(spark, files, schema, scanner, **changes)
        text = F.col(TEXT)
        if any(file.path in self._check.with_header_again for file in files):
            whole = lines_of(spark, scanner or self.scanner, files, self.own_options, wholetext="true")
            lines = self._lines_below_header(whole, form)
        else:
            lines = lines_of(spark, scanner or self.scanner, files, self.own_options)
            headers = {header.text for header in self._headers.of(files).values()}
            lines = lines.where(~text.isin(*headers)) if headers else lines
        options = {**options_of_line(self, files[0].path), "mode": "FAILFAST", **changes}
        record = F.from_csv(text, F.lit(schema.toDDL()), options).alias("record")
        return lines.where(~self._is_none(text, form)).select(record).select("record.*")

    def _lines_below_header(self, texts: DataFrame, form: CsvForm) -> DataFrame:
        """The lines of whole texts behind the first that is a record, which is the header."""
        from pyspark.sql import functions as F

        pattern = by_lower_name(self.source.options).get("linesep")
        lines = F.split(F.col(TEXT), BREAK if pattern is None else re.escape(pattern))
        records = F.filter(lines, lambda line: ~self._is_none(line, form))
        return texts.withColumn(TEXT, F.explode(F.slice(records, 2, F.greatest(F.size(records), F.lit(1)))))

    def _is_none(self, line: Column, form: CsvForm) -> Column:
        """Whether a line is no record: blank, or a comment."""
        from pyspark.sql import functions as F

        is_blank = F.trim(line, F.lit(form.blanks)) == "" if form.blanks else line == ""
        return is_blank | line.startswith(form.comment) if form.comment else is_blank
