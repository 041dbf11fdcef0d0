"""Which schema a dataflow has: what pins it, what may be added later, and how it is taken anew."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import crash
from tests.support.feed import NAME, Feed
from tests.support.file_contents import avro, records_in
from tests.support.reading import Content, Reading, cases, put
from tests.support.workbooks import xlsx

NANOSECONDS = [0, 1, -1, -1000, -1001, 1_700_000_000_123_456_789, None, -2_208_988_800_000_000_001]
MICROSECONDS = [0, 0, -1, -1, -2, 1_700_000_000_123_456, None, -2_208_988_800_000_001]
"""The same, cut off towards the past."""


def _put_typed(feed: Feed, path: str, kind: pa.DataType, row: dict[str, Any]) -> None:
    """Put a row whose ``x`` and ``s.a`` have this type."""
    if path.endswith(".parquet"):
        inner = pa.struct([("a", kind), ("b", pa.int64())])
        schema = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("x", kind), ("s", inner)])
        put(feed, path, pa.Table.from_pylist([row], schema=schema))
        return
    own = "null" if kind == pa.null() else ["null", "long"]
    fields = [{"name": "a", "type": own}, {"name": "b", "type": "long"}]
    feed.put_bytes(path, avro(row, at="long", x=own, s={"type": "record", "name": "s", "fields": fields}))


_OPTIONS = {"xml": {"rowTag": "row"}}


def _put_records(feed: Feed, path: str, form: str, *records: dict[str, Any]) -> None:
    """Put a file of records with whole numbers."""
    for name, content in records_in(form, path, *records).items():
        put(feed, name, content)


NO_TYPE = (
    "column {}: expected a list, map or struct with typed values, found one with nothing but null, whose type is unknown:"
    " declare the column in source.schema, or write NULL"
)
FOLDERS = "id long, day date, region string"
NONE, WHOLE, NOW = pa.null(), pa.int64(), datetime(2026, 1, 2, tzinfo=UTC)
KEPT = {
    "e": pa.array([[]], pa.list_(NONE)),
    "n": pa.nulls(1),
    "s": pa.array([{"a": None, "b": 1}], pa.struct([("a", NONE), ("b", WHOLE)])),
}
LEFT_OUT = {
    "l": pa.array([[None]], pa.list_(NONE)),
    "m": pa.array([[("k", None)]], pa.map_(pa.string(), NONE)),
    "o": pa.array([{"x": [None], "b": 1}], pa.struct([("x", pa.list_(NONE)), ("b", WHOLE)])),
    "t": pa.array([{"a": None}], pa.struct([("a", NONE)])),
}  # fmt: skip
ITEMS, VALUES = {"type": "array", "items": "null"}, {"type": "map", "values": "null"}
CLOCK, DATE, TIME = (
    {"type": "int", "logicalType": "time-millis"},
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-micros"},
)
STRUCT = {
    "type": "record",
    "name": "s",
    "fields": [
        {"name": "a", "type": "null"},
        {"name": "x", "type": ["null", ITEMS]},
        {"name": "at", "type": CLOCK},
    ],
}
AVRO_LEFT_OUT: dict[str, tuple[Any, Any]] = {
    "l": (ITEMS, [None]), "m": (VALUES, {"k": None}), "o[1] é": (STRUCT, {"a": None, "x": [None], "at": 0}), "u": ([STRUCT, "long"], {"a": None, "x": [None], "at": 0}),
}  # fmt: skip
AVRO_KEPT: dict[str, tuple[Any, Any]] = {
    "e": (ITEMS, []),
    "f": (VALUES, {}),
    "n": (["null", ITEMS], None),
    "s": (STRUCT, {"a": None, "x": [], "at": 0}),
}
TIMES = {"id": 2, "day": date(2026, 1, 2), "at": NOW, "n": 3}
NO_TIMES: dict[str, dict[str, Content]] = {
    "parquet": {
        "day.parquet": pa.table({"id": [1], "day": pa.array([5], pa.int32())}), "at.parquet": pa.table({"id": [1], "at": [5]}),
        "n.parquet": pa.table({"id": [1], "n": pa.array([NOW], pa.timestamp("us", "UTC"))}), "z.parquet": pa.table({name: [value] for name, value in TIMES.items()}),
    },
    "avro": {
        "day.avro": avro({"id": 1, "day": 5}, day="int"), "at.avro": avro({"id": 1, "at": 5}, at="long"), "n.avro": avro({"id": 1, "n": NOW}, n=TIME),
        "z.avro": avro(TIMES, day=DATE, at=TIME, n="int"),
    },
}  # fmt: skip

READINGS = {
    **{
        f"a declared folder column may first appear later [{form}]": Reading(
            {"format": form, "schema": FOLDERS}, {f"region=eu/a.{form}": [1]}, "id day region",
            [(1, None, "eu"), (2, None, "eu"), (3, date(2026, 1, 1), "us"), (4, date(2026, 1, 2), "us"), (5, date(2026, 1, 3), "us")],
            later=(
                {f"region=eu/b.{form}": [2], f"region=us/day=2026-01-01/a.{form}": [3], f"region=us/day=2026-01-02/b.{form}": [4]}, {f"region=us/day=2026-01-03/a.{form}": [5]},
            ),
        )
        for form in ("ndjson", "parquet")
    },
    "a field without folder is loaded and beside a NULL one is bad": Reading(
        {"schema": "id long, v date"},
        {
            "v=2026-01-02/a.ndjson": '{"id": 1, "v": "2026-01-02"}\n{"id": 2, "\\u0076": "2026-01-03"}\n',
            "v=__HIVE_DEFAULT_PARTITION__/b.ndjson": '{"id": 3, "v": null}\n{"id": 4, "v": "2026-01-02"}\n', "w/c.ndjson": '{"id": 5, "v": "2026-01-04"}\n{"id": 6}\n',
        },
        "id v", [(1, date(2026, 1, 2)), (3, None), (5, date(2026, 1, 4)), (6, None)], more={"max_bad_records": 2},
    ),
    **{
        f"a field without a value has its folder's [{form} {mode}]": Reading(
            {"format": form, "schema": None}, {"v=5/a.avro": avro({"id": 1, "v": None}, v="null")} if form == "avro" else records_in(form, "v=5/a", {"id": 1, "v": None}),
            "id v", [(1, "5")], more={"target": {"schema_mode": mode}},
        )
        for form in ("ndjson", "json", "parquet", "avro") for mode in ("strict", "merge", "rescue")
    },
    "a folder names a column that records had no value of": Reading(
        {"schema": None}, {"a.ndjson": [{"id": 1, "v": None}]}, "id v", [(1, None), (2, "5")], more={"target": {"schema_mode": "merge"}}, later=({"v=5/b.ndjson": [2]},),
    ),
    "a value of nothing but NULL has no type that keeps it": Reading(
        {"format": "parquet", "schema": None}, {f"{name}.parquet": pa.table({"id": [1], name: values}) for name, values in {**KEPT, **LEFT_OUT}.items()},
        "id", [(1,)] * len(KEPT), {f"{name}.parquet": NO_TYPE.format(name) for name in LEFT_OUT},
    ),
    "a value of Avro of nothing but NULL is told also beside a union": Reading(
        {"format": "avro", "schema": None}, {f"{path}.avro": avro({"id": 1, path[0]: value}, **{path[0]: kind}) for path, (kind, value) in {**AVRO_KEPT, **AVRO_LEFT_OUT}.items()},
        "id", [(1,)] * len(AVRO_KEPT), {f"{path}.avro": NO_TYPE.format(path[0]) for path in AVRO_LEFT_OUT},
    ),
    **{
        f"a number is no time and a time no number [{form}]": Reading(
            {"format": form, "schema": "id long, day date, at timestamp, n long"}, files, "id day at n", [tuple(TIMES.values())],
            {
                f"{column}.{form}": f"column {column}: expected {expected}, found {form.capitalize()}'s type {kind}"
                for column, expected, kind in (("day", "date", "int"), ("at", "timestamp", "bigint"), ("n", "bigint", "timestamp"))
            },
        )
        for form, files in NO_TIMES.items()
    },
    **{
        f"an untyped column takes the folder's value [{mode}]": Reading(
            {"format": "parquet", "schema": None}, {"v=eu/1.parquet": pa.table({"id": [1], "v": ["eu"]}), "v=eu/2.parquet": pa.table({"id": [2], "v": pa.nulls(1)})},
            "id v", [(1, "eu"), (2, "eu")], more={"target": {"schema_mode": mode}},
        )
        for mode in ("strict", "rescue")
    },
    "a rescued field beside its folder is kept": Reading(
        {"schema": "id long, v long"}, {"v=5/a.ndjson": '{"id": 1, "v": 6}\n'}, "id v _rescued_data", [(1, 5, '{"v":6}')], more={"target": {"schema_mode": "rescue"}},
    ),
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("reading", cases(READINGS))
def test_columns_of_records_and_folders_go_together(make_feed: MakeFeed, reading: Reading) -> None:
    reading.check(make_feed)


class TestFolders:
    def test_a_folder_column_that_nothing_declares_is_refused_and_named(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long, region string"})
        feed.put("region=eu/a.ndjson", 1)
        feed.load()
        feed.put("region=eu/tier=1/b.ndjson", 2)
        error = feed.fail()
        assert (error.code, feed.ids) == ("schema", [1])
        assert "'tier'" in error.message

    @pytest.mark.parametrize("schema", ["id long, v long", None])
    @pytest.mark.parametrize("form", ["ndjson", "json", "csv", "xml", "parquet", "avro", "excel"])
    def test_a_field_beside_its_folder_has_the_folder_s_value_or_none(
        self, make_feed: MakeFeed, form: str, schema: str | None
    ) -> None:
        feed = make_feed(source={"format": form, "schema": schema, "options": _OPTIONS.get(form, {})})
        _put_records(feed, "v=5/a", form, {"id": 1, "v": 5}, {"id": 2, "v": None})
        _put_records(feed, "v=6/b", form, {"id": 3})
        _put_records(feed, "v=7/c", form, {"id": 4, "v": 7}, {"id": 5, "v": 8})
        outcome = feed.run()
        assert feed.rows("id", "v") == [(1, 5), (2, 5), (3, 6)]
        assert outcome.error is not None
        assert outcome.error.code == ("bad_file" if form in ("parquet", "avro") else "bad_record")
        assert (
            "field v: expected 7, the value in the folder v=7, found another value" in outcome.error.message
        )
        assert "'8'" in outcome.error.message

    @pytest.mark.parametrize("kind", [pa.int64(), pa.null()])
    def test_a_struct_beside_its_folder_is_named(self, make_feed: MakeFeed, kind: pa.DataType) -> None:
        feed = make_feed(source={"format": "parquet", "schema": None})
        parts = pa.array(
            [{"a": None}], pa.struct([("a", kind)])
        )  # a folder's value is never left out for such a field
        put(feed, "v=5/a.parquet", pa.table({"id": [1], "v": parts}))
        error = feed.fail()
        assert (error.code, feed.ids, error.message.startswith("file v=5/a.parquet")) == (
            "bad_file",
            [],
            True,
        )
        if kind == pa.int64():
            assert "folder v=5: expected a simple type for the column v, found struct" in error.message

    def test_a_folder_without_a_value_above_a_column_with_parts_is_named(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long, v array<long>"})
        feed.put("v=__HIVE_DEFAULT_PARTITION__/a.ndjson", {"id": 1})
        error = feed.fail()
        assert error.code == "bad_file"
        assert (
            "folder v=__HIVE_DEFAULT_PARTITION__: expected a simple type for the column v, found array"
            in error.message
        )

    def test_two_folders_that_name_one_column_make_the_file_bad(self, make_feed: MakeFeed) -> None:
        feed = make_feed()
        feed.put("v=1/v=2/a.ndjson", 1)
        error = feed.fail()
        assert "folders v=1 and v=2: expected one value of the column v, found two" in error.message

    @pytest.mark.parametrize("form", ["ndjson", "json", "csv", "parquet", "avro"])
    def test_rescue_keeps_only_fields_that_differ_from_folders(self, make_feed: MakeFeed, form: str) -> None:
        feed = make_feed(source={"format": form, "schema": None}, target={"schema_mode": "rescue"})
        _put_records(feed, "v=5/a", form, {"id": 1, "v": 5}, {"id": 2, "v": None})
        _put_records(feed, "v=7/b", form, {"id": 3, "v": 7}, {"id": 4, "v": 8})
        warnings = feed.load().warnings
        assert feed.rows("id", "v") == [(1, 5), (2, 5), (3, 7), (4, 7)]
        rescued = [text and json.loads(text) for _, text in feed.rows("id", "_rescued_data")]
        assert rescued == [None, None, None, {"v": "8" if form == "csv" else 8}]
        assert any(
            f"_rescued_data holds values of 1 row. One of them: file v=7/b.{form}: v" in line
            for line in warnings
        )


class TestRequired:
    @pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
    def test_nulls_that_the_schema_forbids_are_named_with_all_columns(
        self, make_feed: MakeFeed, form: str
    ) -> None:
        feed = make_feed(source={"format": form, "schema": "id long NOT NULL, v long, w long NOT NULL"})
        _put_records(feed, "a", form, {"id": 1, "v": 1, "w": 1}, {"id": 2, "v": None, "w": 1})
        records = [(3, 1), (None, 1), (5, None), (None, None), (None, 7)]
        _put_records(feed, "b", form, *[{"id": id_, "v": 2, "w": w} for id_, w in records])
        error = feed.run().error
        assert feed.rows("id", "v") == [(1, 1), (2, None)]
        assert error is not None
        assert error.code == "bad_file"
        said = "expected a value of {}, which source.schema declares NOT NULL, found none"
        assert f"file b.{form}, record 2: {said.format('id')}; record 3: {said.format('w')};" in error.message
        assert f"record 4: {said.format('id, w')}; 4 such records in all" in error.message
        feed.define(source={"schema": "id long, v long, w long"})
        feed.load()
        assert len(feed.rows("v")) == 7


class TestFirstPin:
    def test_a_first_number_that_is_given_up_pins_nothing(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": "id long, day string"})
        feed.put_damaged("a.parquet", day="1")
        assert feed.run().status == "failed"
        assert [(entry.why, entry.pinned) for entry in feed.entries] == [("abandon", None)]
        assert feed.cli("schema", "show", NAME).json["pinned"] is None
        feed.define(source={"schema": "id string, day long, more string"})
        feed.put_parquet("a.parquet", {"id": "x", "day": 1})
        assert feed.load().rows == 1
        assert feed.rows("id", "day", "more") == [("x", 1, None)]
        assert feed.types == {"id": "string", "day": "long", "more": "string"}
        assert not feed.entries[-1].replace_table

    def test_options_that_are_changed_after_a_failed_first_run_count(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "csv", "schema": "id long, text string"})
        feed.put_text("a.csv", 'id,text\n1,"two\nlines"\n')
        assert feed.run().status == "failed"
        feed.define(source={"options": {"multiLine": True}})
        feed.load()
        assert feed.rows("id", "text") == [(1, "two\nlines")]

    @pytest.mark.full
    def test_a_recovered_first_number_that_is_given_up_pins_nothing(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": "id long, day string"})
        feed.put_damaged("a.parquet", day="1")
        crash(feed, Step.FENCED)
        feed.run()
        feed.define(source={"schema": "id string, day string"})
        feed.put_parquet("a.parquet", {"id": "x", "day": "1"})
        assert feed.load().rows == 1
        assert (feed.rows("id"), feed.types) == ([("x",)], {"id": "string", "day": "string"})


class TestFieldsWithoutAType:
    @pytest.mark.parametrize(
        "form",
        [
            "delta",
            pytest.param("iceberg", marks=pytest.mark.full),
        ],
    )
    @pytest.mark.full
    def test_a_first_value_tells_the_type_in_each_table_format(self, make_feed: MakeFeed, form: str) -> None:
        feed = make_feed(source={"schema": None}, target={"format": form})
        feed.put_text(
            "a.ndjson", '{"id": 1, "x": null, "s": {"a": null, "b": 1}}\n{"id": 2, "x": [], "s": null}\n'
        )
        assert feed.load().error is None
        feed.put_text("b.ndjson", '{"id": 3, "x": null, "s": {"a": null, "b": 2}}\n')
        assert feed.load().error is None
        feed.put_text("c.ndjson", '{"id": 4, "x": {"y": [1]}, "s": {"a": "t", "b": 3}}\n')
        assert feed.load().error is None
        feed.put_text("d.ndjson", '{"id": 5, "x": {"y": [2]}, "s": {"a": null, "b": null}}\n')
        assert feed.load().error is None
        rows = {row[0]: (row[1] and row[1]["y"], row[2] and row[2]["a"]) for row in feed.rows("id", "x", "s")}
        assert rows == {1: (None, None), 2: (None, None), 3: (None, None), 4: ([1], "t"), 5: ([2], None)}
        feed.put_text("e.ndjson", '{"id": 6, "x": {"y": [1], "z": 1}}\n')
        error = feed.fail()
        assert "found x.z beside them" in error.message

    @pytest.mark.parametrize("form", ["parquet", "avro"])
    def test_a_later_typed_file_tells_the_type_of_a_column(self, make_feed: MakeFeed, form: str) -> None:
        feed = make_feed(
            source={"format": form, "schema": None},
            target={
                "load": "scd2",
                "merge_keys": ["id"],
                "effective_column": "at",
                "origin_columns": True,
            },
        )
        _put_typed(feed, f"a.{form}", pa.null(), {"id": 1, "at": 1, "x": None, "s": {"a": None, "b": 1}})
        feed.load()
        _put_typed(feed, f"b.{form}", pa.int64(), {"id": 1, "at": 2, "x": 7, "s": {"a": 2**53 + 1, "b": 1}})
        feed.load()
        _put_typed(feed, f"c.{form}", pa.null(), {"id": 2, "at": 1, "x": None, "s": {"a": None, "b": 3}})
        feed.load()
        assert feed.rows("id", "at", "x", "s", "_is_current") == [
            (1, 1, None, {"b": 1, "a": None}, False),
            (1, 2, 7, {"b": 1, "a": 2**53 + 1}, True),
            (2, 1, None, {"b": 3, "a": None}, True),
        ]

    def test_with_ignored_fields_a_column_without_values_is_text(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": None}, unknown_fields="ignore")
        _put_typed(feed, "a.parquet", pa.null(), {"id": 1, "at": 1, "x": None, "s": {"a": None, "b": 1}})
        feed.load()
        _put_typed(feed, "b.parquet", pa.string(), {"id": 2, "at": 1, "x": "7", "s": {"a": "8", "b": 1}})
        feed.load()
        assert feed.rows("id", "x", "s") == [(1, None, {"a": None, "b": 1}), (2, "7", {"a": "8", "b": 1})]
        _put_typed(feed, "c.parquet", pa.int64(), {"id": 3, "at": 1, "x": 7, "s": {"a": 8, "b": 1}})
        error = feed.fail()
        assert "expected string, found Parquet's type bigint" in error.message
        assert "declare it in source.schema" in error.message


class TestTypesOfTables:
    @pytest.mark.parametrize(
        ("form", "kind"), [("delta", "variant"), ("iceberg", "string"), ("parquet", "string")]
    )
    def test_a_variant_stays_or_is_json_by_table(self, make_feed: MakeFeed, form: str, kind: str) -> None:
        feed = make_feed(source={"format": "parquet", "schema": None}, target={"format": form})
        rows = feed.engine.session().sql(
            """SELECT * FROM VALUES (1L, parse_json('{"a":[1,null,"x"]}')), (2L, NULL) AS rows(id, v)"""
        )
        folder = feed.folder / "variants"
        rows.coalesce(1).write.parquet(str(folder))
        (file,) = folder.glob("*.parquet")
        feed.put_bytes("a.parquet", file.read_bytes())
        feed.load()
        table = feed.platform.table(feed.dataflow)
        read = table.contents.read(feed.engine.session(), table.contents.newest_version())
        assert dict(read.dtypes)["v"] == kind
        texts = read.selectExpr("id", "CAST(v AS string) AS v").orderBy("id").collect()
        assert [tuple(row) for row in texts] == [(1, '{"a":[1,null,"x"]}'), (2, None)]

    @pytest.mark.parametrize(
        ("form", "value", "kind", "remedy"),
        [
            (
                "iceberg",
                "parse_json('1')",
                "variant",
                "such as text with to_json; or use target.format: delta",
            ),
            ("parquet", "NULL", "void", "or use target.format: delta"),
            ("delta", "array()", "void", "Convert it to another type in sql or transform"),
        ],
    )
    def test_a_type_that_no_table_of_the_format_holds_is_named_before_a_number_is_begun(
        self, make_feed: MakeFeed, form: str, value: str, kind: str, remedy: str
    ) -> None:
        feed = make_feed(target={"format": form}, sql=f"SELECT id, {value} AS v FROM input")
        feed.put("a.ndjson", 1)
        for _ in range(2):
            error = feed.fail()
            assert error.code == "target"
            assert (
                f"expected types that {form} tables can hold, found column v of type {kind}" in error.message
            )
            assert error.message.endswith(remedy)
            assert (feed.open_intent, feed.newest) == (None, None)
        feed.define(sql="SELECT id, 'x' AS v FROM input")
        assert feed.load().rows == 1


class TestReset:
    @pytest.mark.full
    @pytest.mark.parametrize("dies", [None, Step.INTENT_PUT, Step.WRITTEN])
    def test_a_reset_with_replace_takes_new_partitions(self, make_feed: MakeFeed, dies: Step | None) -> None:
        feed = make_feed(source={"schema": "id string"}, watermark={"checkpoint": {"interval_files": 1}})
        feed.put("a.ndjson", 1)
        feed.load()
        feed.decide("reset", "--replace")
        feed.define(
            source={"schema": "id long, `the text` string, day date, at timestamp_ntz"},
            target={"partition_by": ["day"]},
        )
        feed.put("a.ndjson", {"id": 1, "the text": "a", "day": "2026-01-01", "at": "2026-01-01 00:00:00"})
        feed.put("b.ndjson", {"id": 2, "the text": "b", "day": "2026-01-02"})
        if dies:
            crash(feed, dies)
        assert feed.load().error is None
        spark = feed.engine.session()
        found = spark.read.format("delta").load(str(feed.table)).orderBy("id").collect()
        assert [(row["id"], row["the text"], row["day"]) for row in found] == [
            (1, "a", date(2026, 1, 1)),
            (2, "b", date(2026, 1, 2)),
        ]
        assert DeltaTable(str(feed.table)).metadata().partition_columns == ["day"]
        assert feed.newest is not None
        assert (feed.newest.total_rows, feed.newest.replace_table) == (2, False)

    @pytest.mark.remedy("schema", "state reset --replace")
    def test_the_choice_of_a_changed_schema_leads_on_with_rows_once(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        feed.define(source={"schema": "id string, more string"})
        feed.put("b.ndjson", 2)
        plan = feed.cli("plan", NAME).json[0]
        error = feed.fail()
        assert "found a different one (id string, more string" in error.message
        assert plan["error"]["message"] == f"the next run with rows stops: {error.message}"
        assert plan["error"]["choices"] == list(error.choices)
        (choice,) = error.choices
        words = choice.removeprefix("strandline ").removesuffix(" TEXT").split()
        feed.command(*words, "because", "--yes")
        feed.load()
        assert (feed.rows("id"), feed.types) == ([("1",), ("2",)], {"id": "string", "more": "string"})

    def test_adopting_the_table_after_a_reset_with_replace_keeps_its_rows(self, feed: Feed) -> None:
        feed.put("a.ndjson", 1)
        feed.load()
        feed.decide("reset", "--replace")
        feed.decide("adopt")
        feed.put("b.ndjson", 2)
        feed.load()
        assert feed.ids == [1, 2]


DECLARED = (
    "id long, local timestamp_ntz, instant timestamp, `in` struct<local: timestamp_ntz, k: long>,"
    " `all` array<timestamp_ntz>, number long"
)


class TestNanoseconds:
    def table(self) -> pa.Table:
        local = pa.array(NANOSECONDS, pa.timestamp("ns"))
        instant = pa.array(NANOSECONDS, pa.int64()).cast(pa.timestamp("ns", "Europe/Berlin"))
        numbers = pa.array(range(len(NANOSECONDS)))
        return pa.table(
            {
                "id": numbers,
                "local": local,
                "instant": instant,
                "in": pa.StructArray.from_arrays([local, numbers], ["local", "k"]),
                "all": pa.array(
                    [None if one is None else [one] for one in NANOSECONDS], pa.list_(local.type)
                ),
                "number": pa.array(NANOSECONDS, pa.int64()),
            }
        )

    @pytest.mark.parametrize(
        "schema",
        [
            None,
            DECLARED,
        ],
    )
    def test_nanoseconds_become_microseconds_exactly(self, make_feed: MakeFeed, schema: str | None) -> None:
        feed = make_feed(source={"format": "parquet", "schema": schema})
        put(feed, "a.parquet", self.table())
        outcome = feed.load()
        (warning,) = [one for one in outcome.warnings if "nanoseconds" in one]
        assert warning.endswith(": all, in.local, instant, local")
        found = DeltaTable(str(feed.table)).to_pyarrow_table().sort_by("id")
        assert found["instant"].type == pa.timestamp("us", "UTC")
        assert found["local"].type == pa.timestamp("us")
        for values in (found["local"], found["instant"], pa.compute.struct_field(found["in"], "local")):
            assert values.cast(pa.int64()).to_pylist() == MICROSECONDS
        times = [None if one is None else [one] for one in found["local"].to_pylist()]
        assert found["all"].to_pylist() == times
        assert found["number"].to_pylist() == NANOSECONDS

    def test_files_with_and_without_nanoseconds_go_into_one_table(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": None})
        times: list[Any] = [datetime(2026, 1, 1, 12, tzinfo=UTC)]
        for name, unit in (("a", "ns"), ("b", "us"), ("c", "ms"), ("d", "ns")):
            put(feed, f"{name}.parquet", pa.table({"at": pa.array(times, pa.timestamp(unit, "UTC"))}))
        feed.load()
        assert feed.rows("at") == [(times[0],)] * 4

    def test_an_instant_is_not_read_as_a_local_time(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": "at timestamp_ntz"})
        put(feed, "a.parquet", pa.table({"at": pa.array([0], pa.timestamp("ns", "UTC"))}))
        error = feed.fail()
        assert (
            "file a.parquet, column at: expected timestamp_ntz, found Parquet's type timestamp"
            in error.message
        )


class TestCommands:
    def test_show_says_what_is_pinned_declared_and_in_the_table(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id long"})
        empty = feed.cli("schema", "show", NAME).json
        assert empty == {"dataflow": NAME, "pinned": None, "declared": "id long", "table": None}
        feed.put("day=1/a.ndjson", 1)
        feed.load()
        feed.put("day=1/b.ndjson", 2)
        feed.load()
        feed.define(source={"schema": None})
        found = feed.cli("schema", "show", NAME).json
        assert found["pinned"] == {
            "columns": [
                {"name": "id", "type": "bigint", "from": "file"},
                {"name": "day", "type": "string", "from": "folder"},
            ],
            "number": 1,
            "time": feed.entries[0].time,
            "from": "source.schema",
            "declared": "id long",
            "changed": False,
        }
        assert found["declared"] is None
        assert found["table"]["columns"][:2] == [
            {"name": "id", "type": "bigint"},
            {"name": "day", "type": "string"},
        ]

    def test_infer_looks_anew_and_says_what_differs_from_what_is_pinned(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id string"}, on_bad_file="quarantine")
        feed.put("a.ndjson", 1)
        assert feed.cli("schema", "infer", NAME).json["difference"] is None
        feed.load()
        feed.put("b.ndjson", {"id": 2, "more": "x"})
        feed.put_bytes("c.ndjson.gz", b"torn")
        found = feed.cli("schema", "infer", NAME).json
        (not_read,) = found["warnings"]
        assert not_read.startswith("left out of the sample: c.ndjson.gz: ")
        assert "was loaded" not in not_read
        assert found["columns"] == [
            {"name": "id", "type": "bigint", "from": "file"},
            {"name": "more", "type": "string", "from": "file"},
        ]
        assert found["difference"] == [
            {"column": "id", "pinned": "string", "found": "bigint"},
            {"column": "more", "pinned": None, "found": "string"},
        ]
        # the declared column is read as declared: only the new one is refused
        (refused,) = found["evolution"]["changes"]
        assert (found["evolution"]["action"], "more" in refused, "id was" in refused) == (
            "refuse",
            True,
            False,
        )
        assert len(feed.entries) == 1


@pytest.mark.parametrize(
    ("form", "first", "later"),
    [
        pytest.param("csv", b"id,note,amount\n1,,\n", b"id,note,amount\n2,x,7\n", id="csv"),
        pytest.param(
            "xml",
            b"<r><row><id>1</id><note/><amount/></row></r>",
            b"<r><row><id>2</id><note>x</note><amount>7</amount></row></r>",
            marks=pytest.mark.full,
            id="xml",
        ),
        pytest.param(
            "excel",
            xlsx([["id", "note", "amount"], [1]]),
            xlsx([["id", "note", "amount"], [2, "x", 7]]),
            marks=pytest.mark.full,
            id="excel",
        ),
    ],
)
def test_a_first_run_names_columns_without_a_value_and_a_remedy_that_types_them(
    make_feed: MakeFeed, form: str, first: bytes, later: bytes
) -> None:
    options = {"options": {"rowTag": "row"}} if form == "xml" else {}
    feed = make_feed(source={"format": form, "schema": None, **options})
    ending = "xlsx" if form == "excel" else form
    feed.put_bytes(f"1.{ending}", first)
    (warning,) = feed.load().warnings
    columns = ", ".join(sorted(["note", "amount"], key=warning.index))
    assert f"2 columns without a value in the first files, so pinned as text: {columns}. For" in warning
    feed.put_bytes(f"2.{ending}", later)
    assert feed.load().warnings == []
    feed.define(source={"schema": "id long, note string, amount double"})
    remedy = warning.rpartition("strandline ")[2].replace("TEXT", "typed").split()
    feed.command(*remedy, "--yes")
    assert feed.load().error is None
    assert feed.rows("id", "amount") == [(1, None), (2, 7.0)]


def test_a_csv_column_without_a_value_in_the_first_file_is_text_and_named(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"format": "csv", "schema": None})
    feed.put_text("1.csv", "id,amount,note\n1,,\n")
    feed.put_text("2.csv", "id,amount,note\n2,7,x\n")
    (warning,) = feed.load().warnings
    assert "2 columns without a value in the first files, so pinned as text: amount, note. For" in warning
    assert feed.rows("id", "amount", "note") == [(1, None, None), (2, "7", "x")]


@pytest.mark.parametrize("schema", [None, "id long, text string"])
def test_a_csv_with_another_separator_stops_the_first_run_until_it_is_named(
    make_feed: MakeFeed, schema: str | None
) -> None:
    feed = make_feed(source={"format": "csv", "schema": schema})
    feed.put_text("1.csv", "id;text\n1;a\n")
    error = feed.fail()
    assert (error.code, feed.entries) == ("bad_header", [])
    assert "(it seems to be separated by ';': set `options: {sep: \";\"}` below `source`)" in error.message
    feed.define(source={"options": {"sep": ";"}})
    assert feed.load().rows == 1
    assert feed.rows("id", "text") == [(1, "a")]
