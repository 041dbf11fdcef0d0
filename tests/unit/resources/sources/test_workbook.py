"""The records in a sheet of a workbook."""

from __future__ import annotations

import io
import re
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from partitions.errors import BadFile
from partitions.path.bad_files import FILE_VANISHED
from partitions.sources.formats import ExcelOptions
from resources.connections.places import Place
from resources.sources.files.workbook import Sheet, column_letters, find_sheets, read_sheet
from tests.support.workbooks import edited, numbers, ods, saved, xlsx

ROWS = [["id", "text"], [1, "a"], [2, None]]


def _read(folder: Path, data: bytes, name: str = "a.xlsx", **options: Any) -> Sheet:
    (folder / name).write_bytes(data)
    return read_sheet(Place(str(folder)), name, ExcelOptions.model_validate(options))


def _rows(sheet: Sheet) -> list[tuple[int, list[Any]]]:
    return [(record.row, list(record.cells)) for record in sheet.records]


@pytest.mark.parametrize(
    ("name", "data"), [("a.xlsx", xlsx(ROWS)), ("a.ods", ods(ROWS)), ("odd [name].xlsx", xlsx(ROWS))]
)
def test_the_first_row_names_columns_of_rows_below(tmp_path: Path, name: str, data: bytes) -> None:
    sheet = _read(tmp_path, data, name)
    assert [(column.name, column.number) for column in sheet.columns] == [("id", 0), ("text", 1)]
    assert _rows(sheet) == [(2, [1, "a"]), (3, [2, None])]


def test_the_old_format_is_read_too(tmp_path: Path) -> None:
    sheet = _read(tmp_path, (Path(__file__).parent / "rows.xls").read_bytes(), "a.xls")
    assert [column.name for column in sheet.columns] == ["id", "day"]
    assert _rows(sheet) == [(2, [7, date(2026, 1, 2)])]


def test_cells_keep_what_they_are(tmp_path: Path) -> None:
    values = [1, 1.5, "x", True, date(2026, 1, 2), datetime.fromisoformat("2026-01-02T03:04:05.123"), time(3, 4), timedelta(hours=30)]  # fmt: skip
    sheet = _read(tmp_path, xlsx([list("abcdefgh"), values]))
    assert _rows(sheet) == [(2, values)]


def test_empty_blank_and_error_cells_are_no_value(tmp_path: Path) -> None:
    sheet = _read(
        tmp_path, xlsx([["a", "b", "c"], [None, " ", "#DIV/0!"], [1, "", "#N/A"], [], [None, None, 2]])
    )
    assert _rows(sheet) == [(3, [1, None, None]), (5, [None, None, 2])]


def test_the_first_day_of_the_calendar_from_1904_is_a_day_and_a_time_alone_is_none(tmp_path: Path) -> None:
    day, moment, clock = "yyyy\\-mm\\-dd;@", "d/m/yy hh:mm", "hh:mm"
    sheet = _read(
        tmp_path, numbers((0, day), (0.5, moment), (0.5, clock), (1, day), (0, "0.00"), is_1904=True)
    )
    midday = datetime.fromisoformat("1904-01-01T12:00")
    assert _rows(sheet) == [(2, [date(1904, 1, 1), midday, time(12), date(1904, 1, 2), 0])]
    assert _rows(_read(tmp_path, numbers((0.5, clock)))) == [(2, [time(12)])]


@pytest.mark.parametrize(
    ("number", "form", "is_1904", "found"),
    [
        (-1, "yyyy-mm-dd", False, "a date of the workbook's calendar, found -1, which lies before its first day"),
        (-0.5, "hh:mm", True, "a date of the workbook's calendar, found -0.5, which lies before its first day"),
        (2_958_466, "mmm yy", False, "a date up to the year 9999, found day 2958466, which lies after it"),
        (2_957_004, "d/m/yy", True, "a date up to the year 9999, found day 2957004, which lies after it"),
        (1e10, "[h]:mm", False, "a duration of at most 999,999,999 days, found 10000000000"),
    ],
)  # fmt: skip
def test_a_number_that_is_shown_as_a_date_and_is_none_makes_the_file_bad(
    tmp_path: Path, number: float, form: str, is_1904: bool, found: str
) -> None:
    with pytest.raises(BadFile, match=re.escape(f"sheet Sheet, B2: expected {found}. Fix")):
        _read(tmp_path, numbers((1, form), (number, form), is_1904=is_1904))
    assert _rows(_read(tmp_path, numbers((-1, "0"), (-1.5, "[h]:mm")))) == [(2, [-1, timedelta(hours=-36)])]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('<c r="B2"', '<c r="A2" t="n"><v>7</v></c><c r="B2"', "A2"),
        ('<c r="B2"', '<x:c xmlns:x="u" r="A2"/><c r="B2"', "A2"),
        ("</sheetData>", '<row r="2"><c r="B2"><v>7</v></c></row></sheetData>', "B2"),
        ('<c r="B2"', '<c><v>7</v></c><c r="B2"', "B2"),
    ],
)
def test_two_cells_at_one_place_make_the_file_bad(tmp_path: Path, old: str, new: str, where: str) -> None:
    with pytest.raises(
        BadFile, match=f"sheet Data, {where}: expected one cell, found a second one at the same place"
    ):
        _read(tmp_path, edited(xlsx([["id", "n"], [1, 2]]), old, new))


