"""Read the records of a workbook's sheet, in Excel's formats or OpenDocument, with calamine."""

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
from resources.drivers import require_driver
from resources.listing.failures import store_failures
from resources.sources.files.cells import Cell, as_text, is_blank
from resources.sources.files.sheet_xml import read_notes

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook


_CONTAINER = bytes.fromhex("d0cf11e0a1b11ae1")
"""The first bytes of an OLE file: an old workbook, or an encrypted new one."""

_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


class SheetColumn(NamedTuple):
    """A named column of a sheet.

    Attributes:
        name: the column's name in the header.
        number: the column's position, from 0.
    """

    name: str
    number: int


class SheetRecord(NamedTuple):
    """A row with at least one value.

    Attributes:
        row: its number in the sheet, from 1.
        cells: by column number; None is an empty cell.
    """

    row: int
    cells: Sequence[Cell | None]


@dataclass(frozen=True)
class Sheet:
    """The records of one file.

    Attributes:
        name: the sheet's name.
        header_row: the number of the header row; 0: there is none.
        columns: the columns that the header names; none without a header.
        index: the number of the first column if it alone has no name, as pandas writes its index; else None.
        records: can be iterated once.
        other_names: the names of the other visible sheets.
    """

    name: str
    header_row: int
    columns: Sequence[SheetColumn]
    index: int | None
    records: Iterator[SheetRecord]
    other_names: Sequence[str] = ()

    def place(self, row: int, number: int) -> str:
        """Return the address of a cell, such as ``sheet Data, C5``."""
        return f"sheet {self.name}, {column_letters(number)}{row}"


def read_sheet(place: Place, path: str, options: ExcelOptions, *, must_be_named: bool = False) -> Sheet:
    """Open the sheet with the records; its cells are in memory afterwards, and nothing else of the file.

    Args:
        place: the root of the files.
        path: the file's path below the root.
        options: the definition's options.
        must_be_named: whether options must name the sheet if several hold cells, since nothing else tells a
            cover from a table.

    Raises:
        BadFile: it is no workbook, has no such sheet, has several candidates, or names a column twice.
        SourceError: the store refuses, or does not answer.
    """
    content = read_content(place, path)
    with _translated_errors(path):
        opened = _open_workbook(content, path)
        name = _choose_sheet(opened, path, options.sheet)
        dates = _days_below_one(content, path, name)
        sheet = _open_sheet(opened, path, name, options.sheet)
        if must_be_named and "sheet" not in options.model_fields_set:
            _refuse_several(opened, path)
        rows = sheet.iter_rows()
        other_names = [sheet_name for sheet_name in _visible(opened) if sheet_name != name]
    first = sheet.start[1] if sheet.start else 0
    numbered = (
        (number, _restore_dates(number, [None] * first + [_blank_as_none(cell) for cell in row], dates))
        for number, row in enumerate(rows, 1)
    )
    filled = (SheetRecord(number, cells) for number, cells in numbered if not all(map(is_blank, cells)))
    header_row, header = _read_header(path, sheet.name, options, filled)
    columns = _columns(path, sheet.name, header_row, header)
    is_index = len(columns) > 1 and [column.number for column in columns] == list(
        range(first + 1, len(header))
    )
    first_row = header_row + options.skip_rows + 1
    records = (record for record in filled if record.row >= first_row)
    return Sheet(sheet.name, header_row, columns, first if is_index else None, records, other_names)


def find_sheets(place: Place, path: str) -> tuple[Sequence[str], str | None]:
    """Return the visible sheets of a workbook, and the first with a header and a record below it.

    None if there is no such sheet. A header of several columns wins over one of a single column: a cover
    looks like the latter.

    Raises:
        BadFile: it is no workbook, or a sheet in front of the one with records is bad.
        SourceError: the store refuses, or does not answer.
    """
    content = read_content(place, path)
    with _translated_errors(path):
        names = _visible(_open_workbook(content, path))
    sheets = (read_sheet(place, path, ExcelOptions(sheet=name)) for name in names)
    single_column_sheet: str | None = None
    for sheet in sheets:
        if sheet.columns and next(sheet.records, None) is not None:
            if len(sheet.columns) > 1:
                return names, sheet.name
            single_column_sheet = single_column_sheet or sheet.name
    return names, single_column_sheet


def _open_workbook(content: bytes, path: str) -> CalamineWorkbook:
    from python_calamine import CalamineWorkbook

    if content.startswith(_CONTAINER) and _ENCRYPTED in content:
        raise _bad(path, "cannot be read: it is protected by a password")
    return CalamineWorkbook.from_filelike(io.BytesIO(content))


