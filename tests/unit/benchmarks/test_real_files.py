"""The proof by files of others: it tells each row that is lost, doubled or altered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest

from benchmarks.real_files.comparing import Lossy, Number, canonical, compare
from benchmarks.real_files.packages import PACKAGES
from benchmarks.real_files.readers import Unreadable, read
from benchmarks.real_files.sheets import sheets
from tests.support.workbooks import edited, xlsx

ROWS = [{"id": "1", "v": "0.1"}, {"id": "2", "v": ""}, {"id": "2", "v": ""}]
TABLE: list[dict[str, Any]] = [{"id": 1, "v": 0.1}, {"id": 2, "v": None}, {"id": 2, "v": None}]
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64())])


def _loaded(*rows: Mapping[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], SCHEMA)


def _written() -> list[dict[str, Any]]:
    return [{name: value or None for name, value in row.items()} for row in ROWS]


def test_a_table_with_each_row_of_its_file_in_any_order_is_equal() -> None:
    assert compare(_written(), _loaded(*reversed(TABLE))) is None


@pytest.mark.parametrize(
    ("table", "missing", "additional", "first"),
    [
        (TABLE[:2], 1, 0, "row 3: is in the table 1 times only"),
        ([*TABLE, TABLE[0]], 0, 1, "a row of the table is twice"),
        ([*TABLE, {"id": 3, "v": 1.0}], 0, 1, "a row of the table is not in the file"),
        ([{"id": 1, "v": 0.10000000000000002}, *TABLE[1:]], 1, 1, "row 1: column v: expected"),
        ([], 3, 0, "row 1: the table is empty"),
    ],
)
def test_a_row_that_is_lost_doubled_or_altered_is_told(
    table: list[dict[str, Any]], missing: int, additional: int, first: str
) -> None:
    difference = compare(_written(), _loaded(*table))
    assert difference is not None
    assert (difference.missing, difference.additional) == (missing, additional)
    assert difference.first.startswith(first)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("1.0", pa.int64()),
        (1.5, pa.int32()),
        (Number("9007199254740993"), pa.float64()),
        ("1.005", pa.decimal128(10, 2)),
        ("7f", pa.float64()),
        ("2026-05", pa.date32()),
        ("09:15", pa.timestamp("us", "UTC")),
        (datetime(2026, 1, 1, 5, tzinfo=UTC), pa.date32()),
        ({"a": 1, "b": 2}, pa.struct([("a", pa.int64())])),
        (b"\xff", pa.string()),
    ],
)
def test_a_value_that_a_type_does_not_hold_exactly_is_equal_to_none(raw: Any, kind: pa.DataType) -> None:
    with pytest.raises(Lossy):
        canonical(raw, kind)


@pytest.mark.parametrize(
    ("raw", "stored", "kind"),
    [
        ("0012", 12, pa.int64()),
        (Number("1e2"), 100.0, pa.float64()),
        ("1.50", Decimal("1.5"), pa.decimal128(10, 2)),
        ("2026-05-07T10:00+02:00", datetime(2026, 5, 7, 8, tzinfo=UTC), pa.timestamp("us", "UTC")),
        (date(2026, 5, 7), "2026-05-07", pa.string()),
        ({"b": [Number("1.0"), None]}, '{"b": [1.0,null]}', pa.string()),
        ([("k", 1)], {"k": 1}, pa.map_(pa.string(), pa.int64())),
    ],
)
def test_a_raw_value_is_compared_as_its_column_holds_it(raw: Any, stored: Any, kind: pa.DataType) -> None:
    assert canonical(raw, kind) == canonical(stored, kind)


def test_texts_that_differ_are_never_equal() -> None:
    texts = ["a", "a ", "A", "1", "1.0", "", '{"a": 1}', '{"a": 1.0}', '{"a": "1"}']
    assert len({repr(canonical(text, pa.string())) for text in texts}) == len(texts)


@pytest.mark.parametrize(
    ("name", "form", "text", "rows"),
    [
        ("a.csv", "csv", 'a,b\n1,"x\r\ny"\n', [{"a": "1", "b": "x\r\ny"}]),
        ("a.tsv", "csv", "a\tb\n1\t\n\n", [{"a": "1", "b": None}]),
        ("a.json", "json", '[{"a": 1.10}]', [{"a": "1.10"}]),
        ("a.json", "ndjson", '{"a": ""}\n\n{"a": null}', [{"a": ""}, {"a": None}]),
        ("a.xml", "xml", '<r><o k="1"><i>2</i></o></r>', [{"_k": "1", "i": "2"}]),
        ("a.xml", "xml", "<r><o>\n <i> 2 </i>\n</o></r>", [{"i": "2"}]),
    ],
)
def test_the_other_reader_takes_values_as_they_are_written(
    tmp_path: Path, name: str, form: str, text: str, rows: list[dict[str, Any]]
) -> None:
    file = tmp_path / name
    file.write_bytes(text.encode())
    assert list(read(file, form, {"rowTag": "o"}, pa.schema([]))) == rows


def test_texts_of_xml_keep_their_spaces_in_a_column_of_texts(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text('<r><o k=" a "><i>\n 2 </i><i/></o></r>')
    columns = pa.schema([("_k", pa.string()), ("i", pa.list_(pa.string()))])
    assert list(read(file, "xml", {"rowTag": "o"}, columns)) == [{"_k": " a ", "i": ["\n 2 ", ""]}]


def test_the_reader_of_the_xml_of_sheets_finds_what_openpyxl_finds(tmp_path: Path) -> None:
    cells = [
        "a",
        1,
        1.5,
        True,
        date(2026, 1, 2),
        datetime.fromisoformat("2026-01-02T03:04:05"),
        time(3, 4),
        None,
    ]
    rows: list[list[Any]] = [list("abcdefgh"), cells, [], [None, " b "]]
    file = tmp_path / "a.xlsx"
    file.write_bytes(xlsx(rows, More=[[5]]))
    expected = [
        [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in openpyxl.load_workbook(file)
    ]
    assert list(sheets(file)) == expected
    styled = tmp_path / "b.xlsx"
    styled.write_bytes(edited(file.read_bytes(), "<patternFill />", "", "xl/styles.xml"))
    with pytest.raises(TypeError):
        openpyxl.load_workbook(styled)
    assert [row["c"] for row in read(styled, "excel", {}, pa.schema([]))] == [1.5, None]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("csv", "a,b\n1\n"),
        ("csv", 'a\n"x"y\n'),
        ("json", '{"a":1,"a":2}'),
        ("ndjson", '{"a": NaN}'),
        ("xml", "<a>"),
    ],
)
def test_the_other_reader_is_strict(tmp_path: Path, form: str, text: str) -> None:
    file = tmp_path / "a"
    file.write_text(text)
    with pytest.raises(Unreadable):
        read(file, form, {"rowTag": "a"}, pa.schema([]))


def test_each_package_is_named_once_with_its_version() -> None:
    names = [(package.registry, package.name) for package in PACKAGES]
    assert len(set(names)) == len(names)
    assert all(package.version[0].isdigit() and package.files for package in PACKAGES)
