"""``schema_mode: merge``: new columns and wider types reach the table in the commit of the rows that bring them (docs/reference/schemas.md)."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable

from partitions.column.predicates import ColumnRange, rows_in_ranges
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from scripts import postgres as pg
from tests.integration.conftest import MakeFeed
from tests.integration.test_python_source import make as python_rows
from tests.support.api import BY_TIME as API_BY_TIME
from tests.support.api import ApiFeed, api
from tests.support.columns import PostgresRows, at, on_lake, on_postgres
from tests.support.crash_runner import WRITING, crash
from tests.support.feed import CHECKOUT, Feed, dies_after
from tests.support.file_contents import records_in
from tests.support.reading import Reading, cases
from tests.support.workbooks import xlsx

MERGE = {"schema_mode": "merge"}
INFERRED = {"format": "ndjson", "schema": None}


def pinned(feed: Feed) -> list[str]:
    """The columns that are pinned now, with their types."""
    document = feed.cli("schema", "show", "flow", "--json").json
    return [f"{column['name']} {column['type']}" for column in document["pinned"]["columns"]]


def rows(feed: Feed, *columns: str) -> list[tuple[Any, ...]]:
    """Rows as Spark reads them, sorted by their first column."""
    frame = feed.engine.session().read.format("delta").load(str(feed.table)).select(*columns)
    return sorted((tuple(row) for row in frame.collect()), key=lambda row: row[0])


def _put_parquet(feed: Feed, path: str, table: pa.Table) -> None:
    pq.write_table(table, feed.landing / path)


def merged(source: Any, files: Any, *later: Any, columns: str, rows: list[Any], **more: Any) -> Reading:
    """A table that takes columns; each mapping of files is a load."""
    by_spark, target = more.pop("by_spark", False), MERGE | more.pop("target", {})
    return Reading(
        source, files, columns, rows, more=more | {"target": target}, later=later, by_spark=by_spark
    )


READINGS = {
    "structs get new fields at any depth and rows stay": merged(
        INFERRED, {"a.ndjson": [{"id": 1, "s": {"a": 1}, "l": [{"x": 1}]}]}, {"b.ndjson": [{"id": 2, "s": {"b": {"c": "t"}}, "l": [{"y": 2}, {"x": 3}]}]}, columns="id s l",
        rows=[(1, {"a": 1, "b": None}, [{"x": 1, "y": None}]), (2, {"a": None, "b": {"c": "t"}}, [{"x": None, "y": 2}, {"x": 3, "y": None}])],
    ),
    "a new field of a struct may have any letters": merged(
        INFERRED, {"a.ndjson": [{"id": 1, "s": {"a": 1}}]}, {"b.ndjson": [{"id": 2, "s": {"a": 2, "per cent (%)": 3}}]}, columns="id s",
        rows=[(1, {"a": 1, "per cent (%)": None}), (2, {"a": 2, "per cent (%)": 3})], by_spark=True,
    ),
    "a field without any value is no column": merged(
        INFERRED, {"a.ndjson": [1]}, {"b.ndjson": [{"id": 2, "later": None}]}, {"c.ndjson": [{"id": 3, "later": 1.5}]}, columns="id later", rows=[(1, None), (2, None), (3, 1.5)],
    ),
    "a new folder is a column of text": merged(INFERRED, {"a.ndjson": [1]}, {"region=eu/b.ndjson": [2]}, columns="id region", rows=[(1, None), (2, "eu")]),
    **{
        f"files bring new columns [{form}]": merged(
            {"format": form, "schema": None, **({"options": {"rowTag": "row"}} if form == "xml" else {})},
            records_in(form, "1", {"id": 1}), records_in(form, "2", {"id": 2, "name": "x"}) | records_in(form, "3", {"id": 3}), columns="id name", rows=[(1, None), (2, "x"), (3, None)],
        )
        for form in ("json", "xml", "avro", "excel")
    },
    **{
        f"merges by keys take new columns [{load}]": merged(
            {"schema": "id int, s struct<a: int>"}, {"a.ndjson": [{"id": 1, "s": {"a": 1}}, {"id": 2, "s": {"a": 2}}]},
            {"b.ndjson": [{"id": 2, "name": "x", "s": {"b": "t"}}, {"id": 2**40, "s": {"a": 2**41}}]}, {"c.ndjson": [1]}, columns="id s name",
            rows=[(1, None, None), (2, {"a": None, "b": "t"}, "x"), (2**40, {"a": 2**41, "b": None}, None)],
            target={"load": load, "merge_keys": ["id"]}, late_files="alert", by_spark=True,
        )
        for load in ("merge_upsert", "merge_overwrite")
    },
    "versions of rows differ by a new column": merged(
        {"schema": "id long, at long"}, {"a.ndjson": [{"id": 1, "at": 1}, {"id": 2, "at": 1}]}, {"b.ndjson": [{"id": 1, "at": 2, "name": "x"}, {"id": 2, "at": 2}]},
        columns="id at name _valid_to _is_current", rows=[(1, 1, None, 2, False), (1, 2, "x", None, True), (2, 1, None, None, True)],
        target={"load": "scd2", "merge_keys": ["id"], "effective_column": "at"},
    ),
    "files above a column bring new columns": merged(
        {"schema": "id int"}, {"a.ndjson": [1]}, {"b.ndjson": [{"id": 2, "name": "x"}]}, {"c.ndjson": [2**40]}, columns="id name", rows=[(1, None), (2, "x"), (2**40, None)],
        watermark={"type": "column", "columns": ["id"]}, by_spark=True,
    ),
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("reading", cases(READINGS))
def test_new_columns_come_with_the_rows_that_bring_them(make_feed: MakeFeed, reading: Reading) -> None:
    reading.check(make_feed)


class TestFilesOfEachFormat:
    @pytest.mark.full
    def test_a_new_field_of_ndjson_becomes_a_column_with_its_rows(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=INFERRED, target=MERGE)
        feed.put("a.ndjson", {"id": 1})
        feed.load()
        feed.put("b.ndjson", {"id": 2, "name": "x", "more": {"deep": [1]}}, {"id": 3})
        outcome = feed.load()
        assert rows(feed, "id", "name", "more.deep") == [
            (1, None, None),
            (2, "x", [1]),
            (3, None, None),
        ]
        assert pinned(feed) == ["id bigint", "more struct<deep:array<bigint>>", "name string"]
        assert outcome.warnings[-1] == (
            "the schema changes with file b.ndjson: more is new (struct<deep:array<bigint>>); name is new (string)"
        )
        assert [entry.number for entry in feed.entries] == [1, 2]
        assert [commit.operation for commit in feed.commits][-1] == "WRITE"
        assert feed.load().status == "nothing"
        feed.put("c.ndjson", {"id": 4, "name": "y"})
        assert not any("schema" in warning for warning in feed.load().warnings)
        assert rows(feed, "id", "name")[3] == (4, "y")

    @pytest.mark.full
    def test_a_number_that_does_not_fit_its_whole_number_widens_the_column(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id int, n array<int>"}, target=MERGE)
        feed.put("a.ndjson", {"id": 1, "n": [1]})
        feed.load()
        assert feed.types["id"] == "integer"
        feed.put("b.ndjson", {"id": 2, "n": [2]})
        feed.load()
        assert feed.types["id"] == "integer"  # all values fit
        asked = feed.cli("schema", "infer", "flow").json["evolution"]
        assert (asked["action"], asked["values"]) == (
            "none",
            "a whole number that is too large for its column makes it wider; any other value that does not fit is a bad record",
        )
        feed.put("c.ndjson", {"id": 2**40, "n": [3]})
        feed.load()
        assert rows(feed, "id", "n") == [(1, [1]), (2, [2]), (2**40, [3])]
        assert pinned(feed) == ["id bigint", "n array<int>"]
        assert feed.cli("schema", "show", "flow").json["pinned"]["changed"]

    @pytest.mark.full
    def test_a_large_whole_number_of_csv_is_told_before_it_widens(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "csv", "schema": "id int, n int"}, target=MERGE)
        feed.put_text("a.csv", "id,n\n1,1\n")
        feed.load()
        feed.put_text("b.csv", "id,n\n2,3000000000\n")
        asked = feed.cli("schema", "infer", "flow").json["evolution"]
        assert (asked["action"], asked["changes"]) == ("merge", ["n was int, is bigint"])
        feed.load()
        assert feed.types["n"] == "long"

    def test_a_type_that_is_not_wider_stops_and_names_column_and_file(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": None}, target=MERGE)
        _put_parquet(feed, "a.parquet", pa.table({"id": pa.array([1], pa.int64())}))
        feed.load()
        _put_parquet(feed, "b.parquet", pa.table({"id": pa.array([2], pa.int64())}))
        _put_parquet(feed, "c.parquet", pa.table({"id": ["x"]}))
        error = feed.fail()
        assert error.code == "type_change_not_allowed"
        assert error.message.startswith(
            "file c.parquet: column id: expected bigint or a wider type that keeps all values, found string."
        )
        assert error.choices == ("strandline state reset flow --replace --reason TEXT",)
        assert rows(feed, "id") == [(1,), (2,)]

    @pytest.mark.full
    def test_parquet_brings_columns_and_wider_types_and_casts_up(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "parquet", "schema": None}, target=MERGE)
        _put_parquet(
            feed,
            "a.parquet",
            pa.table({"id": pa.array([1], pa.int32()), "f": pa.array([1.5], pa.float32())}),
        )
        feed.load()
        assert feed.types == {"id": "integer", "f": "float"}
        _put_parquet(
            feed,
            "b.parquet",
            pa.table(
                {"id": pa.array([2**40]), "f": pa.array([0.1]), "d": pa.array([b"x"]), "l": pa.array([[1]])}
            ),
        )
        _put_parquet(feed, "c.parquet", pa.table({"id": pa.array([3], pa.int16())}))
        feed.load()
        assert rows(feed, "id", "f", "d", "l") == [
            (1, 1.5, None, None),
            (3, None, None, None),
            (2**40, 0.1, b"x", [1]),
        ]
        assert feed.types["id"] == "long"

    @pytest.mark.full
    @pytest.mark.parametrize("mode", ["merge", "strict"])
    def test_types_are_inferred_of_csv_files_under_one_header(self, make_feed: MakeFeed, mode: str) -> None:
        feed = make_feed(source={"format": "csv", "schema": None}, target={"schema_mode": mode})
        feed.put_text("a.csv", "id,d\n1,2026-01-01\n")
        feed.put_text("b.csv", "id,d,x\n2,2026-01-02,3\n")
        assert (feed.run().error is None) == (mode == "merge")
        types = {
            field.name: str(field.type) for field in DeltaTable(str(feed.table)).to_pyarrow_table().schema
        }
        expected = {"id": "int32", "d": "date32[day]"} | ({"x": "int32"} if mode == "merge" else {})
        assert {name: types[name] for name in types if not name.startswith("_")} == expected
        assert feed.ids == ([1, 2] if mode == "merge" else [1])

    @pytest.mark.full
    def test_csv_files_may_have_columns_more_fewer_and_in_another_order(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"format": "csv", "schema": None}, target=MERGE)
        feed.put_text("a.csv", "id,name\n1,x\n")
        feed.load()
        feed.put_text("b.csv", "extra,id\n1.5,2\n")
        feed.put_text("c.csv", "name,id\ny,3\n")
        feed.put_text("d.csv", "id,name\n4000000000,z\n")
        feed.load()
        assert rows(feed, "id", "name", "extra") == [
            (1, "x", None),
            (2, None, 1.5),
            (3, "y", None),
            (4000000000, "z", None),
        ]
        feed.put_text("e.csv", "id,name,extra\n5,q,abc\n")
        error = feed.fail()
        assert "line 2: field extra: expected double, found other text" in error.message

    @pytest.mark.parametrize("form", ["csv", "excel"])
    @pytest.mark.full
    def test_only_files_that_load_tell_new_columns(self, make_feed: MakeFeed, form: str) -> None:
        source = {"format": form, "schema": "id long"}
        feed = make_feed(source=source, target=MERGE, on_bad_file="quarantine")

        def put(name: str, *lines: list[Any]) -> None:
            if form == "excel":
                feed.put_bytes(f"{name}.xlsx", xlsx(lines))
            else:
                feed.put_text(f"{name}.csv", "".join(f"{','.join(map(str, line))}\n" for line in lines))

        put("1", ["id"], [1])
        put("2", ["id", "new"], ["x", "text"])
        put("3", ["id"], [3])
        outcome = feed.load()
        assert (feed.ids, feed.types, outcome.quarantined) == ([1, 3], {"id": "long"}, 1)
        assert not any("the schema changes" in line for line in outcome.warnings)
        put("4", ["id", "new"], ["y", "text"])
        put("5", ["id", "new"], [5, 1.5])
        outcome = feed.load()
        assert (rows(feed, "id", "new")[-1], feed.types["new"]) == ((5, 1.5), "double")
        assert any(line.startswith("the schema changes with file 5.") for line in outcome.warnings)

    @pytest.mark.parametrize("second", ["id,new\nx,1\n", "id\n3000000000\nx\n"])
    def test_a_stopped_run_takes_no_column_of_bad_files(self, make_feed: MakeFeed, second: str) -> None:
        feed = make_feed(source={"format": "csv", "schema": "id int"}, target=MERGE)
        feed.put_text("1.csv", "id\n1\n")
        feed.put_text("2.csv", second)
        feed.put_text("3.csv", "id,later\n3,1\n")
        outcome = feed.run()
        assert "file 2.csv, line" in str(outcome.error)
        assert "found other text, 'x'" in str(outcome.error)
        assert (rows(feed, "id"), feed.types) == ([(1,)], {"id": "integer"})
        assert not any("the schema changes" in line for line in outcome.warnings)

    def test_a_name_that_differs_in_case_only_is_refused(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=INFERRED, target=MERGE)
        feed.put("a.ndjson", {"id": 1})
        feed.load()
        feed.put("b.ndjson", {"id": 2, "Id": 3})
        error = feed.fail()
        assert (
            "b.ndjson, line 1: expected field names that differ in more than upper and lower case, found id and Id"
            in error.message
        )


class TestDeclared:
    def test_a_column_that_is_added_to_the_declared_schema_is_a_new_column(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id int"}, target=MERGE)
        feed.put("a.ndjson", 1)
        feed.load()
        feed.define(source={"schema": "id long, day date"})
        feed.put("b.ndjson", {"id": 2, "day": "2026-01-02"})
        feed.load()
        assert rows(feed, "id", "day") == [(1, None), (2, date(2026, 1, 2))]
        assert feed.types == {"id": "long", "day": "date"}

    def test_a_step_that_gives_more_columns_widens_the_table(self, make_feed: MakeFeed) -> None:
        feed = make_feed(target=MERGE)
        feed.put("a.ndjson", 1)
        feed.load()
        feed.define(sql="select *, id * 2 as twice from input")
        feed.put("b.ndjson", 2)
        feed.load()
        assert rows(feed, "id", "twice") == [(1, None), (2, 4)]


class TestLoads:
    @pytest.mark.parametrize("format_", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
    @pytest.mark.full
    def test_the_times_of_versions_become_as_wide_as_the_time_they_are_taken_from(
        self, tmp_path: Path, engine: SparkEngine, format_: str
    ) -> None:
        target = MERGE | {
            "load": "scd2",
            "merge_keys": ["id"],
            "effective_column": "value",
            "format": format_,
        }
        source = {"format": "ndjson", "schema": "id long, value int, name string"}
        feed = Feed(tmp_path, engine, {"source": source, "target": target})
        feed.put("a.ndjson", {"id": 1, "value": 1, "name": "a"})
        feed.load()
        wide = 2**40
        feed.put("b.ndjson", {"id": 1, "value": wide, "name": "b"}, {"id": 2, "value": 1, "name": "a"})
        feed.load()
        feed.put("c.ndjson", {"id": 1, "value": 7, "name": "c"})
        feed.load()
        columns = ("id", "value", "_valid_from", "_valid_to", "_is_current")
        found = rows(feed, *columns) if format_ == "delta" else feed.rows(*columns)
        assert sorted(found) == [
            (1, 1, 1, 7, False),
            (1, 7, 7, wide, False),
            (1, wide, wide, None, True),
            (2, 1, 1, None, True),
        ]

    @pytest.mark.parametrize(
        "load", [{}, {"load": "merge_upsert", "merge_keys": ["id"]}], ids=["append", "keys"]
    )
    @pytest.mark.full
    def test_a_load_with_a_new_column_moves_the_watermark(
        self, tmp_path: Path, engine: SparkEngine, load: dict[str, Any]
    ) -> None:
        flow, source = on_lake(tmp_path, engine, target=MERGE | load)
        source.put({"id": 1, "at": at(1), "value": 10})
        flow.run()
        spark = engine.session()
        spark.sql(f"ALTER TABLE delta.`{source.path}` ADD COLUMNS (name string)")
        spark.sql(f"INSERT INTO delta.`{source.path}` SELECT 2, timestamp'{at(2).isoformat()}', 20, 'x'")
        assert flow.run().error is None
        assert flow.run().status == "nothing"
        assert rows(flow.feed, "id", "value", "name") == [(1, 10, None), (2, 20, "x")]


class TestCrashes:
    @pytest.mark.full
    @pytest.mark.parametrize("step", [Step.INTENT_PUT, WRITING, Step.WRITTEN, Step.VERIFIED])
    @pytest.mark.parametrize(
        ("form", "load"),
        [(form, load) for form in ("delta", "iceberg") for load in ("append", "merge_upsert")]
        + [("parquet", "append")],
    )
    def test_runs_that_die_in_a_change_load_once(
        self, make_feed: MakeFeed, step: str, form: str, load: str
    ) -> None:
        keys = {"merge_keys": ["id"]} if load != "append" else {}
        source = {"schema": "id int, s struct<a: int>"}
        feed = make_feed(source=source, target=MERGE | {"format": form, "load": load} | keys)
        feed.put("a.ndjson", {"id": 1, "s": {"a": 1}})
        feed.load()
        feed.put("b.ndjson", {"id": 2**40, "name": "x", "s": {"b": "t"}})
        crash(feed, step)
        assert feed.load().status == "recovered"
        table = feed.platform.table(feed.dataflow)
        found = table.contents.read(feed.engine.session(), table.contents.newest_version()).select(
            "id", "name", "s.a", "s.b"
        )
        assert sorted(map(tuple, found.collect())) == [(1, None, 1, None), (2**40, "x", None, "t")]
        assert pinned(feed) == ["id bigint", "s struct<a:int,b:string>", "name string"]
        assert feed.load().status == "nothing"

    @pytest.mark.full
    def test_a_source_that_changed_again_is_planned_again(self, tmp_path: Path, engine: SparkEngine) -> None:
        flow, source = on_lake(tmp_path, engine, target=MERGE)
        source.put({"id": 1, "at": at(1), "value": 10})
        with pytest.raises(KeyboardInterrupt):
            flow.feed.run(dies_after(Step.INTENT_PUT))
        place, spark = f"delta.`{source.path}`", engine.session()
        spark.sql(f"ALTER TABLE {place} ADD COLUMNS (name string)")
        spark.sql(f"INSERT INTO {place} SELECT 2, timestamp'{at(2).isoformat()}', 20, 'x'")
        outcome = flow.feed.load()
        assert outcome.warnings[0].startswith(
            "slice 1 of a run that died was abandoned, and its work is planned again: the schema changes"
        )
        assert rows(flow.feed, "id", "name") == [(1, None), (2, "x")]


class TestOtherSources:
    @pytest.mark.postgres
    @pytest.mark.full
    def test_columns_of_a_database_are_added_widened_and_dropped(
        self, tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
    ) -> None:
        table = PostgresRows(postgres, columns="id int, at timestamptz, value int")
        flow = on_postgres(tmp_path, engine, table, target=MERGE)
        table.put((1, at(1), 10))
        flow.run()
        table.ask("ALTER TABLE {s}.rows ADD COLUMN name text, ALTER COLUMN value TYPE bigint")
        table.put((2, at(2), 2**40, "x"))
        outcome = flow.run()
        assert outcome.error is None
        assert rows(flow.feed, "id", "value", "name") == [(1, 10, None), (2, 2**40, "x")]
        table.ask("ALTER TABLE {s}.rows DROP COLUMN value")
        table.put((3, at(3), "y"))
        outcome = flow.run()
        assert outcome.error is None
        assert rows(flow.feed, "id", "value", "name") == [(1, 10, None), (2, 2**40, "x"), (3, None, "y")]
        assert outcome.warnings == [f"{table.name} of erp no longer has value: new rows have NULL there"]
        table.ask("ALTER TABLE {s}.rows ALTER COLUMN name TYPE int USING length(name)")
        table.put((4, at(4), 7))
        error = flow.feed.fail()
        assert (error.code, getattr(error, "reason", "")) == ("schema", "type_change_not_allowed")
        assert (
            "column name: expected string or a wider type that keeps all values, found int" in error.message
        )

    def test_fields_of_an_api_become_columns(self, tmp_path: Path, engine: SparkEngine) -> None:
        with api() as server:
            flow = ApiFeed(tmp_path, engine, server, API_BY_TIME, {"target": MERGE}).flow()
            server.rows = [{"id": 1, "at": at(1).isoformat()}]
            flow.run("2026-01-03")
            server.rows += [{"id": 2, "at": at(4).isoformat(), "name": "x", "s": {"a": 1}}]
            outcome = flow.run("2026-01-05")
            assert outcome.error is None
            assert outcome.warnings[-1].endswith(": name is new (string); s is new (struct<a:bigint>)")
        assert rows(flow.feed, "id", "name", "s.a") == [(1, None, None), (2, "x", 1)]

    def test_columns_of_a_function_come_and_vanish(self, tmp_path: Path, engine: SparkEngine) -> None:
        flow, code = python_rows(tmp_path, engine, target=MERGE)
        code.put({"id": 1, "at": at(1).isoformat(), "value": 1})
        flow.run()
        code.put({"id": 2, "at": at(2).isoformat(), "value": 2, "name": "x", "empty": None})
        outcome = flow.run()
        assert outcome.error is None
        assert rows(flow.feed, "id", "value", "name") == [(1, 1, None), (2, 2, "x")]
        code.put({"id": 3, "at": at(3).isoformat(), "value": "text"})
        error = flow.feed.fail()
        assert "column value: expected values of type bigint, found others" in error.message

    def test_a_plan_says_what_changes_with_a_table(self, tmp_path: Path, engine: SparkEngine) -> None:
        flow, source = on_lake(tmp_path, engine, target=MERGE)
        source.put({"id": 1, "at": at(1), "value": 10})
        flow.run()
        engine.session().sql(f"ALTER TABLE delta.`{source.path}` ADD COLUMNS (name string)")
        (planned,) = flow.feed.cli("plan", "flow", "--json").json
        assert (
            planned["warnings"][-1] == "the next rows change the schema with raw/rows: name is new (string)"
        )
        flow.feed.define(target={"schema_mode": "strict"})
        (planned,) = flow.feed.cli("plan", "flow", "--json").json
        assert planned["warnings"][-1].startswith(
            "the next run with rows stops: columns of raw/rows: expected the table's columns, found others: name is new"
        )


class TestWidenedTables:
    @pytest.mark.full
    def test_what_needs_no_spark_reads_a_table_with_wider_columns(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": "id int, v float"}, target=MERGE)
        feed.put("a.ndjson", {"id": 1, "v": 1.5})
        feed.load()
        feed.define(source={"schema": "id long, v double"})
        feed.put("b.ndjson", {"id": 2**40, "v": 0.1}, {"id": 7})
        feed.load()
        table = feed.platform.table(feed.dataflow)
        version = table.contents.newest_version()
        above = rows_in_ranges([ColumnRange("id", 2**39, None)])
        below = rows_in_ranges([ColumnRange("id", None, 0)])
        assert table.contents.highest_values(["id", "v"]) == {"id": 2**40, "v": 1.5}
        assert table.contents.highest_values(["v"], version, above) == {"v": 0.1}
        assert (table.contents.holds_any(version, above), table.contents.holds_any(version, below)) == (
            True,
            False,
        )
        assert list(table.contents.distinct_rows(["id"])) == [{"id": 1}, {"id": 7}, {"id": 2**40}]
        assert list(table.contents.distinct_rows(["v"])) == [{"v": None}, {"v": 0.1}, {"v": 1.5}]
        assert table.contents.count_rows() == 3


@pytest.mark.full
def test_the_example_of_the_page_prints_what_the_page_shows(make_feed: MakeFeed) -> None:
    page = (CHECKOUT / "docs/reference/schemas.md").read_text()
    example = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    feed = make_feed(**example)
    files = feed.folder / "landing" / "orders"
    files.mkdir()
    (files / "1780100001.ndjson").write_text('{"id": 1, "customer": {"name": "Ada"}}\n')
    feed.load()
    (files / "1780100002.ndjson").write_text(
        page.partition("whose `id` is a text:\n\n```\n")[2].partition("```")[0]
    )
    warnings = feed.load().warnings
    shown = [line.removeprefix("  warning: ") for line in page.splitlines() if line.startswith("  warning: ")]
    assert warnings == [line.replace("bronze/orders", "bronze/flow") for line in shown]


@pytest.mark.parametrize("first", [{"id": 1}, None], ids=["later", "first file"])
def test_a_field_named_as_a_column_that_loading_adds_is_refused(make_feed: MakeFeed, first: Any) -> None:
    feed = make_feed(source=INFERRED, target=MERGE)
    if first is not None:
        feed.put("1.ndjson", first)
        feed.load()
    feed.put("2.ndjson", {"id": 2, "_Run_Id": "mine"})
    error = feed.fail()
    assert error.code == ("schema" if first is None else "incompatible_schema")
    assert "_run_id), found _Run_Id" in error.message
    assert feed.ids == ([] if first is None else [1])
    feed.define(target={"origin_columns": False})
    if first is None:
        feed.load()
        assert feed.rows("id", "_Run_Id") == [(2, "mine")]
