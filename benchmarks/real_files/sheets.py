"""Reads the sheets of an xlsx workbook from its own XML, for workbooks that openpyxl refuses.

It refuses some for a style or a missing part. Only the standard library is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from pathlib import Path
from posixpath import join, normpath
from typing import Any
from xml.etree import ElementTree as ET
from zipfile import ZipFile

_DATES = {*range(14, 23), 45, 46, 47}
"""The built-in formats of numbers that show dates and times."""

_NO_LETTERS = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.|\*.')
"""What a format of numbers shows as it stands: quoted text, colours and conditions, and signs behind a backslash."""

Cell = float | int | str | bool | datetime | time | None


def sheets(file: Path) -> Iterator[list[list[Cell]]]:
    """Yield the rows of each sheet in the workbook's order; empty cells and errors are None."""
    with ZipFile(file) as book:
        names = set(book.namelist())
        workbook = _root(book, "xl/workbook.xml")
        targets = {
            part.attrib["Id"]: part.attrib["Target"] for part in _root(book, "xl/_rels/workbook.xml.rels")
        }
        texts = (
            [_text(item) for item in _root(book, "xl/sharedStrings.xml")]
            if "xl/sharedStrings.xml" in names
            else []
        )
        formats = _date_styles(_root(book, "xl/styles.xml")) if "xl/styles.xml" in names else []
        properties = next(_named(workbook, "workbookPr"), None)
        is_1904 = properties is not None and properties.get("date1904") in ("1", "true")
        for sheet in _named(workbook, "sheet"):
            (number,) = (value for name, value in sheet.attrib.items() if name.endswith("}id"))
            path = normpath(join("xl", targets[number])).removeprefix("/")
            yield _rows(_root(book, path), texts, formats, is_1904=is_1904)


def _root(book: ZipFile, path: str) -> ET.Element:
    return ET.fromstring(book.read(path))


def _named(above: ET.Element, name: str) -> Iterator[ET.Element]:
    """Return the elements with a name at any depth, whatever their namespace."""
    return (element for element in above.iter() if element.tag.rpartition("}")[2] == name)


def _text(item: ET.Element) -> str:
    """Return a text with its runs, without signs for its pronunciation."""
    runs = [element for element in item if element.tag.rpartition("}")[2] in ("t", "r")]
    return "".join(part.text or "" for run in runs for part in _named(run, "t"))


def _date_styles(styles: ET.Element) -> Sequence[bool]:
    """Return, for each style, whether its numbers are dates or times."""
    own = {
        int(element.attrib["numFmtId"]): element.attrib["formatCode"] for element in _named(styles, "numFmt")
    }
    cells = next(_named(styles, "cellXfs"), ())
    numbers = [int(cell_format.get("numFmtId", 0)) for cell_format in cells]
    return [
        bool(re.search("[dmyhs]", _NO_LETTERS.sub("", own[number]).lower()))
        if number in own
        else number in _DATES
        for number in numbers
    ]


def _rows(
    sheet: ET.Element, texts: Sequence[str], dates: Sequence[bool], *, is_1904: bool
) -> list[list[Cell]]:
    cells_by_row: dict[int, dict[int, Cell]] = {}
    row_number = 0
    for row in _named(sheet, "row"):
        row_number = int(row.get("r", row_number + 1))
        place = -1
        for cell in _named(row, "c"):
            place = _column(cell.attrib["r"]) if "r" in cell.attrib else place + 1
            cells_by_row.setdefault(row_number, {})[place] = _value(cell, texts, dates, is_1904=is_1904)
    width = max((place + 1 for cells in cells_by_row.values() for place in cells), default=0)
    return [
        [cells_by_row.get(number, {}).get(place) for place in range(width)]
        for number in range(1, max(cells_by_row, default=0) + 1)
    ]


def _column(reference: str) -> int:
    number = 0
    for letter in re.sub("[^A-Z]", "", reference):
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _value(cell: ET.Element, texts: Sequence[str], dates: Sequence[bool], *, is_1904: bool) -> Cell:
    stored = next((element.text or "" for element in _named(cell, "v")), None)
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return next((_text(element) for element in _named(cell, "is")), None)
    if stored is None or kind == "e":
        return None
    values: Mapping[str, Any] = {
        "s": lambda: texts[int(stored)],
        "str": lambda: stored,
        "b": lambda: stored == "1",
    }
    if kind in values:
        value: Cell = values[kind]()
        return value
    if kind == "d":
        return datetime.fromisoformat(stored)
    number = float(stored)
    style = int(cell.get("s", 0))
    if style < len(dates) and dates[style]:
        return _time(number, is_1904=is_1904)
    return int(number) if number.is_integer() else number


def _time(number: float, *, is_1904: bool) -> datetime | time:
    """Return a date, with or without a time, or a time of day. Excel counts 29 February 1900, day 60."""
    if 0 <= number < 1:
        return (datetime.fromisoformat("1899-12-30") + timedelta(days=number)).time()
    begin = "1904-01-01" if is_1904 else "1899-12-31" if number < 60 else "1899-12-30"
    return datetime.fromisoformat(begin) + timedelta(milliseconds=round(number * 86_400_000))
