"""Find cells that the workbook reader gets wrong, in the XML of an Excel sheet.

Calamine keeps only the last of two cells at one place, and reads dates below day 1 as times of day.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from posixpath import join, normpath
from typing import IO, NamedTuple
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

_PIECE = 2**20

_ERRORS = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")
"""The errors that the reader returns as empty cells."""

_BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17, 22), "day"),
    **dict.fromkeys((18, 19, 20, 21, 45, 47), "time"),
    46: "duration",
}
"""What the built-in number formats show."""

_NO_LETTERS = re.compile(r'"[^"]*"|\[(?![hms]+\])[^\]]*\]|\\.|_.|\*.', re.IGNORECASE)
"""The literal parts of a number format: quoted text, colours, conditions, escaped signs. ``[h]`` is a duration."""

_BEYOND = 2_958_466
"""The day number of 1 January 10000, counted from 1900."""
_FROM_1904 = 1_462
"""Days between the 1900 and the 1904 calendar."""
_LONGEST = 999_999_999
"""The most days of a duration."""


_CELL = re.compile(rb"<(?:\w+:)?c(?=[\s/>])")
_PLACE = re.compile(rb"""<(?:\w+:)?c\s(?:[^>]*?\s)?r=["']([A-Z]+[0-9]+)["']""")
_ROW = re.compile(rb"""<(?:\w+:)?row\s(?:[^>]*?\s)?r=["']([0-9]+)["']""")
_ODD_ERROR = re.compile(
    rb"""<(?:\w+:)?c\s(?=[^>]*\st=["']e["'])[^>]*[^/]>(?:(?!</(?:\w+:)?c>).)*?<(?:\w+:)?v(?:\s[^>]*)?>(?!(?:%s)<)"""
    % b"|".join(map(re.escape, (error.encode() for error in _ERRORS))),
    re.DOTALL,
)
_ODD_DATE = rb"""(?s)<(?:\w+:)?c\s(?=(?:[^>]*?\s)?s=["'](?:%s)["'])[^>]*[^/]>(?:(?!</(?:\w+:)?c>).)*?<(?:\w+:)?v(?:\s[^>]*)?>(?![1-9][0-9]{0,5}(?:\.[0-9]*)?<)"""
"""A date cell whose number may lie before the first day or after the last."""


class BadCell(NamedTuple):
    """A cell that makes its workbook bad.

    Attributes:
        row: the cell's row, from 1.
        column: the cell's column, from 0.
        reason: what was expected and found.
    """

    row: int
    column: int
    reason: str


@dataclass
class SheetNotes:
    """The cells of a sheet that need special care.

    Attributes:
        bad: the first cell that cannot be loaded; None if there is none.
        dates: the days that the reader takes for times of day, by row, from 1, and column, from 0.
    """

    bad: BadCell | None = None
    dates: dict[tuple[int, int], date | datetime] = field(default_factory=dict)


def read_notes(content: bytes, name: str) -> SheetNotes:
    """Return the notes about a sheet; empty for other workbook formats, which cannot have such cells.

    Also empty for a file that the reader refuses.
    """
    try:
        with ZipFile(io.BytesIO(content)) as book:
            workbook = _read_elements(book, "xl/workbook.xml")
            path = _path_of(book, workbook, name)
            is_1904 = any(
                tag == "workbookPr" and attributes.get("date1904") in ("1", "true")
                for tag, attributes in workbook
            )
            styles = _read_styles(book)
            with book.open(path) as sheet:
                if not _may_have_notes(sheet, styles):
                    return SheetNotes()
            reader = _CellParser(styles, is_1904=is_1904)
            with book.open(path) as sheet:
                while piece := sheet.read(_PIECE):
                    reader.parser.Parse(piece, False)
            return reader.notes
    except (
        BadZipFile,
        KeyError,
        ValueError,
        OSError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        expat.ExpatError,
    ):
        return SheetNotes()


def _may_have_notes(sheet: IO[bytes], styles: Sequence[str]) -> bool:
    """Return whether a sheet may have cells to note, by a fast search in its text; False for most sheets.

    False if the rows are unique and in order, each cell names its place once, dates lie within the calendar,
    and each error is known.
    """
    dates = "|".join(str(number) for number, shows in enumerate(styles) if shows)
    odd_date = re.compile(_ODD_DATE % dates.encode()) if dates else None
    rest, last_row = sheet.read(4), 0
    if not rest.lstrip(codecs.BOM_UTF8).startswith(b"<"):
        return True  # another encoding, such as UTF-16
    while piece := sheet.read(_PIECE):
        rest += piece
        end = rest.rfind(b"row>") + 4
        if end < 4:
            continue
        rows, rest = rest[:end], rest[end:]
        numbers, places = [*map(int, _ROW.findall(rows))], _PLACE.findall(rows)
        is_in_order = all(before < after for before, after in pairwise([last_row, *numbers]))
        last_row = numbers[-1] if numbers else last_row
        if not is_in_order or len(set(places)) < len(_CELL.findall(rows)):
            return True
        if _ODD_ERROR.search(rows) or (odd_date is not None and odd_date.search(rows)):
            return True
    return False


def _read_elements(book: ZipFile, path: str) -> Sequence[tuple[str, Mapping[str, str]]]:
    """Return the names, without prefixes, and attributes of all elements of a small part."""
    elements: list[tuple[str, Mapping[str, str]]] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, attributes: elements.append((_local_name(tag), attributes))
    parser.Parse(book.read(path), True)
    return elements


def _path_of(book: ZipFile, workbook: Sequence[tuple[str, Mapping[str, str]]], name: str) -> str:
    """Return the path of a sheet's XML."""
    (number,) = (
        value
        for tag, attributes in workbook
        if tag == "sheet" and attributes.get("name") == name
        for key, value in attributes.items()
        if key.endswith(":id")
    )
    parts = _read_elements(book, "xl/_rels/workbook.xml.rels")
    (target,) = (attributes["Target"] for _, attributes in parts if attributes.get("Id") == number)
    return normpath(join("/xl", target)).lstrip("/")


def _read_styles(book: ZipFile) -> Sequence[str]:
    """Return what cells of each style show: "day", "time", "duration", or "" for others."""
    own: dict[int, str] = {}
    styles: list[str] = []
    is_of_cells = False
    for tag, attributes in (
        _read_elements(book, "xl/styles.xml") if "xl/styles.xml" in book.namelist() else ()
    ):
        if tag == "numFmt":
            own[int(attributes["numFmtId"])] = attributes["formatCode"]
        elif tag in ("cellXfs", "cellStyleXfs", "cellStyles", "dxfs"):
            is_of_cells = tag == "cellXfs"
        elif tag == "xf" and is_of_cells:
            styles.append(_style(int(attributes.get("numFmtId", 0)), own))
    return styles


def _style(number: int, own: Mapping[int, str]) -> str:
    if number not in own:
        return _BUILT_IN.get(number, "")
    letters = _NO_LETTERS.sub("", own[number].partition(";")[0]).lower()
    if "[" in letters:
        return "duration"
    has_time = re.search("[hs]", letters) is not None
    is_day = re.search("[dy]", letters) is not None or ("m" in letters and not has_time)
    return "day" if is_day else "time" if has_time else ""


def _local_name(tag: str) -> str:
    return tag.rpartition(":")[2]


def _column(reference: str) -> int:
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


class _CellParser:
    """A parser that notes the cells of a sheet."""

    def __init__(self, styles: Sequence[str], *, is_1904: bool) -> None:
        self.notes = SheetNotes()
        self._styles, self._is_1904 = styles, is_1904
        self._row, self._column = 0, -1
        self._occupied: dict[int, int] = {}
        self._kind, self._shows, self._value = "", "", ""
        self._is_value = False
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local_name(tag)
        if name == "c":
            self._start_cell(attributes)
        elif name == "v":
            self._is_value, self._value = True, ""
        elif name == "row":
            self._row, self._column = int(attributes.get("r", self._row + 1)), -1

    def _text(self, text: str) -> None:
        if self._is_value:
            self._value += text

    def _end(self, tag: str) -> None:
        if self._is_value and _local_name(tag) == "v":
            self._is_value = False
            if self._kind == "e" and self._value and self._value not in _ERRORS:
                self._note_bad(
                    f"expected a value, or one of the errors {', '.join(_ERRORS)}, found the error {self._value}"
                )
            elif self._kind == "n" and self._shows:
                self._note_number(self._value)

    def _start_cell(self, attributes: Mapping[str, str]) -> None:
        reference = attributes.get("r")
        self._column = self._column + 1 if reference is None else _column(reference)
        self._kind, self._shows = attributes.get("t", "n"), ""
        if (style := int(attributes.get("s", 0))) < len(self._styles):
            self._shows = self._styles[style]
        occupied_places, place = self._occupied.get(self._row, 0), 1 << self._column
        if occupied_places & place:
            self._note_bad("expected one cell, found a second one at the same place")
        self._occupied[self._row] = occupied_places | place

    def _note_number(self, text: str) -> None:
        number = float(text)
        if self._shows == "duration":
            if abs(number) > _LONGEST:
                self._note_bad(f"expected a duration of at most {_LONGEST:,} days, found {text}")
        elif number < 0:
            self._note_bad(
                f"expected a date of the workbook's calendar, found {text}, which lies before its first day"
            )
        elif number >= _BEYOND - (_FROM_1904 if self._is_1904 else 0):
            self._note_bad(f"expected a date up to the year 9999, found day {text}, which lies after it")
        elif number < 1 and self._is_1904 and self._shows == "day":
            moment = datetime.fromisoformat("1904-01-01") + timedelta(milliseconds=round(number * 86_400_000))
            self.notes.dates[self._row, self._column] = moment if moment.time() != time() else moment.date()

    def _note_bad(self, reason: str) -> None:
        self.notes.bad = self.notes.bad or BadCell(self._row, self._column, reason)
