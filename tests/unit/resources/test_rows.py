from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from partitions.errors import SourceError
from resources.connections.places import Place
from resources.tables.registry import open_table


def _table(tmp_path: Path, columns: dict[str, list[Any]], *types: pa.DataType) -> Place:
    place = Place(str(tmp_path / "table"))
    arrays = [pa.array(values, kind) for values, kind in zip(columns.values(), types, strict=True)]
    write_deltalake(place.url, pa.table(dict(zip(columns, arrays, strict=True))), mode="append")
    return place


def test_each_distinct_row_is_there_once_and_sorted(tmp_path: Path) -> None:
    place = _table(tmp_path, {"b": [2, 1, 2, None], "a": ["x", "y", "x", "z"]}, pa.int64(), pa.string())
    _table(tmp_path, {"b": [1, 3], "a": ["y", "w"]}, pa.int64(), pa.string())
    assert list(open_table("delta", place).contents.distinct_rows(["a", "b"])) == [
        {"a": "w", "b": 3},
        {"a": "x", "b": 2},
        {"a": "y", "b": 1},
        {"a": "z", "b": None},
    ]
    assert list(open_table("delta", place).contents.distinct_rows(["b"])) == [
        {"b": None},
        {"b": 1},
        {"b": 2},
        {"b": 3},
    ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int32(), 5),
        (pa.string(), "5"),
        (pa.bool_(), True),
        (pa.float64(), 5.0),
        (pa.decimal128(10, 2), Decimal("5.00")),
        (pa.date32(), date(2024, 1, 31)),
        (pa.timestamp("us", "UTC"), datetime(2024, 1, 31, 10, 0, 0, 1, tzinfo=UTC)),
        (pa.timestamp("us"), datetime.fromisoformat("2024-01-31T10:00:00.000001")),
    ],
)
def test_a_value_keeps_its_type(tmp_path: Path, kind: pa.DataType, value: Any) -> None:
    (row,) = open_table("delta", _table(tmp_path, {"a": [value]}, kind)).contents.distinct_rows(["a"])
    assert (row["a"], type(row["a"])) == (value, type(value))
    if isinstance(value, datetime):
        assert row["a"].utcoffset() == value.utcoffset()


def test_odd_names_are_names(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "table"))
    odd = ['A"b', "select", "x.y", "Ä"]
    write_deltalake(place.url, pa.table({name: [1] for name in odd}))
    assert list(open_table("delta", place).contents.distinct_rows(odd)) == [dict.fromkeys(odd, 1)]


def test_deleted_rows_are_not_there(tmp_path: Path) -> None:
    place = _table(tmp_path, {"a": [1, 2]}, pa.int64())
    DeltaTable(place.url).delete("a = 1")
    assert list(open_table("delta", place).contents.distinct_rows(["a"])) == [{"a": 2}]


def test_an_empty_table_has_no_rows(tmp_path: Path) -> None:
    assert (
        list(open_table("delta", _table(tmp_path, {"a": []}, pa.int64())).contents.distinct_rows(["a"])) == []
    )


def test_a_missing_table_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="expected a table, found none") as missing:
        open_table("delta", Place(str(tmp_path / "nope"))).contents.distinct_rows(["a"])
    assert missing.value.code == "source_missing"
    assert not (tmp_path / "nope").exists()


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (
            "surveyid",
            r"expected a column surveyid \(did you mean surveyId\?\), found the columns surveyId, tags",
        ),
        ("tags", "expected a column with single values, found tags"),
    ],
)
def test_a_column_that_gives_no_units_is_an_error_at_once(tmp_path: Path, field: str, said: str) -> None:
    place = _table(tmp_path, {"surveyId": [], "tags": []}, pa.int64(), pa.list_(pa.string()))
    with pytest.raises(SourceError, match=said):
        open_table("delta", place).contents.distinct_rows([field])


def test_more_rows_than_a_list_of_units_has_are_an_error(tmp_path: Path) -> None:
    place = _table(tmp_path, {"a": [1, 2, 3, 3]}, pa.int64())
    assert len(list(open_table("delta", place).contents.distinct_rows(["a"], max_rows=3))) == 3
    with pytest.raises(SourceError, match="expected at most 2 distinct rows of a, found more"):
        open_table("delta", place).contents.distinct_rows(["a"], max_rows=2)


def test_a_log_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    place = _table(tmp_path, {"a": [1]}, pa.int64())
    (tmp_path / "table" / "_delta_log" / "00000000000000000000.json").write_text("{broken")
    with pytest.raises(SourceError, match=r"table .*: cannot"):
        open_table("delta", place).contents.distinct_rows(["a"])


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    place = _table(tmp_path, {"a": [1]}, pa.int64())
    next((tmp_path / "table").glob("*.parquet")).unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        open_table("delta", place).contents.distinct_rows(["a"])