def test_a_row_may_stand_in_two_parts(tmp_path: Path) -> None:
    parts = edited(
        xlsx([["id", "n"], [1]]), "</sheetData>", '<row r="2"><c r="B2"><v>7</v></c></row></sheetData>'
    )
    assert _rows(_read(tmp_path, parts)) == [(2, [1, 7])]


@pytest.mark.parametrize(
    ("error", "is_known"), [("#REF!", True), ("#N/A", True), ("#SPILL!", False), ("#CALC!", False)]
)
def test_an_error_is_no_value_or_a_bad_file_by_name(tmp_path: Path, error: str, is_known: bool) -> None:
    data = edited(xlsx([["id", "n"], [1, "#N/A"]]), "<v>#N/A</v>", f"<f>A1</f><v>{error}</v>")
    if is_known:
        assert _rows(_read(tmp_path, data)) == [(2, [1, None])]
        return
    with pytest.raises(
        BadFile,
        match=re.escape(
            f"sheet Data, B2: expected a value, or one of the errors #DIV/0!, #N/A, #NAME?, #NULL!, #NUM!, #REF!, #VALUE!, found the error {error}"
        ),
    ):
        _read(tmp_path, data)


def test_the_first_row_with_a_value_is_the_header(tmp_path: Path) -> None:
    sheet = _read(tmp_path, xlsx([[], [" "], ["id", "text"], [], [1, "x"]]))
    assert ([column.name for column in sheet.columns], sheet.header_row) == (["id", "text"], 3)
    assert _rows(sheet) == [(5, [1, "x"])]


@pytest.mark.parametrize(
    ("header", "index"),
    [([None, "a", "b"], 0), (["a", None, "b"], None), ([None, "a", None], None), ([None, "a"], None)],
)
def test_only_the_first_column_may_be_unnamed(tmp_path: Path, header: list[Any], index: int | None) -> None:
    assert _read(tmp_path, xlsx([header, [1, 2, 3]])).index == index


def test_a_workbook_with_a_password_is_named(tmp_path: Path) -> None:
    data = (
        bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(600)
    )
    with pytest.raises(BadFile, match="it is protected by a password"):
        _read(tmp_path, data)


def test_a_header_row_that_is_empty_makes_the_file_bad_if_others_are_not(tmp_path: Path) -> None:
    with pytest.raises(
        BadFile, match=r"names of the columns in row 1 \(options.header_row\), found an empty row"
    ):
        _read(tmp_path, xlsx([[], ["id"], [1]]), header_row=1)
    assert _rows(_read(tmp_path, xlsx([[]]), header_row=1)) == []


def test_a_name_with_a_nul_makes_the_file_bad(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="A1: expected the name of a column, found one with a NUL"):
        _read(tmp_path, xlsx([["a_x0000_b"], [1]]))


