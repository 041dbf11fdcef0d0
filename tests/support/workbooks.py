"""Workbooks as programs write them: .xlsx by openpyxl, and .ods, which is zipped XML."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

import openpyxl
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

Cells = Sequence[Any]
"""Rows, each a sequence of values."""


def xlsx(rows: Cells, *, sheet: str = "Data", **more: Cells) -> bytes:
    """Return a workbook whose first sheet has these rows; ``more`` are further sheets by name."""
    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = sheet
    sheets: Mapping[str, Cells] = {sheet: rows, **more}
    for name, cells in sheets.items():
        page = book[name] if name in book.sheetnames else book.create_sheet(name)
        for row in cells:
            page.append(list(row))
    return saved(book)


def saved(book: openpyxl.Workbook) -> bytes:
    """Return a workbook as a file."""
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def numbers(*cells: tuple[float, str], is_1904: bool = False) -> bytes:
    """Return a workbook with a header and a row of numbers, each with its format."""
    book = openpyxl.Workbook()
    book.epoch = CALENDAR_MAC_1904 if is_1904 else CALENDAR_WINDOWS_1900
    sheet = book.active
    assert sheet is not None
    for column, (number, form) in enumerate(cells, 1):
        sheet.cell(1, column, f"c{column}")
        sheet.cell(2, column, number).number_format = form
    return saved(book)


def edited(workbook: bytes, old: str, new: str, part: str = "xl/worksheets/sheet1.xml") -> bytes:
    """Return a workbook with a text replaced in the XML of its first sheet, or of another part."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as packed, zipfile.ZipFile(buffer, "w") as edited_zip:
        for name in packed.namelist():
            content = packed.read(name)
            if name == part:
                assert old.encode() in content
                content = content.replace(old.encode(), new.encode())
            edited_zip.writestr(name, content)
    return buffer.getvalue()


def ods(rows: Cells, *, sheet: str = "Data") -> bytes:
    """Return a workbook of OpenDocument with these rows of numbers and texts."""
    body = "".join(f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>" for row in rows)
    spaces = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content{spaces} office:version="1.2"><office:body><office:spreadsheet>'
        f'<table:table table:name="{sheet}">{body}</table:table></office:spreadsheet></office:body></office:document-content>'
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        packed.writestr("content.xml", content)
        packed.writestr("META-INF/manifest.xml", _MANIFEST)
    return buffer.getvalue()


_MANIFEST = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
    '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
)


def _cell(value: Any) -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, int | float):
        return f'<table:table-cell office:value-type="float" office:value="{value}"><text:p>{value}</text:p></table:table-cell>'
    return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'
