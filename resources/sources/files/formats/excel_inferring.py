"""The columns of workbooks: names of a header, and the first types that hold the cells under it. Starts no Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.path.source import SourceFile
from resources.sources.files.cells import inferred_type, is_blank, kind_of_cell
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.formats.excel_sheets import ExcelSheets, unnamed_column
from resources.sources.files.formats.format import FileColumns, FormatReader
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_SAMPLE_ROWS = 10_000
"""Of a file, for its types."""


class ExcelColumns(FileColumns):
    """Finds the columns of sheets."""

    def __init__(self, form: FormatReader, sheets: ExcelSheets, *, has_header: bool) -> None:
        """Open no workbook yet.

        Args:
            form: reads the files.
            sheets: of these.
            has_header: whether a row names the columns.
        """
        super().__init__(form)
        self._sheets, self._has_header = sheets, has_header

    @override
    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Look at the first rows of each file, without Spark. A column without a value is text."""
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
        schema = StructType()
        for key, name in names.items():
            schema = schema.add(name, inferred_type(kinds[key]) or StringType())
        return schema

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the headers."""
        sheets = {file.path: self._sheets.read(file) for file in (files if self._has_header else ())}
        return {
            path: frozenset(column.name.casefold() for column in [*unnamed_column(sheet), *sheet.columns])
            for path, sheet in sheets.items()
        }

    @override
    def others(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Read the headers; a new column has the type of its cells, and is text if it has no value."""
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