def test_a_place_among_the_sheets_counts_those_that_are_shown(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(io.BytesIO(xlsx([["id"], [1]], More=[["id"], [2]])))
    book["Data"].sheet_state = "hidden"
    assert _rows(_read(tmp_path, saved(book))) == [(2, [2])]
    assert _rows(_read(tmp_path, saved(book), sheet="Data")) == [(2, [1])]


def test_an_empty_sheet_beside_one_with_cells_makes_the_file_bad_unless_it_is_named(tmp_path: Path) -> None:
    data = xlsx([], More=[["id"], [2]])
    with pytest.raises(
        BadFile, match=r"records in sheet Data, found none, but cells in More \(options.sheet\)"
    ):
        _read(tmp_path, data)
    assert _rows(_read(tmp_path, data, sheet="Data")) == []


def test_of_several_sheets_with_cells_one_is_named_where_nothing_else_tells_it(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(xlsx([["Report"], ["2026"]], sheet="Cover", Data=ROWS, Empty=[]))
    (tmp_path / "b.xlsx").write_bytes(xlsx(ROWS, sheet="Data", Empty=[]))
    place = Place(str(tmp_path))
    with pytest.raises(BadFile, match=r"found 2: Cover, Data\. .* options: \{sheet: \"Data\"\}"):
        read_sheet(place, "a.xlsx", ExcelOptions(), must_be_named=True)
    assert read_sheet(place, "a.xlsx", ExcelOptions(sheet=1), must_be_named=True).name == "Cover"
    assert read_sheet(place, "b.xlsx", ExcelOptions(), must_be_named=True).name == "Data"


@pytest.mark.parametrize(
    ("first", "more", "sheet"),
    [
        ([["Report of 2026"]], {"More": ROWS, "Last": ROWS}, "More"),
        ([["Report"], ["2026"]], {"More": ROWS}, "More"),
        ([["id"], [1]], {"More": []}, "Data"),
        ([], {"More": [["id"]]}, None),
        (ROWS, {"More": ROWS}, "Data"),
    ],
)
def test_the_first_shown_sheet_with_header_and_row_is_told(
    tmp_path: Path, first: list[Any], more: dict[str, Any], sheet: str | None
) -> None:
    (tmp_path / "a.xlsx").write_bytes(xlsx(first, **more))
    assert find_sheets(Place(str(tmp_path)), "a.xlsx") == (["Data", *more], sheet)


def test_a_header_may_stand_lower_and_further_right_and_units_below_it_are_skipped(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    page = book.active
    assert page is not None
    page["A1"] = "Report of May"
    for cell, value in {"C3": "id", "D3": "size", "D4": "kg", "C5": 1, "D5": 2.5}.items():
        page[cell] = value
    sheet = _read(tmp_path, saved(book), header_row=3, skip_rows=1)
    assert [(column.name, column_letters(column.number)) for column in sheet.columns] == [
        ("id", "C"),
        ("size", "D"),
    ]
    assert _rows(sheet) == [(5, [None, None, 1, 2.5])]


def test_without_a_header_all_rows_are_records(tmp_path: Path) -> None:
    sheet = _read(tmp_path, xlsx([[1, "a"], [2, "b"]]), header_row=0)
    assert (list(sheet.columns), [row for row, _ in _rows(sheet)]) == ([], [1, 2])


@pytest.mark.parametrize(("sheet", "value"), [("More", 2), (2, 2), ("Data", 1), (1, 1), ("2026", 3), (3, 3)])
def test_a_sheet_is_chosen_by_its_name_or_its_place(tmp_path: Path, sheet: str | int, value: int) -> None:
    more: dict[str, Any] = {"More": [["id"], [2]], "2026": [["id"], [3]]}
    data = xlsx([["id"], [1]], **more)
    assert _rows(_read(tmp_path, data, sheet=sheet)) == [(2, [value])]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sheet": "None"}, "expected a sheet named None (options.sheet), found Data, More"),
        ({"sheet": 3}, "expected at least 3 sheets (options.sheet), found Data, More"),
    ],
)
def test_a_missing_sheet_makes_the_file_bad(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    with pytest.raises(BadFile) as refused:
        _read(tmp_path, xlsx(ROWS, More=ROWS), **options)
    assert refused.value.why == why


@pytest.mark.parametrize("data", [b"no workbook", xlsx(ROWS)[:-300], b"PK\x03\x04"])
def test_what_is_no_workbook_is_a_bad_file(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadFile, match=r"file a\.xlsx: cannot be read"):
        _read(tmp_path, data)


def test_a_name_that_stands_twice_in_the_header_makes_the_file_bad(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="expected each column once, found ID in A1 and C1"):
        _read(tmp_path, xlsx([["id", "b", "ID"], [1, 2, 3]]))


def test_a_workbook_without_cells_has_no_columns_and_no_records(tmp_path: Path) -> None:
    sheet = _read(tmp_path, xlsx([]))
    assert (list(sheet.columns), _rows(sheet)) == ([], [])


def test_a_file_that_is_gone_has_vanished(tmp_path: Path) -> None:
    with pytest.raises(BadFile) as refused:
        read_sheet(Place(str(tmp_path)), "a.xlsx", ExcelOptions())
    assert refused.value.code == FILE_VANISHED


def test_columns_have_the_letters_that_programs_show() -> None:
    assert [column_letters(number) for number in (0, 25, 26, 51, 52, 701, 702, 16383)] == [
        "A", "Z", "AA", "AZ", "BA", "ZZ", "AAA", "XFD",
    ]  # fmt: skip


@pytest.mark.s3
def test_a_workbook_of_a_bucket_is_read_and_one_that_is_gone_has_vanished(bucket: Place) -> None:
    bucket.store.put("day=1/a é.xlsx", xlsx(ROWS))
    assert _rows(read_sheet(bucket, "day=1/a é.xlsx", ExcelOptions())) == [(2, [1, "a"]), (3, [2, None])]
    with pytest.raises(BadFile) as refused:
        read_sheet(bucket, "gone.xlsx", ExcelOptions())
    assert refused.value.code == FILE_VANISHED
