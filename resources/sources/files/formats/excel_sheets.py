"""Choose the sheet of a workbook that holds the records, and note sheets without any."""

from __future__ import annotations

import json
from collections.abc import Sequence

from partitions.path.source import SourceFile
from partitions.sources import FilesSource
from partitions.sources.formats import ExcelOptions
from resources.connections.places import Place
from resources.sources.files.cells import is_blank
from resources.sources.files.workbook import Sheet, SheetColumn, SheetRecord, read_sheet


class ExcelSheets:
    """The sheets of the files of one dataflow."""

    def __init__(self, place: Place, source: FilesSource, options: ExcelOptions) -> None:
        """Store the parts; open no workbook.

        Args:
            place: the root of the files.
            source: the definition of the source.
            options: the source's options.
        """
        self._place, self._source, self._options = place, source, options
        self._without_records: dict[str, Sheet] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """The warning about sheets without records beside other sheets, if the definition names no sheet."""
        for path, sheet in self._without_records.items():
            more = len(self._without_records) - 1
            subject = f"file {path} and {more} more have" if more else f"file {path} has"
            return (f"{subject} no record in sheet {sheet.name}{other_sheets(sheet)}",)
        return ()

    def read(self, file: SourceFile) -> Sheet:
        """Open the sheet with the records.

        Options must name it if there are several, unless a declared schema is compared with the header.
        """
        must_be_named = self._source.schema_ is None or self._options.header_row == 0
        return read_sheet(self._place, file.path, self._options, must_be_named=must_be_named)

    def note_records(self, file: SourceFile, sheet: Sheet, count: int) -> None:
        """Note the number of a sheet's records."""
        if not count and sheet.other_names and "sheet" not in self._options.model_fields_set:
            self._without_records.setdefault(file.path, sheet)


def other_sheets(sheet: Sheet) -> str:
    """Describe the other sheets of a workbook, and how to choose one; "" if there are none."""
    if not sheet.other_names:
        return ""
    names = ", ".join(sheet.other_names)
    return f", and the workbook has other sheets: {names}. If one of them holds the records, name it in source: options: {{sheet: {json.dumps(sheet.other_names[0], ensure_ascii=False)}}}"


def unnamed_column(sheet: Sheet, records: Sequence[SheetRecord] | None = None) -> list[SheetColumn]:
    """Return the first column, named by its position, if it alone has no name.

    If records are given, only if it has a value in one of them.
    """
    number = sheet.index
    if number is None or (records is not None and all(is_blank(record.cells[number]) for record in records)):
        return []
    return [SheetColumn(f"_c{number}", number)]
