"""``schema_mode: rescue``: what does not fit the pinned schema is kept as JSON in ``_rescued_data`` (docs/schemas.md)."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.project.errors import InvalidProject
from tests.integration.conftest import MakeFeed
from tests.integration.test_avro_xml_excel import avro
from tests.support.feed import Feed

RESCUE = {"schema_mode": "rescue"}


def rows(feed: Feed, *columns: str) -> list[tuple[Any, ...]]:
    """Rows by their columns, with what was rescued as values."""
    found = feed.rows(*columns, "_rescued_data")
    return [(*row[:-1], row[-1] and json.loads(row[-1])) for row in found]


@pytest.mark.parametrize("form", ["ndjson", "json"])
def test_unknown_fields_are_kept_as_json_and_the_others_loaded(make_feed: MakeFeed, form: str) -> None:
    feed = make_feed(
        source={"format": form, "schema": "id long, s struct<a: long>, l array<long>, d date"}, target=RESCUE
    )
    records = [
        {"id": 1, "s": {"a": 1}, "l": [1], "d": "2026-01-01"},
        {"id": 2, "name": "n", "later": None, "s": {"a": 2, "b": 3}},
        {"id": 3, "l": [1, "z"], "d": "no day"},
        {"id": 4, "s": {"a": "q"}},
    ]
    text = (
        "".join(f"{json.dumps(record)}\n" for record in records) if form == "ndjson" else json.dumps(records)
    )
    feed.put_text(f"a.{form}", text)
    outcome = feed.load()
    assert outcome.rows == 4
    assert f"values of 3 rows are in _rescued_data. One of them: file a.{form}: l, d" in outcome.warnings
    assert rows(feed, "id", "l", "d") == [
        (1, [1], date(2026, 1, 1), None),
        (2, None, None, {"name": "n", "s": {"a": 2, "b": 3}}),
        (3, None, None, {"l": [1, "z"], "d": "no day"}),
        (4, None, None, {"s": {"a": "q"}}),
    ]
    assert feed.rows("id", "_source_file")[0] == (1, f"a.{form}")


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_the_value_of_a_folder_that_is_no_column_is_kept(make_feed: MakeFeed, form: str) -> None:
    feed = make_feed(source={"format": form, "schema": None}, target={**RESCUE, "origin_columns": False})
    records = {"ndjson": ('{"id": 1}\n', '{"id": 2, "k": 3}\n'), "csv": ("id\n1\n", "id,k\n2,3\n")}[form]
    feed.put_text(f"a.{form}", records[0])
    feed.load()
    feed.put_text(f"k=7%20x/b.{form}", records[0])
    feed.put_text(f"k=8/b.{form}", records[1])
    feed.put_text(f"k=__HIVE_DEFAULT_PARTITION__/b.{form}", records[0])
    feed.load()
    kept = {"k": 3 if form == "ndjson" else "3", "k=": "8"}
    assert rows(feed, "id") == [(1, None), (1, None), (1, {"k": "7 x"}), (2, kept)]


def test_values_are_kept_as_they_are_written_and_in_their_order(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": "id long, text string"}, target=RESCUE)
    other = '"z":1.10,"a":{"y":1.0,"x":"\\u00e9 \\"{,"},"n":12345678901234567890123456789012345678901234567890.5,"e":[]'
    feed.put_text("a.ndjson", f'{{"id": 1, "text": 2.50, {other}}}\n{{"id": 2, "text": {{"b":1,"a":2.0}}}}\n')
    feed.load()
    assert feed.rows("id", "text", "_rescued_data") == [
        (1, "2.50", f"{{{other}}}"),
        (2, '{"b":1,"a":2.0}', None),
    ]


@pytest.mark.parametrize(
    "target", [RESCUE, RESCUE | {"load": "merge_upsert", "merge_keys": ["id"]}], ids=["append", "keys"]
)
def test_a_run_warns_once_of_all_rescued_rows(make_feed: MakeFeed, target: dict[str, Any]) -> None:
    feed = make_feed(
        source={"schema": "id long"}, target=target, watermark={"checkpoint": {"interval_files": 1}}
    )
    for number in (1, 2, 3):
        feed.put(f"{number}.ndjson", {"id": number, **({"amount": "x"} if number > 1 else {})})
    assert feed.load().warnings == [
        "values of 2 rows are in _rescued_data. One of them: file 2.ndjson: amount"
    ]
    feed.put("4.ndjson", 4)
    assert feed.load().warnings == []


def test_a_record_that_does_not_parse_at_all_is_a_bad_record(make_feed: MakeFeed) -> None:
    feed = make_feed(target=RESCUE)
    feed.put_text("a.ndjson", '{"id": "x"}\n{"id": \n')
    error = feed.fail()
    assert error.message.startswith("file a.ndjson, line 2: expected a JSON object, found text that is none")


def test_csv_keeps_new_columns_and_unfit_values_under_any_header(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={
            "format": "csv",
            "schema": "id long, day date, name string",
            "options": {"dateFormat": "dd.MM.yyyy"},
        },
        target=RESCUE,
    )
    feed.put_text("a.csv", "id,day,name\n1,31.12.2025,x\n")
    feed.put_text("b.csv", 'extra,id,day\n"a, b",2,2026-01-01\n,3,01.01.2026\n')
    feed.load()
    assert rows(feed, "id", "day", "name") == [
        (1, date(2025, 12, 31), "x", None),
        (2, None, None, {"day": "2026-01-01", "extra": "a, b"}),
        (3, date(2026, 1, 1), None, None),
    ]


def test_avro_keeps_columns_that_are_new(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "avro", "schema": None}, target=RESCUE)
    feed.put_bytes("a.avro", avro({"id": 1}))
    feed.put_bytes("b.avro", avro({"id": 2}))
    feed.load()
    feed.put_bytes("c.avro", avro({"id": 3, "name": "x"}, name="string"))
    feed.load()
    assert rows(feed, "id") == [(1, None), (2, None), (3, {"name": "x"})]


@pytest.mark.each_case
@pytest.mark.parametrize(
    "form", ["delta", *(pytest.param(form, marks=pytest.mark.full) for form in ("iceberg", "parquet"))]
)
def test_a_strict_table_gets_the_column_with_the_first_commit(make_feed: MakeFeed, form: str) -> None:
    feed = make_feed(target={"format": form})
    feed.put("a.ndjson", 1)
    feed.load()
    feed.define(target=RESCUE)
    feed.put("b.ndjson", {"id": 2, "name": "x"}, {"id": "three"})
    feed.load()
    table = feed.platform.table(feed.dataflow)
    found = (
        table.contents.read(feed.engine.session(), table.contents.newest_version())
        .select("id", "_rescued_data")
        .collect()
    )
    told = sorted((number or 0, json.loads(text or "null")) for number, text in found)
    assert told == [(0, {"id": "three"}), (1, None), (2, {"name": "x"})]


def test_a_merge_by_keys_updates_what_was_rescued(make_feed: MakeFeed) -> None:
    feed = make_feed(target=RESCUE | {"load": "merge_upsert", "merge_keys": ["id"]})
    feed.put("a.ndjson", {"id": 1, "x": 1}, {"id": 2, "x": 2})
    feed.load()
    feed.put("b.ndjson", {"id": 1}, {"id": 2, "y": 3})
    feed.load()
    assert rows(feed, "id") == [(1, None), (2, {"y": 3})]


def test_forms_without_texts_of_their_own_are_refused_with_the_reason(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "excel", "schema": None}, target=RESCUE)
    with pytest.raises(InvalidProject, match="found rescue beside excel, expected strict or merge"):
        _ = feed.dataflow


def test_a_value_that_its_column_does_not_hold_exactly_is_rescued_and_not_cut(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"schema": "id long, day date, at timestamp, price decimal(10,2), v double"},
        target={"schema_mode": "rescue"},
    )
    feed.put_text(
        "a.ndjson",
        '{"id": 1, "day": "2026-05-07 garbage", "at": "09:15", "price": 1.005, "v": 9007199254740993}\n'
        '{"id": 2, "day": "2026-05-07", "at": 1767614340, "price": "1.50", "v": 0.1}\n',
    )
    feed.load()
    rows = feed.rows("id", "day", "price", "v", "_rescued_data")
    assert [(row[0], row[1], row[2], row[3]) for row in rows] == [
        (1, None, None, None),
        (2, date(2026, 5, 7), Decimal("1.50"), 0.1),
    ]
    assert json.loads(rows[0][4]) == {
        "day": "2026-05-07 garbage",
        "at": "09:15",
        "price": 1.005,
        "v": 9007199254740993,
    }
    assert rows[1][4] is None


def test_a_value_of_which_a_part_is_not_exact_is_kept_whole(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"schema": "m map<string, decimal(10,2)>, a array<decimal(10,2)>, s struct<d: date>"},
        target=RESCUE,
    )
    feed.put_text("a.ndjson", '{"m":{"k":1.5},"a":[1.5],"s":{"d":"2026-05-07"}}\n')
    feed.put_text("b.ndjson", '{"m":{"k":1.005},"a":[1.005],"s":{"d":"2026-05"}}\n')
    feed.load()
    kept = {"m": {"k": 1.005}, "a": [1.005], "s": {"d": "2026-05"}}
    assert rows(feed, "_source_file", "m", "a", "s")[1] == ("b.ndjson", None, None, None, kept)
    assert rows(feed, "_source_file", "a")[0] == ("a.ndjson", [Decimal("1.50")], None)


def test_a_code_behind_whole_numbers_is_kept_where_types_are_inferred(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "csv", "schema": None}, target=RESCUE)
    feed.put_text("a.csv", "code,n\n12,1\n")
    feed.load()
    feed.put_text("b.csv", "code,n\n0012, 2\n")
    feed.load()
    assert rows(feed, "code", "n") == [(None, None, {"code": "0012", "n": " 2"}), (12, 1, None)]


@pytest.mark.parametrize(
    ("own", "column", "values", "loaded"),
    [
        (pa.float64(), "bigint", [1.0, 1.5], [1, None]),
        (pa.int64(), "int", [5, 2**40], [5, None]),
        (pa.int64(), "double", [5, 2**53 + 1], [5.0, None]),
        (pa.decimal128(10, 2), "bigint", [Decimal("5.00"), Decimal("5.50")], [5, None]),
        (pa.struct([("a", pa.int64())]), "struct<a: int>", [{"a": 5}, {"a": 2**40}], [(5,), None]),
        (pa.struct([("a", pa.int64()), ("b", pa.int64())]), "struct<a: int>", [None, {"a": 5, "b": 6}], [None, None]),
    ],
)  # fmt: skip
def test_a_value_of_another_type_that_survives_the_way_to_the_column_s_is_loaded(
    make_feed: MakeFeed, own: pa.DataType, column: str, values: list[Any], loaded: list[Any]
) -> None:
    feed = make_feed(source={"format": "parquet", "schema": f"id long, v {column}"}, target=RESCUE)
    pq.write_table(pa.table({"id": [1, 2], "v": pa.array(values, own)}), feed.landing / "a.parquet")
    feed.load()
    frame = feed.engine.session().read.format("delta").load(str(feed.table))
    read = sorted(tuple(row) for row in frame.select("id", "v").collect())
    assert read == [(1, loaded[0]), (2, loaded[1])]
    assert [data is None for *_, data in rows(feed, "id")] == [True, False]
