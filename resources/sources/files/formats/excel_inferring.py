"""Infer the columns of workbooks from the header and the cells below it, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.path.source import SourceFile
from resources.sources.files.cells import infer_type, is_blank, kind_of_cell
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.formats.excel_sheets import ExcelSheets, unnamed_column
from resources.sources.files.formats.format import FileColumns, FormatReader
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_SAMPLE_ROWS = 10_000
"""The most records of a file that its types are inferred from."""


class ExcelColumns(FileColumns):
    """A finder of the columns of sheets."""

    def __init__(self, form: FormatReader, sheets: ExcelSheets, *, has_header: bool) -> None:
        """Store the parts; open no workbook.

        Args:
            form: the format's reader.
            sheets: the sheets of the files.
            has_header: whether a row names the columns.
        """
        super().__init__(form)
        self._sheets, self._has_header = sheets, has_header

    @override
    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns from the first 10,000 records of each file; a column without a value is text."""
        from pyspark.sql.types import StringType, StructType

        names: dict[str, str] = {}
        kinds: dict[str, set[str]] = {}
        for file in files:
            sheet = self._sheets.read(file)
            records = list(islice(sheet.records, _SAMPLE_ROWS))
            self._sheets.note_records(file, sheet, len(records))
            for column in [*unnamed_column(sheet, records), *sheet.columns]:
                names.setdefault(column.name.casefold(), column.name)
                cells = (record.cells[column.number] for record in records)
                kinds.setdefault(column.name.casefold(), set()).update(
                    kind_of_cell(cell) for cell in cells if cell is not None and not is_blank(cell)
                )
        if not any(kinds.values()):
            return None
        self.valueless = [name for key, name in names.items() if not kinds[key]]
        schema = StructType()
        for key, name in names.items():
            schema = schema.add(name, infer_type(kinds[key]) or StringType())
        return schema

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the column names of each file, from its header."""
        sheets = {file.path: self._sheets.read(file) for file in (files if self._has_header else ())}
        return {
            path: frozenset(column.name.casefold() for column in [*unnamed_column(sheet), *sheet.columns])
            for path, sheet in sheets.items()
        }

    @override
    def incoming_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Return the new columns of files, with the types of their cells; text for a column without a value."""
        pinned_names = {name.casefold() for name in pinned.struct.fieldNames()}
        columns: dict[str, StructType] = {}
        for file in files if self._has_header else ():
            sheet = self._sheets.read(file)
            if all(
                column.name.casefold() in pinned_names for column in [*unnamed_column(sheet), *sheet.columns]
            ):
                continue
            inferred = self.infer(spark, [file])
            fields = (
                [field for field in inferred.fields if field.name.casefold() not in pinned_names]
                if inferred
                else []
            )
            if inferred is not None and fields:
                columns[file.path] = type(inferred)(fields)
        return columns
