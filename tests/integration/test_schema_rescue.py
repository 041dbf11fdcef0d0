"""``schema_mode: rescue``: what does not fit the pinned schema is kept as JSON in ``_rescued_data`` (docs/reference/schemas.md)."""

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
from tests.support.feed import Feed
from tests.support.file_contents import avro
from tests.support.reading import Reading, cases

RESCUE = {"schema_mode": "rescue"}


def rows(feed: Feed, *columns: str) -> list[tuple[Any, ...]]:
    """Rows by their columns, with what was rescued as values."""
    found = feed.rows(*columns, "_rescued_data")
    return [(*row[:-1], row[-1] and json.loads(row[-1])) for row in found]


OTHER = '"z":1.10,"a":{"y":1.0,"x":"\\u00e9 \\"{,"},"n":12345678901234567890123456789012345678901234567890.5,"e":[]'
AMOUNTS = "id long, day date, at timestamp, price decimal(10,2), v double"
WHOLE, STRUCT = pa.int64(), pa.struct([("a", pa.int64())])


def rescued(
    source: dict[str, Any],
    files: dict[str, Any],
    columns: str,
    rows: list[tuple[Any, ...]],
    *,
    later: Any = (),
    **target: Any,
) -> Reading:
    """A table in mode rescue; the last value of each row is what is kept of it."""
    return Reading(
        source, files, f"{columns} _rescued_data", rows, more={"target": RESCUE | target}, later=later
    )


READINGS = {
    **{
        f"the value of a folder that is no column is kept [{form}]": rescued(
            {"format": form, "schema": None}, {f"a.{form}": one}, "id", [(1, None), (1, None), (1, '{"k":"7 x"}'), (2, kept)], origin_columns=False,
            later=({f"k=7%20x/b.{form}": one, f"k=8/b.{form}": two, f"k=__HIVE_DEFAULT_PARTITION__/b.{form}": one},),
        )
        for form, one, two, kept in (("ndjson", '{"id": 1}\n', '{"id": 2, "k": 3}\n', '{"k":3,"k=":"8"}'), ("csv", "id\n1\n", "id,k\n2,3\n", '{"k":"3","k=":"8"}'))
    },
    "values are kept as they are written and in their order": rescued(
        {"schema": "id long, text string"}, {"a.ndjson": f'{{"id": 1, "text": 2.50, {OTHER}}}\n{{"id": 2, "text": {{"b":1,"a":2.0}}}}\n'},
        "id text", [(1, "2.50", f"{{{OTHER}}}"), (2, '{"b":1,"a":2.0}', None)],
    ),
    "csv keeps new columns and unfit values under any header": rescued(
        {"format": "csv", "schema": "id long, day date, name string", "options": {"dateFormat": "dd.MM.yyyy"}},
        {"a.csv": "id,day,name\n1,31.12.2025,x\n", "b.csv": 'extra,id,day\n"a, b",2,2026-01-01\n,3,01.01.2026\n'}, "id day name",
        [(1, date(2025, 12, 31), "x", None), (2, None, None, '{"day":"2026-01-01","extra":"a, b"}'), (3, date(2026, 1, 1), None, None)],
    ),
    "avro keeps columns that are new": rescued(
        {"format": "avro", "schema": None}, {"a.avro": avro({"id": 1}), "b.avro": avro({"id": 2})}, "id", [(1, None), (2, None), (3, '{"name":"x"}')],
        later=({"c.avro": avro({"id": 3, "name": "x"}, name="string")},),
    ),
    "a merge by keys updates what was rescued": rescued(
        {}, {"a.ndjson": [{"id": 1, "x": 1}, {"id": 2, "x": 2}]}, "id", [(1, None), (2, '{"y":3}')], load="merge_upsert", merge_keys=["id"],
        later=({"b.ndjson": [{"id": 1}, {"id": 2, "y": 3}]},),
    ),
    "a value that its column does not hold exactly is rescued and not cut": rescued(
        {"schema": AMOUNTS},
        {
            "a.ndjson": '{"id": 1, "day": "2026-05-07 garbage", "at": "09:15", "price": 1.005, "v": 9007199254740993}\n'
            '{"id": 2, "day": "2026-05-07", "at": 1767614340, "price": "1.50", "v": 0.1}\n'
        },
        "id day price v",
        [
            (1, None, None, None, '{"day":"2026-05-07 garbage","at":"09:15","price":1.005,"v":9007199254740993}'), (2, date(2026, 5, 7), Decimal("1.50"), 0.1, None),
        ],
    ),
    "a value of which a part is not exact is kept whole": rescued(
        {"schema": "m map<string, decimal(10,2)>, a array<decimal(10,2)>, s struct<d: date>"},
        {"a.ndjson": '{"m":{"k":1.5},"a":[1.5],"s":{"d":"2026-05-07"}}\n', "b.ndjson": '{"m":{"k":1.005},"a":[1.005],"s":{"d":"2026-05"}}\n'}, "_source_file m a s",
        [
            ("a.ndjson", [("k", Decimal("1.50"))], [Decimal("1.50")], {"d": date(2026, 5, 7)}, None),
            ("b.ndjson", None, None, None, '{"m":{"k":1.005},"a":[1.005],"s":{"d":"2026-05"}}'),
        ],
    ),
    "a code behind whole numbers is kept where types are inferred": rescued(
        {"format": "csv", "schema": None}, {"a.csv": "code,n\n12,1\n"}, "code n", [(None, None, '{"code":"0012","n":" 2"}'), (12, 1, None)], later=({"b.csv": "code,n\n0012, 2\n"},),
    ),
    **{
        f"a value of another type that survives the way to the column's is loaded [{own} to {column}]": rescued(
            {"format": "parquet", "schema": f"id long, v {column}"}, {"a.parquet": pa.table({"id": [1, 2], "v": pa.array([fits, not_], own)})},
            "id v", [(1, loaded, None), (2, None, kept)],
        )
        for own, column, fits, not_, loaded, kept in (
            (pa.float64(), "bigint", 1.0, 1.5, 1, '{"v":1.5}'), (WHOLE, "int", 5, 2**40, 5, '{"v":1099511627776}'), (WHOLE, "double", 5, 2**53 + 1, 5.0, '{"v":9007199254740993}'),
            (pa.decimal128(10, 2), "bigint", Decimal("5.00"), Decimal("5.50"), 5, '{"v":5.50}'), (STRUCT, "struct<a: int>", {"a": 5}, {"a": 2**40}, {"a": 5}, '{"v":{"a":1099511627776}}'),
            (pa.struct([("a", WHOLE), ("b", WHOLE)]), "struct<a: int>", None, {"a": 5, "b": 6}, None, '{"v":{"a":5,"b":6}}'),
        )
    },
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("reading", cases(READINGS))
def test_what_does_not_fit_is_kept_beside_what_does(make_feed: MakeFeed, reading: Reading) -> None:
    reading.check(make_feed)


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
    assert f"_rescued_data holds values of 3 rows. One of them: file a.{form}: l, d" in outcome.warnings
    assert rows(feed, "id", "l", "d") == [
        (1, [1], date(2026, 1, 1), None),
        (2, None, None, {"name": "n", "s": {"a": 2, "b": 3}}),
        (3, None, None, {"l": [1, "z"], "d": "no day"}),
        (4, None, None, {"s": {"a": "q"}}),
    ]
    assert feed.rows("id", "_source_file")[0] == (1, f"a.{form}")


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
        "_rescued_data holds values of 2 rows. One of them: file 2.ndjson: amount"
    ]
    feed.put("4.ndjson", 4)
    assert feed.load().warnings == []


