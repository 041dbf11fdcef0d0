"""The records in a sheet of a workbook: Excel's formats and OpenDocument, read in this process by calamine."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, NamedTuple

from partitions.errors import BadFile
from partitions.path.bad_files import FILE_VANISHED
from partitions.sources.formats import ExcelOptions
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.sources.files.cells import Cell, as_text, is_blank
from resources.sources.files.sheet_xml import notes_of

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook


_CONTAINER = bytes.fromhex("d0cf11e0a1b11ae1")
"""Begins a file of old programs, which may hold a new one encrypted."""

_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


class Column(NamedTuple):
    """A column with a name.

    Attributes:
        name: in the header.
        number: of the sheet's columns, from 0.
    """

    name: str
    number: int


class Record(NamedTuple):
    """A row with at least one value.

    Attributes:
        row: its number in the sheet, from 1.
        cells: by the number of the column; None is an empty cell.
    """

    row: int
    cells: Sequence[Cell | None]


@dataclass(frozen=True)
class Sheet:
    """The records of one file.

    Attributes:
        name: of the sheet.
        header_row: the number of the row with the names of the columns; 0: there is none.
        columns: that the header names; without a header none.
        index: the number of the first column if it alone has no name, as pandas writes its index; else None.
        records: which can be read once.
        others: the names of the other sheets that are shown.
    """

    name: str
    header_row: int
    columns: Sequence[Column]
    index: int | None
    records: Iterator[Record]
    others: Sequence[str] = ()

    def place(self, row: int, number: int) -> str:
        """A cell for people, such as ``sheet Data, C5``."""
        return f"sheet {self.name}, {letters(number)}{row}"


def read_sheet(place: Place, path: str, options: ExcelOptions, *, must_be_named: bool = False) -> Sheet:
    """Open the sheet of a workbook that has the records. Its cells are in memory then, and nothing else of the file.

    Args:
        place: of the file.
        path: below it.
        options: that the definition names.
        must_be_named: whether they must name the sheet where several hold cells: nothing else tells a cover from a table.

    Raises:
        BadFile: it is no workbook, has no such sheet, several that may have the records, or names a column twice.
        SourceError: the store refuses, or does not answer.
    """
    content = content_of(place, path)
    with _failures(path):
        opened = _workbook(content, path)
        name = _chosen(opened, path, options.sheet)
        dates = _days_below_one(content, path, name)
        sheet = _opened(opened, path, name, options.sheet)
        if must_be_named and "sheet" not in options.model_fields_set:
            _refuse_several(opened, path)
        rows = sheet.iter_rows()
        others = [other for other in _visible(opened) if other != name]
    first = sheet.start[1] if sheet.start else 0
    numbered = (
        (number, _with_dates(number, [None] * first + [_value(cell) for cell in row], dates))
        for number, row in enumerate(rows, 1)
    )
    filled = (Record(number, cells) for number, cells in numbered if not all(map(is_blank, cells)))
    header_row, header = _header(path, sheet.name, options, filled)
    columns = _columns(path, sheet.name, header_row, header)
    is_index = len(columns) > 1 and [column.number for column in columns] == list(
        range(first + 1, len(header))
    )
    first_row = header_row + options.skip_rows + 1
    records = (record for record in filled if record.row >= first_row)
    return Sheet(sheet.name, header_row, columns, first if is_index else None, records, others)


def sheets_of(place: Place, path: str) -> tuple[Sequence[str], str | None]:
    """Return the sheets of a workbook that are shown, and the first of them with a header of several columns and a record below it; None: none has.

    Where no header has several, one of a single column counts: a cover looks like that, too.

    Raises:
        BadFile: it is no workbook, or a sheet in front of the one with records is bad.
        SourceError: the store refuses, or does not answer.
    """
    content = content_of(place, path)
    with _failures(path):
        names = _visible(_workbook(content, path))
    looks = (read_sheet(place, path, ExcelOptions(sheet=name)) for name in names)
    of_one_column: str | None = None
    for sheet in looks:
        if sheet.columns and next(sheet.records, None) is not None:
            if len(sheet.columns) > 1:
                return names, sheet.name
            of_one_column = of_one_column or sheet.name
    return names, of_one_column


def _workbook(content: bytes, path: str) -> CalamineWorkbook:
    from python_calamine import CalamineWorkbook

    if content.startswith(_CONTAINER) and _ENCRYPTED in content:
        raise _bad(path, "cannot be read: it is protected by a password")
    return CalamineWorkbook.from_filelike(io.BytesIO(content))


@contextmanager
def _failures(path: str) -> Iterator[None]:
    """Raise BadFile for what the reader of workbooks says of a file."""
    from python_calamine import CalamineError, PasswordError

    try:
        yield
    except PasswordError:
        raise _bad(path, "cannot be read: it is protected by a password") from None
    except CalamineError as error:
        said = str(error)
        if said in ("", "Cannot detect file format"):
            said = "expected a workbook, found another file"
        raise _bad(path, f"cannot be read: {said}") from error
    except BaseException as error:
        if (
            type(error).__name__ != "PanicException"
        ):  # of the Rust library, about a file that no program would write
            raise
        raise _bad(path, f"cannot be read: {error}") from error


def letters(number: int) -> str:
    """Return a column as programs show it: 0 is A, 26 is AA."""
    text, left = "", number + 1
    while left:
        left, digit = divmod(left - 1, 26)
        text = chr(ord("A") + digit) + text
    return text


def content_of(place: Place, path: str) -> bytes:
    """Return a file as it stands.

    Raises:
        BadFile: it has vanished.
        SourceError: the store refuses, or does not answer.
    """
    with store_failures(place):
        try:
            if place.local is not None:
                return (place.local / path).read_bytes()
            return bytes(place.store.get(path).bytes())
        except FileNotFoundError as error:
            why = "it was listed, and had vanished when it was to be read"
            raise BadFile(f"file {path}: {why}", path=path, why=why, code=FILE_VANISHED) from error


def _chosen(workbook: CalamineWorkbook, path: str, wanted: str | int) -> str:
    from python_calamine import SheetTypeEnum

    sheets = [sheet for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    names = [sheet.name for sheet in sheets]
    visible = _visible(workbook)
    name = wanted if isinstance(wanted, str) else next(iter(visible[wanted - 1 : wanted]), None)
    if name not in names:
        asked = f"a sheet named {wanted}" if isinstance(wanted, str) else f"at least {wanted} sheets"
        asked += " (options.sheet)"
        found = ", ".join(names) or "no sheet"
        raise _bad(
            path, f"expected {asked}, found {found}", "Correct options.sheet, or mend or remove the file"
        )
    return name


def _visible(workbook: CalamineWorkbook) -> list[str]:
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    sheets = [sheet for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    return [sheet.name for sheet in sheets if sheet.visible == SheetVisibleEnum.Visible]


def _opened(workbook: CalamineWorkbook, path: str, name: str, wanted: str | int) -> CalamineSheet:
    """Return a sheet; one without a cell that is not named must be the only one that is shown."""
    chosen = workbook.get_sheet_by_name(name)
    if chosen.start is None and not isinstance(wanted, str):
        others = [
            other for other in _visible(workbook) if workbook.get_sheet_by_name(other).start is not None
        ]
        if others:
            why = f"expected records in sheet {name}, found none, but cells in {', '.join(others)} (options.sheet)"
            raise _bad(path, why, "Name a sheet in options.sheet, also this one")
    return chosen


def _refuse_several(workbook: CalamineWorkbook, path: str) -> None:
    """Raise BadFile if several of the sheets that are shown hold cells."""
    names = [name for name in _visible(workbook) if workbook.get_sheet_by_name(name).start is not None]
    if len(names) > 1:
        why = f"expected one sheet with cells, or the name of the one with the records (options.sheet), found {len(names)}: {', '.join(names)}"
        sheet = json.dumps(names[1], ensure_ascii=False)
        raise _bad(path, why, f"Name it in source, such as options: {{sheet: {sheet}}}, or remove the others")


def _header(
    path: str, sheet: str, options: ExcelOptions, filled: Iterator[Record]
) -> tuple[int, Sequence[Cell | None]]:
    """The number of the row with the names, and its cells; the rows up to it are taken from those with values.

    Raises:
        BadFile: the row that the options name is empty, though others have values.
    """
    if options.header_row == 0:
        return 0, ()
    record = None
    for record in filled:
        if options.header_row is None or record.row >= options.header_row:
            break
    if record is None:
        return options.header_row or 1, ()
    if options.header_row not in (None, record.row):
        why = f"sheet {sheet}: expected the names of the columns in row {options.header_row} (options.header_row), found an empty row"
        raise _bad(path, why, "Correct options.header_row, or mend or remove the file")
    return record.row, record.cells


def _columns(path: str, sheet: str, row: int, header: Sequence[Cell | None]) -> list[Column]:
    columns = [
        Column(as_text(cell).strip(), number)
        for number, cell in enumerate(header)
        if cell is not None and not is_blank(cell)
    ]
    for column in columns:
        if "\0" in column.name:
            place = f"{letters(column.number)}{row}"
            raise _bad(path, f"sheet {sheet}, {place}: expected the name of a column, found one with a NUL")
    known: dict[str, Column] = {}
    for column in columns:
        if (first := known.setdefault(column.name.casefold(), column)) is not column:
            at = [f"{letters(number)}{row}" for number in (first.number, column.number)]
            raise _bad(
                path, f"sheet {sheet}: expected each column once, found {column.name} in {at[0]} and {at[1]}"
            )
    return columns


def _days_below_one(content: bytes, path: str, name: str) -> Mapping[tuple[int, int], date | datetime]:
    """Return the cells whose first day of the calendar the reader takes for a time of day.

    Raises:
        BadFile: a cell cannot be loaded, though the reader does.
    """
    notes = notes_of(content, name)
    if notes.bad is not None:
        raise _bad(path, f"sheet {name}, {letters(notes.bad.column)}{notes.bad.row}: {notes.bad.reason}")
    return notes.dates


def _with_dates(
    row: int, cells: list[Cell | None], dates: Mapping[tuple[int, int], date | datetime]
) -> list[Cell | None]:
    """The cells of a row, with the days that the reader takes for times."""
    if not dates:
        return cells
    return [
        dates.get((row, column), cell) if isinstance(cell, time) else cell
        for column, cell in enumerate(cells)
    ]


def _value(cell: Cell) -> Cell | None:
    """An empty cell is an empty text, and so is one with an error."""
    return None if cell == "" else cell


def _bad(path: str, why: str, remedy: str = "Mend or remove it") -> BadFile:
    return BadFile(f"file {path}: {why}. {remedy}; nothing of the file was loaded", path=path, why=why)
