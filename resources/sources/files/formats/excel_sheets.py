"""The sheets of workbooks that hold records: which one is read, and which hold none beside others that may."""

from __future__ import annotations

import json
from collections.abc import Sequence

from partitions.path.source import SourceFile
from partitions.sources import FilesSource
from partitions.sources.formats import ExcelOptions
from resources.connections.places import Place
from resources.sources.files.cells import is_blank
from resources.sources.files.workbook import Column, Record, Sheet, read_sheet


class ExcelSheets:
    """The sheets of the files of one dataflow."""

    def __init__(self, place: Place, source: FilesSource, options: ExcelOptions) -> None:
        """Open no workbook yet.

        Args:
            place: the root of the files.
            source: what the definition says of them.
            options: of the source.
        """
        self._place, self._source, self._options = place, source, options
        self._without_records: dict[str, Sheet] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """Which sheets hold no record beside others that may, if the definition names no sheet."""
        for path, sheet in self._without_records.items():
            more = len(self._without_records) - 1
            which = f"file {path} and {more} more have" if more else f"file {path} has"
            return (f"{which} no record in sheet {sheet.name}{other_sheets(sheet)}",)
        return ()

    def read(self, file: SourceFile) -> Sheet:
        """Open the sheet with the records: only a declared schema, held against a header, tells it from others where no option names it."""
        must_be_named = self._source.schema_ is None or self._options.header_row == 0
        return read_sheet(self._place, file.path, self._options, must_be_named=must_be_named)

    def note_records(self, file: SourceFile, sheet: Sheet, count: int) -> None:
        """Note how many records a sheet has."""
        if not count and sheet.others and "sheet" not in self._options.model_fields_set:
            self._without_records.setdefault(file.path, sheet)


def other_sheets(sheet: Sheet) -> str:
    """Say which other sheets a workbook has, and how one is named; nothing if it has none."""
    if not sheet.others:
        return ""
    names = ", ".join(sheet.others)
    return f", and the workbook has other sheets: {names}. If one of them holds the records, name it in source: options: {{sheet: {json.dumps(sheet.others[0], ensure_ascii=False)}}}"


def unnamed_column(sheet: Sheet, records: Sequence[Record] | None = None) -> list[Column]:
    """Return the first column if it alone has no name, named by its place, as one of CSV is; of some records only if it has a value in one."""
    number = sheet.index
    if number is None or (records is not None and all(is_blank(record.cells[number]) for record in records)):
        return []
    return [Column(f"_c{number}", number)]