def test_a_record_that_does_not_parse_at_all_is_a_bad_record(make_feed: MakeFeed) -> None:
    feed = make_feed(target=RESCUE)
    feed.put_text("a.ndjson", '{"id": "x"}\n{"id": \n')
    error = feed.fail()
    assert error.message.startswith(
        "file a.ndjson, line 2: expected a JSON object, found text that is not JSON"
    )


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


def test_forms_without_texts_of_their_own_are_refused_with_the_reason(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "excel", "schema": None}, target=RESCUE)
    with pytest.raises(InvalidProject, match="found rescue beside excel, expected strict or merge"):
        _ = feed.dataflow


def test_lists_of_nothing_and_microseconds_are_kept(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "parquet", "schema": "id long, l array<int>"}, target=RESCUE)
    untyped = {
        "l": pa.array([[None], []], pa.list_(pa.null())),
        "m": pa.array([[], [None]], pa.list_(pa.null())),
    }
    at = pa.array([1_767_225_600_000_001, None], pa.timestamp("us"))
    pq.write_table(pa.table({"id": [1, 2], **untyped, "at": at}), feed.landing / "a.parquet")
    feed.load()
    assert rows(feed, "id", "l") == [
        (1, [None], {"m": [], "at": "2026-01-01T00:00:00.000001"}),
        (2, [], {"m": [None]}),
    ]


def test_a_number_of_too_many_digits_and_a_text_that_is_not_base64_are_kept_beside_the_others(
    make_feed: MakeFeed,
) -> None:
    feed = make_feed(source={"schema": "id long, b binary, d decimal(38,10)"}, target=RESCUE)
    feed.put_text(
        "a.ndjson",
        '{"id": 1, "b": "x", "d": 1e-400}\n{"id": 2, "b": "eA==", "d": 1.5}\n{"id": 3, "d": 1.00000000000000000000000000000000000000001}\n',
    )
    feed.load()
    kept = [row[-1] for row in feed.rows("id", "b", "d", "_rescued_data")]
    assert feed.rows("id", "b", "d") == [(1, None, None), (2, b"x", Decimal("1.5")), (3, None, None)]
    assert kept == ['{"b":"x","d":1e-400}', None, '{"d":1.00000000000000000000000000000000000000001}']
