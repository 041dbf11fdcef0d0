"""Rows above a column watermark, from PostgreSQL and from tables of the lake: each once, and what a run reads is known before it reads."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from partitions.column.slices import ColumnSlice
from partitions.sentinels import serialise
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from scripts import postgres as pg
from tests.support.columns import BY_TIME, REPLACED, Columns, PostgresRows, at, on_lake, on_postgres
from tests.support.crash_runner import crash
from tests.support.feed import dies_after
from tests.support.iceberg import foreign_table


@pytest.mark.postgres
def test_a_run_reads_rows_above_the_stored_value_once(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table)
    table.put((1, at(1), 10), (2, at(2), 20))
    assert flow.run().status == "committed"
    assert flow.run().status == "nothing"
    table.put((3, at(2, 1), 30))
    assert flow.run().rows == 1
    assert flow.ids == [1, 2, 3]
    assert flow.watermark == {"at": at(2, 1)}


@pytest.mark.postgres
def test_rows_of_the_same_value_are_read_together(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table, watermark=BY_TIME | {"checkpoint": {"interval_rows": 8}})
    table.put(*[(number, at(1 + number // 3), 0) for number in range(30)])
    outcome = flow.run()
    assert flow.ids == list(range(30))
    assert [committed.rows for committed in outcome.committed] == [12, 12, 6]


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("column", "type_"), [("strandline_0", "timestamptz"), ("the ? time", "timestamp"), ('a "day"', "date")]
)
def test_rows_without_a_value_go_with_the_first_part_whatever_the_column_is_called(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres, column: str, type_: str
) -> None:
    name = column.replace('"', '""')
    table = PostgresRows(postgres, columns=f'id bigint, "{name}" {type_}', indexed=f'"{name}"')
    watermark = {"type": "column", "columns": [column], "checkpoint": {"interval_rows": 8}, "nulls": "first"}
    flow = on_postgres(tmp_path, engine, table, watermark=watermark)
    table.put(*[(number, at(1 + number) if number else None) for number in range(21)])
    assert [committed.rows for committed in flow.run().committed] == [9, 8, 4]
    assert flow.ids == list(range(21))


@pytest.mark.postgres
def test_a_source_without_index_is_read_to_the_clock_and_nothing_is_empty(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres, indexed=None)
    flow = on_postgres(tmp_path, engine, table)
    table.put((1, at(1), 10), (2, datetime(2200, 1, 1, tzinfo=UTC), 20))
    assert flow.run().rows == 1
    assert flow.watermark == {"at": at(1)}
    assert flow.run().status == "nothing"
    assert flow.feed.newest is not None
    assert flow.feed.newest.number == 1


@pytest.mark.postgres
@pytest.mark.parametrize("indexed", ["id", None])
def test_numbers_are_read_up_to_the_highest_that_is_there(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres, indexed: str | None
) -> None:
    table = PostgresRows(postgres, indexed=indexed)
    flow = on_postgres(tmp_path, engine, table, watermark={"type": "column", "columns": ["id"]})
    table.put((1, at(1), 10), (7, None, 20), (None, at(3), 30))
    flow.run()
    assert flow.watermark == {"id": 7}
    table.put((8, at(1), 10), (None, at(4), 30))
    flow.run()
    assert flow.watermark == {"id": 8}
    assert sorted(flow.feed.rows("value")) == [(10,), (10,), (20,), (30,)]


@pytest.mark.postgres
def test_a_look_back_reads_corrected_rows_again_and_replaces_them(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(
        tmp_path, engine, table, watermark=BY_TIME | {"backward": {"days": 2}}, target=REPLACED
    )
    table.put(*[(number, at(number), number) for number in range(1, 6)])
    flow.run()
    table.ask("UPDATE {s}.rows SET value = 0 WHERE id IN (1, 4)")
    table.ask("DELETE FROM {s}.rows WHERE id = 5")
    outcome = flow.run()
    assert sorted(flow.feed.rows("id", "value")) == [(1, 1), (2, 2), (3, 3), (4, 0)]
    assert outcome.as_json()["watermark_effective"] == {"at": {"__datetime__": at(3).isoformat()}}
    assert flow.watermark == {"at": at(5)}


def test_a_table_of_the_lake_is_read_above_the_stored_value(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(tmp_path, engine)
    table.add({"id": 1, "at": at(1), "value": 1}, {"id": 2, "at": at(2, 7), "value": 2})
    flow.run()
    assert flow.run().status == "nothing"
    table.add({"id": 3, "at": at(2, 7), "value": 3}, {"id": 4, "at": at(2, 8), "value": 4})
    flow.run()
    assert flow.ids == [1, 2, 4]
    assert flow.watermark == {"at": at(2, 8)}


@pytest.mark.postgres
@pytest.mark.parametrize(
    "step",
    [
        Step.INTENT_PUT,
        Step.WRITTEN,
        *(
            pytest.param(step, marks=pytest.mark.full)
            for step in (Step.PLANNED, Step.LIST_KEPT, Step.VERIFIED, Step.APPENDED)
        ),
    ],
)
def test_a_killed_client_leaves_rows_once_and_saves_the_highest_value(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres, step: Step
) -> None:
    """Without an index the bound is looked up before the read, and stands in the intent."""
    table = PostgresRows(postgres, indexed=None)
    flow = on_postgres(tmp_path, engine, table, watermark={"type": "column", "columns": ["id"]})
    table.put((1, at(1), 1), (2, at(1), 2))
    crash(flow.feed, step)
    table.put((3, at(1), 3))
    flow.run()
    flow.run()
    assert flow.ids == [1, 2, 3]
    assert flow.watermark == {"id": 3}
    assert flow.feed.open_intent is None


@pytest.mark.parametrize("format_", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
def test_a_killed_run_saves_the_highest_read_time(tmp_path: Path, engine: SparkEngine, format_: str) -> None:
    flow, table = on_lake(tmp_path, engine, target={"load": "append", "format": format_})
    table.put({"id": 1, "at": at(1), "value": 1})
    crash(flow.feed, Step.WRITTEN)
    table.put({"id": 2, "at": at(2), "value": 1})
    assert flow.run().status == "recovered"
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 2], {"at": at(2)})


@pytest.mark.postgres
def test_a_rewind_that_replaces_loads_what_the_source_has_now_once(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table)
    table.put((1, at(1), 1), (2, None, 2))
    flow.run()
    table.put((3, at(3), 3), (4, at(4), 4))
    flow.run()
    table.ask("UPDATE {s}.rows SET value = value * 10")
    table.ask("DELETE FROM {s}.rows WHERE id = 4")
    flow.feed.decide("rewind", "--to", "0", "--replace")
    flow.run()
    assert sorted(flow.feed.rows("id", "value")) == [(1, 10), (2, 20), (3, 30)]
    assert flow.watermark == {"at": at(3)}


@pytest.mark.postgres
def test_a_lost_state_is_adopted_from_the_table(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table)
    table.put((1, at(1), 1), (2, at(2, 5), 2))
    flow.run()
    shutil.rmtree(flow.feed.state)
    assert flow.fail().code == "state_lost"
    flow.feed.decide("adopt")
    assert flow.watermark == {"at": at(2, 5)}
    table.put((3, at(3), 3))
    flow.run()
    assert flow.ids == [1, 2, 3]


@pytest.mark.postgres
def test_a_user_s_query_is_read_above_the_watermark_around_it(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    query = f"SELECT id, at, value FROM {table.name} WHERE value > 0 OR value < -5; -- all but zero"
    flow = on_postgres(tmp_path, engine, table, source={"query": query})
    table.put((1, at(1), 1), (2, at(1), 0))
    flow.run()
    table.put((3, at(2), -9), (4, at(2), 0))
    flow.run()
    assert flow.ids == [1, 3]
    assert flow.run().status == "nothing"


@pytest.mark.postgres
@pytest.mark.parametrize("change", ["DROP COLUMN at", "ALTER COLUMN at TYPE text", "DROP COLUMN value"])
def test_a_column_that_vanished_or_changed_stops_the_run_before_anything_is_begun(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres, change: str
) -> None:
    table = PostgresRows(postgres)
    flow = on_postgres(tmp_path, engine, table)
    table.put((1, at(1), 1))
    flow.run()
    table.ask(f"ALTER TABLE {{s}}.rows {change}")
    table.ask("INSERT INTO {s}.rows (id) VALUES (2)")
    if "value" in change:
        table.ask("UPDATE {s}.rows SET at = now() - interval '1 minute' WHERE id = 2")
    error = flow.fail()
    assert error is not None
    assert error.exit_code in (1, 4)
    assert flow.feed.open_intent is None
    assert flow.ids == [1]


@pytest.mark.postgres
@pytest.mark.parametrize("indexed", ["id", None])
def test_rows_that_a_query_drops_are_read_once(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres, indexed: str | None
) -> None:
    table = PostgresRows(postgres, indexed=indexed)
    by_id = {"type": "column", "columns": ["id"]}
    flow = on_postgres(tmp_path, engine, table, watermark=by_id, sql="SELECT * FROM input WHERE value > 0")
    table.put((1, at(1), 1), (2, at(1), 0))
    flow.run()
    assert (flow.ids, flow.watermark) == ([1], {"id": 2})
    assert flow.run().status == "nothing"


DROPS = "SELECT * FROM input WHERE value > 0"


@pytest.mark.parametrize(
    ("watermark", "target"),
    [
        (BY_TIME, {"load": "append"}),
        (BY_TIME | {"backward": {"days": 1}}, REPLACED),
        (BY_TIME | {"columns": ["at", "id"]}, {"load": "merge_upsert", "merge_keys": ["id"]}),
    ],
)
def test_rows_that_reach_a_table_later_are_read_behind_a_step(
    tmp_path: Path, engine: SparkEngine, watermark: dict[str, Any], target: dict[str, Any]
) -> None:
    flow, table = on_lake(tmp_path, engine, watermark=watermark, target=target, sql=DROPS)
    table.put({"id": 1, "at": at(1), "value": 1}, {"id": 2, "at": at(2), "value": 0})
    flow.run()
    assert flow.watermark["at"] == at(2), (
        "the highest value that was read, though the step has dropped its row"
    )
    flow.run()
    assert flow.watermark["at"] == at(2)
    table.put(
        {"id": 3, "at": at(3), "value": 1}, {"id": 4, "at": datetime(2200, 1, 1, tzinfo=UTC), "value": 1}
    )
    flow.run()
    assert 3 in flow.ids
    assert flow.watermark["at"] == at(3)


def test_state_set_takes_times_as_written_and_in_its_zone(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(tmp_path, engine, watermark=BY_TIME | {"timezone": "+02:00"})
    table.put({"id": 1, "at": at(1), "value": 1})
    flow.run()
    lower = flow.feed.cli("state", "set", "flow", '{"at": "2025-12-31"}', "--reason", "skip", "--yes")
    assert lower.code == 4
    said = "expected a watermark at or above at = 2026-01-01 12:00:00+00:00, found at = 2025-12-30 22:00:00+00:00:"
    assert lower.json["error"]["message"].split(" set ")[0] == f"dataflow flow: {said}"
    wrong = flow.feed.cli("state", "set", "flow", '{"at": "soon"}', "--reason", "skip", "--yes")
    assert (wrong.code, "found text 'soon'" in wrong.out) == (2, True)
    number = flow.feed.cli("state", "set", "flow", '{"at": 5}', "--reason", "skip", "--yes")
    assert number.json["error"]["message"] == (
        'dataflow flow: expected a watermark such as {"at": "2026-04-03T09:15:00+00:00"}, found {"at": 5}'
    )
    done = flow.feed.cli("state", "set", "flow", '{"at": "2026-01-02 14:00"}', "--reason", "skip", "--yes")
    assert (done.code, flow.watermark) == (0, {"at": at(2)})


def test_another_column_is_refused_and_ways_on_are_named(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(tmp_path, engine)
    table.put({"id": 1, "at": at(1), "value": 1})
    flow.run()
    flow.feed.define(watermark={"columns": ["id"]})
    refused = flow.feed.cli("state", "accept", "flow", "--reason", "by id", "--yes")
    assert refused.code == 4
    assert "columns was at, is id (the stored values belong to other columns" in refused.out
    assert "strandline state reset flow --replace" in refused.out
    assert "__datetime__" not in refused.out


def test_an_unknown_column_is_named_beside_those_there_are(tmp_path: Path, engine: SparkEngine) -> None:
    keys = {"load": "merge_upsert", "merge_keys": ["idd"]}
    flow, table = on_lake(tmp_path, engine, watermark={"type": "column", "columns": ["att"]}, target=keys)
    table.put({"id": 1, "at": at(1), "value": 1})
    there = "the names are id, at, value"
    assert f"watermark.columns: expected columns of the source, found att (did you mean at?); {there}" in str(
        flow.fail()
    )
    flow.feed.define(watermark={"columns": ["at"]})
    assert f"target.merge_keys: expected columns of the rows, found idd (did you mean id?); {there}" in str(
        flow.fail()
    )


@pytest.mark.postgres
def test_rows_without_a_value_alone_are_not_loaded_before_there_is_a_value_to_save(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres, indexed=None)
    flow = on_postgres(tmp_path, engine, table, watermark={"type": "column", "columns": ["id"]})
    table.put((None, at(1), 1))
    assert flow.run().status == "nothing"
    table.put((1, at(1), 2))
    flow.run()
    assert flow.run().status == "nothing"
    assert sorted(flow.feed.rows("value")) == [(1,), (2,)]


@pytest.mark.full
def test_a_column_with_its_first_values_later_is_read_then(tmp_path: Path, engine: SparkEngine) -> None:
    """What is replaced is what is read: rows with a value in the column that had none, wherever the other one lies."""
    moments = ("at", "changed")
    schema = pa.schema([("id", pa.int64()), *((name, pa.timestamp("us", "UTC")) for name in moments)])
    several = {"type": "column", "columns": list(moments), "backward": {"days": 1}}
    flow, table = on_lake(tmp_path, engine, schema=schema, watermark=several, target=REPLACED)
    table.put({"id": 2, "at": at(9), "changed": None})
    flow.run()
    table.put({"id": 1, "at": at(1), "changed": at(10)})
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 2], {"at": at(9), "changed": at(10)})
    table.put({"id": 1, "at": at(1), "changed": at(11)})
    flow.run()
    assert flow.feed.rows("id", "changed") == [(1, at(11)), (2, None)]


@pytest.mark.full
@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_slice_of_a_lost_version_is_new(tmp_path: Path, engine: SparkEngine, is_made_again: bool) -> None:
    """Its files were cleaned up after the run died; or the table was dropped, and another one has fewer versions."""
    flow, table = on_lake(tmp_path, engine)
    table.put({"id": 1, "at": at(1), "value": 1})
    table.put({"id": 1, "at": at(1), "value": 2})
    with pytest.raises(KeyboardInterrupt):
        flow.feed.run(dies_after(Step.INTENT_PUT))
    if is_made_again:
        shutil.rmtree(table.path)
    table.put({"id": 1, "at": at(1), "value": 3})
    for file in set(table.path.glob("*.parquet")) - set(table.files()):
        file.unlink()
    outcome = flow.run()
    assert flow.feed.rows("id", "value") == [(1, 3)]
    assert [entry.why for entry in flow.feed.entries] == ["abandon", "run"]
    assert any("table raw/rows: version 1 cannot be read" in warning for warning in outcome.warnings)


def test_infinity_and_nan_of_a_table_bound_nothing(tmp_path: Path, engine: SparkEngine) -> None:
    schema = pa.schema([("id", pa.int64()), ("value", pa.float64())])
    by_value = {"type": "column", "columns": ["value"]}
    flow, table = on_lake(tmp_path, engine, schema=schema, watermark=by_value)
    table.put(*({"id": number, "value": value} for number, value in enumerate([1.5, math.nan, math.inf])))
    flow.run()
    table.put({"id": 3, "value": 2.5})
    flow.run()
    assert (flow.ids, flow.watermark) == ([0, 3], {"value": 2.5})


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_decimals_of_38_digits_are_read_exactly(tmp_path: Path, engine: SparkEngine, format_: str) -> None:
    flow, insert = _on_lake_of_spark(tmp_path, engine, format_, "id int, at decimal(38, 18)")
    for number, digit in enumerate("78", 1):
        insert(f"({number}, 12345678901234567890.12345678901234567{digit})")
        assert flow.run().rows == 1
    assert flow.run().status == "nothing"
    assert (flow.ids, flow.watermark) == ([1, 2], {"at": Decimal("12345678901234567890.123456789012345678")})


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
@pytest.mark.parametrize("type_", ["date", pytest.param("timestamp_ntz", marks=pytest.mark.full)])
def test_years_that_python_does_not_have_hold_no_other_row_back(
    tmp_path: Path, engine: SparkEngine, format_: str, type_: str
) -> None:
    flow, insert = _on_lake_of_spark(tmp_path, engine, format_, f"id int, at {type_}")
    insert(f"(1, {type_} '2026-01-01')")
    assert flow.run().rows == 1
    later = f"(2, {type_} '2026-01-02'), (3, {type_} '+12000-01-01'), (4, {type_} '-0044-03-15')"
    insert(later)
    assert flow.run().rows == 1
    assert (flow.ids, flow.run().status) == ([1, 2], "nothing")


def _on_lake_of_spark(
    folder: Path, engine: SparkEngine, format_: str, ddl: str
) -> tuple[Columns, Callable[[str], object]]:
    """A dataflow above ``at`` of an empty table that Spark has made, and what inserts rows, given as SQL."""
    spark, path = engine.session(), folder / "lake" / "raw" / "rows"
    flow, _ = on_lake(folder, engine)
    name = f"delta.`{path}`" if format_ == "delta" else foreign_table(spark, path)
    spark.sql(f"CREATE TABLE {name} ({ddl}) USING {format_}")
    return flow, lambda rows: spark.sql(f"INSERT INTO {name} VALUES {rows}")


def test_nan_in_one_of_several_columns_bounds_nothing(tmp_path: Path, engine: SparkEngine) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("value", pa.float64())])
    several = {"type": "column", "columns": ["at", "value"], "backward": {"days": 1}}
    flow, table = on_lake(tmp_path, engine, schema=schema, watermark=several, target=REPLACED)
    table.put({"id": 1, "at": at(1), "value": math.nan}, {"id": 2, "at": at(2), "value": 1.5})
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 2], {"at": at(2), "value": 1.5})


def test_a_value_above_its_columns_bound_is_not_saved(tmp_path: Path, engine: SparkEngine) -> None:
    """Rows between the bound and that value have not been read: their time has not come."""
    moments = ("at", "due")
    schema = pa.schema([("id", pa.int64()), *((name, pa.timestamp("us", "UTC")) for name in moments)])
    several = {"type": "column", "columns": list(moments), "backward": {"days": 1}}
    flow, table = on_lake(tmp_path, engine, schema=schema, watermark=several, target=REPLACED)
    table.put({"id": 1, "at": at(1), "due": at(20)}, {"id": 2, "at": None, "due": at(10)})
    flow.run("2026-01-05")
    assert (flow.ids, flow.watermark["due"]) == ([1], datetime(2026, 1, 5, tzinfo=UTC))
    flow.run("2026-01-12")
    assert flow.ids == [1, 2]


@pytest.mark.full
@pytest.mark.postgres
def test_a_look_back_over_more_slices_than_a_run_may_have_leaves_no_new_row_behind(
    tmp_path: Path, engine: SparkEngine, postgres: pg.Postgres
) -> None:
    table = PostgresRows(postgres)
    limits = {"backward": {"days": 3}, "checkpoint": {"interval_rows": 12}, "max_slices": 4}
    flow = on_postgres(tmp_path, engine, table, watermark=BY_TIME | limits, target=REPLACED)
    table.put(*[(number, at(1 + number // 60, number), number) for number in range(100)])
    new = []
    for _ in range(3):
        plan = flow.feed.platform.plan(flow.feed.dataflow, datetime(2026, 6, 1, tzinfo=UTC))
        outcome = flow.run()
        slices = [done.slice for done in outcome.committed if isinstance(done.slice, ColumnSlice)]
        assert [slice_.upper for slice_ in plan.slices] == [slice_.upper for slice_ in slices]
        new.append(sum(not slice_.repeats for slice_ in slices))
    assert new == [4, 4, 1]
    assert flow.ids == list(range(100))
    assert flow.watermark == {"at": at(2, 99)}


@pytest.mark.parametrize(
    ("log", "format_"),
    [("is there", "delta"), ("was lost", "delta"), ("was lost", "iceberg"), ("was lost", "parquet")],
)
def test_adopt_takes_the_highest_value_and_no_clock(
    tmp_path: Path, engine: SparkEngine, log: str, format_: str
) -> None:
    flow, table = on_lake(tmp_path, engine, target={"format": format_})
    table.add({"id": 1, "at": at(1), "value": 1}, {"id": 2, "at": at(2), "value": 2})
    flow.run()
    if log == "was lost":
        shutil.rmtree(flow.feed.state)
    adopted = flow.feed.cli("state", "adopt", "flow", "--reason", "moved", "--yes")
    assert (adopted.code, flow.watermark) == (0, {"at": at(2)})
    table.add({"id": 3, "at": at(3), "value": 3})
    flow.run()
    assert flow.ids == [1, 2, 3]


def test_adopt_stops_if_the_table_has_no_value_to_go_by(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(tmp_path, engine)
    table.add({"id": 1, "at": at(1), "value": 1})
    flow.run()
    DeltaTable(str(flow.feed.table)).delete()
    shutil.rmtree(flow.feed.state)
    answer = flow.feed.cli("state", "adopt", "flow", "--reason", "lost", "--yes")
    assert (answer.code, answer.error["code"], flow.watermark) == (4, "nothing_to_adopt", {})
    assert answer.error["choices"][0].startswith("strandline state set flow")


@pytest.mark.remedy("deleted_rows", "state adopt --deleted load")
@pytest.mark.remedy("configuration", "state adopt --deleted load", "state set")
@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_rows_that_others_deleted_above_a_column_come_back_only_if_said(
    tmp_path: Path, engine: SparkEngine, format_: str
) -> None:
    flow, table = on_lake(tmp_path / "project", engine, target={"format": format_})
    for number in (1, 2, 3):
        table.add({"id": number, "at": at(number), "value": number})
        flow.run()
    others_delete(flow, 3)
    rewind = ("state", "rewind", "flow", "--to", "1", "--replace", "--reason", "x", "--yes")
    answer = flow.feed.cli(*rewind)
    assert (answer.code, answer.error["code"]) == (4, "deleted_rows")
    assert "others have deleted 1 row from the table, which would come back" in answer.error["message"]
    flow.feed.decide("rewind", "--to", "2", "--replace", "--deleted", "load")
    flow.run()
    assert flow.ids == [1, 2, 3]
    others_delete(flow, 3)
    shutil.rmtree(flow.feed.state)
    adopted = flow.feed.cli("state", "adopt", "flow", "--reason", "lost", "--yes")
    assert (adopted.code, adopted.error["code"]) == (4, "deleted_rows")
    skip = ("state", "adopt", "flow", "--deleted", "skip", "--reason", "lost", "--yes")
    adopt, _ = flow.feed.cli(*skip).error["choices"]
    if format_ == "delta":  # a copy of an Iceberg table is one that was moved
        counted = flow.feed.copy(tmp_path / "counted")
        counted.command(*adopt.replace("TEXT", "lost").split()[1:], "--yes")
        counted.decide("set", serialise({"at": at(3)}))
        assert (counted.load().status, counted.ids) == ("nothing", [1, 2])
    flow.feed.decide("adopt", "--deleted", "load")
    flow.run()
    assert flow.ids == [1, 2, 3]


def others_delete(flow: Columns, number: int) -> None:
    """Delete a row as another writer."""
    place = flow.feed.table
    if (place / "metadata").is_dir():
        spark = flow.feed.engine.session()
        spark.sql(f"DELETE FROM {foreign_table(spark, place)} WHERE id = {number}").collect()
    else:
        DeltaTable(str(place)).delete(f"id = {number}")