@contextmanager
def _translated_errors(path: str) -> Iterator[None]:
    """Translate errors of the workbook reader to BadFile."""
    require_driver("python_calamine")
    from python_calamine import CalamineError, PasswordError

    try:
        yield
    except PasswordError:
        raise _bad(path, "cannot be read: it is protected by a password") from None
    except CalamineError as error:
        message = str(error)
        if message in ("", "Cannot detect file format"):
            message = "expected a workbook, found another file"
        raise _bad(path, f"cannot be read: {message}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # calamine's Rust code panics at some malformed files
            raise
        raise _bad(path, f"cannot be read: {error}") from error


def column_letters(number: int) -> str:
    """Return a column's letters: 0 is A, 26 is AA."""
    text, remaining = "", number + 1
    while remaining:
        remaining, digit = divmod(remaining - 1, 26)
        text = chr(ord("A") + digit) + text
    return text


def read_content(place: Place, path: str) -> bytes:
    """Return the bytes of a file.

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
            why = "it vanished after the listing"
            raise BadFile(f"file {path}: {why}", path=path, why=why, code=FILE_VANISHED) from error


def _choose_sheet(workbook: CalamineWorkbook, path: str, sheet_option: str | int) -> str:
    from python_calamine import SheetTypeEnum

    sheets = [sheet for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    names = [sheet.name for sheet in sheets]
    visible = _visible(workbook)
    name = (
        sheet_option
        if isinstance(sheet_option, str)
        else next(iter(visible[sheet_option - 1 : sheet_option]), None)
    )
    if name not in names:
        expected = (
            f"a sheet named {sheet_option}"
            if isinstance(sheet_option, str)
            else f"at least {sheet_option} sheets"
        )
        expected += " (options.sheet)"
        found_names = ", ".join(names) or "no sheet"
        raise _bad(
            path,
            f"expected {expected}, found {found_names}",
            "Correct options.sheet, or fix or remove the file",
        )
    return name


def _visible(workbook: CalamineWorkbook) -> list[str]:
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    sheets = [sheet for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    return [sheet.name for sheet in sheets if sheet.visible == SheetVisibleEnum.Visible]


def _open_sheet(workbook: CalamineWorkbook, path: str, name: str, sheet_option: str | int) -> CalamineSheet:
    """Return a sheet; raise BadFile for an unnamed one without cells if another visible one has some."""
    chosen = workbook.get_sheet_by_name(name)
    if chosen.start is None and not isinstance(sheet_option, str):
        filled_names = [
            sheet_name
            for sheet_name in _visible(workbook)
            if workbook.get_sheet_by_name(sheet_name).start is not None
        ]
        if filled_names:
            why = f"expected records in sheet {name}, found none, but cells in {', '.join(filled_names)} (options.sheet)"
            raise _bad(path, why, "Name the sheet with the records in options.sheet, even if it is this one")
    return chosen


def _refuse_several(workbook: CalamineWorkbook, path: str) -> None:
    """Raise BadFile if several visible sheets hold cells."""
    names = [name for name in _visible(workbook) if workbook.get_sheet_by_name(name).start is not None]
    if len(names) > 1:
        why = (
            f"expected one sheet with cells, or the sheet with the records in options.sheet, found {len(names)}: "
            f"{', '.join(names)}"
        )
        sheet = json.dumps(names[1], ensure_ascii=False)
        raise _bad(path, why, f"Name it in source, such as options: {{sheet: {sheet}}}, or remove the others")


def _read_header(
    path: str, sheet: str, options: ExcelOptions, filled: Iterator[SheetRecord]
) -> tuple[int, Sequence[Cell | None]]:
    """Return the number and cells of the header row, and consume the rows up to it.

    Raises:
        BadFile: the row that the options name is empty, but others are not.
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
        raise _bad(path, why, "Correct options.header_row, or fix or remove the file")
    return record.row, record.cells


def _columns(path: str, sheet: str, row: int, header: Sequence[Cell | None]) -> list[SheetColumn]:
    columns = [
        SheetColumn(as_text(cell).strip(), number)
        for number, cell in enumerate(header)
        if cell is not None and not is_blank(cell)
    ]
    for column in columns:
        if "\0" in column.name:
            place = f"{column_letters(column.number)}{row}"
            raise _bad(path, f"sheet {sheet}, {place}: expected the name of a column, found one with a NUL")
    column_by_key: dict[str, SheetColumn] = {}
    for column in columns:
        if (first := column_by_key.setdefault(column.name.casefold(), column)) is not column:
            places = [f"{column_letters(number)}{row}" for number in (first.number, column.number)]
            raise _bad(
                path,
                f"sheet {sheet}: expected each column once, found {column.name} in {places[0]} and {places[1]}",
            )
    return columns


def _days_below_one(content: bytes, path: str, name: str) -> Mapping[tuple[int, int], date | datetime]:
    """Return the cells with a first day of the calendar that the reader takes for a time of day.

    Raises:
        BadFile: a cell cannot be loaded, though the reader accepts it.
    """
    notes = read_notes(content, name)
    if notes.bad is not None:
        raise _bad(
            path, f"sheet {name}, {column_letters(notes.bad.column)}{notes.bad.row}: {notes.bad.reason}"
        )
    return notes.dates


def _restore_dates(
    row: int, cells: list[Cell | None], dates: Mapping[tuple[int, int], date | datetime]
) -> list[Cell | None]:
    """Return the cells of a row, with days where the reader saw times."""
    if not dates:
        return cells
    return [
        dates.get((row, column), cell) if isinstance(cell, time) else cell
        for column, cell in enumerate(cells)
    ]


def _blank_as_none(cell: Cell) -> Cell | None:
    """Return None for an empty cell or one with an error; calamine returns an empty text for both."""
    return None if cell == "" else cell


def _bad(path: str, why: str, remedy: str = "Fix or remove it") -> BadFile:
    return BadFile(f"file {path}: {why}. {remedy}; nothing of the file was loaded", path=path, why=why)
