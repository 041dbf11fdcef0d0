"""Loads by keys, from the source to the table, on real Spark and Delta (docs/reference/loads.md)."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from partitions.errors import ConfigurationError
from resources.kinds.path.late import find_late
from resources.spark.engine import SparkEngine
from tests.support.columns import BY_TIME, REPLACED, at, on_lake
from tests.support.feed import CHECKOUT, NAME, NOW, Feed
from tests.support.foreign_acts import Others
from tests.support.window_feed import event, watermark
from tests.support.window_feed import on_lake as windows_on_lake

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
SCD2 = {"load": "scd2", "merge_keys": ["id"], "effective_column": "at"}
BY_KEYS = {"load": "merge_overwrite", "merge_keys": ["id"]}
CHANGES = {"format": "ndjson", "schema": "id long, value string"}


def _files(folder: Path, engine: SparkEngine, **definition: Any) -> Feed:
    return Feed(folder, engine, {"source": CHANGES, "target": UPSERT, **definition})


def _change(number: int | None, value: str | None) -> dict[str, Any]:
    return {"id": number, "value": value}


def test_files_of_changes_leave_the_last_row_of_each_key(tmp_path: Path, engine: SparkEngine) -> None:
    feed = _files(tmp_path, engine)
    feed.put("d=1/a.ndjson", _change(1, "a"), _change(2, "a"), _change(None, "a"))
    feed.put("d=1/b.ndjson", _change(1, "b"))
    assert feed.load().rows == 3
    assert feed.rows("id", "value") == [(None, "a"), (1, "b"), (2, "a")]
    feed.put("d=2/a.ndjson", _change(2, "c"), _change(3, "z"), _change(3, "y"), _change(None, "c"))
    outcome = feed.load()
    assert feed.rows("id", "value") == [(None, "c"), (1, "b"), (2, "c"), (3, "z")]
    assert (outcome.rows, outcome.committed[0].removed) == (3, 2)
    assert feed.entries[-1].total_rows == 4
    assert feed.load().status == "nothing"


def test_sql_of_the_page_keeps_the_newest_row_of_a_key(tmp_path: Path, engine: SparkEngine) -> None:
    page = (CHECKOUT / "docs/reference/loads.md").read_text()
    shown = next(
        yaml.safe_load(text)
        for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
        if "row_number" in text
    )
    zwickau, aachen = "3,Zwickau,2026-01-05T08:00:00Z", "3,Aachen,2026-01-05T18:00:00Z"
    for number, lines in enumerate([(zwickau, aachen), (aachen, zwickau)]):
        source = shown["source"] | {"path": "./landing"}
        feed = Feed(tmp_path / str(number), engine, shown | {"source": source})
        feed.put_text("a.csv", "\n".join(["id,city,updated_at", *lines, ""]))
        assert feed.load().rows == 1
        assert feed.rows("id", "city") == [(3, "Aachen")]


def test_a_late_file_changes_no_row_that_a_later_file_has_loaded(tmp_path: Path, engine: SparkEngine) -> None:
    feed = _files(tmp_path, engine)
    feed.put("b.ndjson", _change(1, "b"))
    feed.load()
    feed.put("a.ndjson", _change(1, "late"), _change(2, "late"))
    assert len(find_late(feed.platform, feed.dataflow, NOW).late) == 1
    assert feed.load().late == 1
    assert feed.rows("id", "value") == [(1, "b"), (2, "late")]
    assert feed.entries[-1].total_rows == 2


@pytest.mark.full
def test_a_replacing_rewind_deletes_gone_rows_and_doubles_none(tmp_path: Path, engine: SparkEngine) -> None:
    feed = _files(tmp_path, engine)
    feed.put("a.ndjson", _change(1, "a"), _change(2, "a"))
    feed.load()
    feed.put("b.ndjson", _change(2, "b"), _change(3, "b"))
    feed.load()
    feed.put("b.ndjson", _change(1, "b"), _change(4, "b"))
    feed.decide("rewind", "--to", "1", "--replace")
    feed.load()
    assert feed.rows("id", "value") == [(1, "b"), (4, "b")]


def test_a_reset_that_replaces_leaves_each_key_once(tmp_path: Path, engine: SparkEngine) -> None:
    feed = _files(tmp_path, engine)
    feed.put("a.ndjson", _change(1, "a"))
    feed.load()
    feed.put("b.ndjson", _change(1, "b"), _change(1, "a"))
    feed.decide("reset", "--replace")
    feed.load()
    assert feed.rows("id", "value") == [(1, "b")]


def test_keys_without_comparison_begin_nothing(tmp_path: Path, engine: SparkEngine) -> None:
    feed = _files(tmp_path, engine, sql="SELECT map('a', id) AS id, value FROM input")
    feed.put("a.ndjson", _change(1, "a"))
    error = feed.run().error
    assert isinstance(error, ConfigurationError)
    assert (
        "expected columns whose values can be compared, found id of type map<string,bigint>" in error.message
    )
    assert (feed.newest, feed.open_intent) == (None, None)


def test_keys_that_rows_lack_begin_nothing(tmp_path: Path, engine: SparkEngine) -> None:
    feed = _files(tmp_path, engine, target=UPSERT | {"merge_keys": ["nr"]})
    feed.put("a.ndjson", _change(1, "a"))
    error = feed.run().error
    assert isinstance(error, ConfigurationError)
    assert "target.merge_keys: expected columns of" in error.message
    assert (feed.newest, feed.open_intent) == (None, None)


def test_a_changed_row_moves_to_its_new_partition(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(
        tmp_path, engine, target=UPSERT | {"partition_by": ["day"]}, sql="SELECT *, to_date(at) AS day FROM input"
    )  # fmt: skip
    table.put({"id": 1, "at": at(1), "value": 1}, {"id": 2, "at": at(2), "value": 2})
    flow.run("2026-01-02T18:00")
    table.put({"id": 1, "at": at(3), "value": 10}, {"id": 3, "at": at(3), "value": 3})
    flow.run()
    rows = [(1, 10, date(2026, 1, 3)), (2, 2, date(2026, 1, 2)), (3, 3, date(2026, 1, 3))]
    assert flow.feed.rows("id", "value", "day") == rows
    assert flow.feed.entries[-1].total_rows == 3


@pytest.mark.full
@pytest.mark.parametrize(
    ("format_", "target"),
    [
        ("iceberg", {"load": "append"}),
        ("parquet", {"load": "append"}),
        ("delta", UPSERT),
        ("iceberg", UPSERT),
        ("delta", BY_KEYS),
        ("iceberg", BY_KEYS),
        ("delta", REPLACED),
        ("iceberg", REPLACED),
        ("parquet", REPLACED),
    ],
)
def test_each_load_saves_the_highest_value_that_was_read_and_never_the_bound(
    tmp_path: Path, engine: SparkEngine, format_: str, target: dict[str, Any]
) -> None:
    backward = {"backward": {"days": 2}} if target == REPLACED else {}
    flow, table = on_lake(tmp_path, engine, watermark=BY_TIME | backward, target=target | {"format": format_})
    table.put({"id": 1, "at": at(1), "value": 1})
    flow.run()
    table.put({"id": 2, "at": at(3), "value": 1})
    flow.run()
    assert flow.watermark == {"at": at(3)}, "rows may still come between it and the bound"
    table.put({"id": 3, "at": at(4), "value": 1})
    assert flow.run().rows


@pytest.mark.full
def test_a_look_back_by_keys_corrects_rows_and_keeps_gone_ones(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(tmp_path, engine, watermark=BY_TIME | {"backward": {"days": 2}}, target=UPSERT)
    table.put(*[{"id": number, "at": at(number), "value": number} for number in (1, 2, 3, 4)])
    flow.run()
    table.put({"id": 1, "at": at(1), "value": 0}, {"id": 3, "at": at(3), "value": 0})
    table.drop(4)
    flow.run()
    assert flow.feed.rows("id", "value") == [(1, 1), (2, 2), (3, 0), (4, 4)]
    assert flow.watermark == {"at": at(4)}


def test_a_log_of_changes_leaves_the_latest_of_each_key(tmp_path: Path, engine: SparkEngine) -> None:
    both = {"type": "column", "columns": ["at", "value"]}
    flow, table = on_lake(tmp_path, engine, watermark=both, target=UPSERT)
    rows = [
        {"id": 1, "at": at(1), "value": 9},
        {"id": 1, "at": at(2), "value": 1},
        {"id": 1, "at": at(2), "value": 3},
    ]
    table.add(*rows)
    flow.run()
    assert flow.feed.rows("id", "at", "value") == [(1, at(2), 3)]
    assert flow.watermark == {"at": at(2), "value": 9}, "the highest of what was read"
    assert flow.run().status == "nothing"


@pytest.mark.full
def test_rows_at_the_value_are_read_again_and_are_once(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(tmp_path, engine, watermark=BY_TIME | {"boundary": "inclusive"}, target=UPSERT)
    table.put({"id": 1, "at": at(1), "value": 1}, {"id": 2, "at": at(2), "value": 2})
    flow.run()
    table.put({"id": 3, "at": at(2), "value": 3})
    assert flow.run().rows == 2
    assert flow.feed.rows("id", "value") == [(1, 1), (2, 2), (3, 3)]
    assert flow.watermark == {"at": at(2)}


@pytest.mark.full
def test_rows_without_a_value_are_read_again_and_are_once(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(tmp_path, engine, watermark=BY_TIME | {"nulls": "read"}, target=UPSERT)
    table.put({"id": 1, "at": None, "value": 1})
    flow.run()
    assert (flow.feed.rows("id", "value"), flow.watermark) == ([(1, 1)], {})
    table.put(
        {"id": 1, "at": None, "value": 2},
        {"id": 2, "at": None, "value": 2},
        {"id": 3, "at": at(3), "value": 3},
    )
    flow.run()
    assert (flow.feed.rows("id", "value"), flow.watermark) == ([(1, 2), (2, 2), (3, 3)], {"at": at(3)})
    table.put({"id": 1, "at": at(1), "value": 4}, {"id": 2, "at": None, "value": 4})
    flow.run()
    assert flow.feed.rows("id", "value") == [(1, 2), (2, 4), (3, 3)]
    table.drop(2)
    assert flow.run().status == "nothing"


@pytest.mark.full
def test_a_replace_by_keys_takes_all_read_rows_of_a_key(tmp_path: Path, engine: SparkEngine) -> None:
    flow, table = on_lake(tmp_path, engine, target=BY_KEYS | {"merge_keys": ["value"]})
    table.put(*[{"id": number, "at": at(1), "value": number % 2} for number in (1, 2, 3)])
    flow.run()
    assert flow.ids == [1, 2, 3]
    table.put({"id": 4, "at": at(2), "value": 1}, {"id": 5, "at": at(2), "value": 1})
    flow.run()
    assert flow.feed.rows("id", "value") == [(2, 0), (4, 1), (5, 1)]
    assert flow.feed.entries[-1].total_rows == 3


def test_windows_read_again_update_keys_and_leave_later_rows(tmp_path: Path, engine: SparkEngine) -> None:
    made = windows_on_lake(
        tmp_path, engine, watermark=watermark("2026-05-29", units=None, grace="P2D"), target=UPSERT,
        source={"window_column": "at"},
    )  # fmt: skip
    made.feed.define(target={"replace_by_watermark": None})
    made.table.put(event(1, "2026-05-29T01:00", value=1), event(2, "2026-05-30", value=2))
    made.run("2026-05-31")
    made.table.put(event(1, "2026-05-29T02:00", value=3))
    made.table.drop(2)
    made.run("2026-06-01")
    assert made.rows == [(1, 3), (2, 2)], "an upsert deletes nothing"


@pytest.mark.full
def test_forced_windows_update_by_keys_and_delete_what_is_gone(tmp_path: Path, engine: SparkEngine) -> None:
    made = windows_on_lake(
        tmp_path,
        engine,
        watermark=watermark("2026-05-28", units=None),
        target=UPSERT,
        source={"window_column": "at"},
    )
    made.table.put(event(1, "2026-05-28"), event(2, "2026-05-28"), event(3, "2026-05-29", value=3))
    made.run("2026-05-30")
    made.table.drop(2)
    made.table.put(event(1, "2026-05-28", value=1), event(4, "2026-05-28"))
    made.table.add(event(3, "2026-05-28T01:00", value=0))
    made.feed.command("run", NAME, "--now", "2026-05-30", "--force", "2026-05-28..2026-05-29")
    assert made.rows == [(1, 1), (3, 3), (4, 0)], "the row of 3 has a later time"
    assert made.feed.entries[-1].total_rows == 3


def _history(feed: Feed) -> list[tuple[Any, ...]]:
    return feed.rows("id", "value", "_valid_from", "_valid_to", "_is_current")


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_dimension_has_a_version_for_each_change(tmp_path: Path, engine: SparkEngine, format_: str) -> None:
    target = SCD2 | {"format": format_}
    flow, table = on_lake(tmp_path, engine, watermark=BY_TIME | {"backward": {"days": 30}}, target=target)
    table.add(
        {"id": 1, "at": at(1), "value": 1},
        {"id": 1, "at": at(3), "value": 2},
        {"id": 2, "at": at(1), "value": 5},
    )
    flow.run()
    table.add(
        {"id": 1, "at": at(2), "value": 9},
        {"id": 1, "at": at(4), "value": 2},
        {"id": 2, "at": at(5), "value": 6},
    )
    flow.run()
    expected = [
        (1, 1, at(1), at(2), False),
        (1, 2, at(3), None, True),
        (1, 9, at(2), at(3), False),
        (2, 5, at(1), at(5), False),
        (2, 6, at(5), None, True),
    ]
    assert _history(flow.feed) == expected
    assert flow.watermark == {"at": at(5)}, (
        "the highest that was read, not the bound: rows may still come below that"
    )
    assert flow.run().rows == 0
    assert _history(flow.feed) == expected
    assert flow.feed.entries[-1].total_rows == 5


@pytest.mark.full
def test_a_deleted_row_that_returns_changed_is_a_version(tmp_path: Path, engine: SparkEngine) -> None:
    source = {"format": "ndjson", "schema": "id long, at long, value string"}
    one_by_one = {"checkpoint": {"interval_files": 1}}
    feed = Feed(tmp_path, engine, {"source": source, "target": SCD2, "watermark": one_by_one})
    versions = [
        [{"id": 1, "at": 1, "value": "a"}, {"id": 2, "at": 1, "value": "b"}],
        [{"id": 1, "at": 2, "value": "a"}],
        [{"id": 1, "at": 3, "value": "a"}, {"id": 2, "at": 3, "value": "b"}],
        [{"id": 2, "at": 4, "value": "c"}],
        [{"id": 2, "at": 5, "value": "b"}],
    ]
    for number, rows in enumerate(versions):
        feed.put(f"{number}.ndjson", *rows)
    feed.load()
    assert _history(feed) == [
        (1, "a", 1, None, True),
        (2, "b", 1, 4, False),
        (2, "b", 5, None, True),
        (2, "c", 4, 5, False),
    ]


@pytest.mark.each_case
@pytest.mark.parametrize(
    "target",
    [UPSERT, SCD2, pytest.param(BY_KEYS, marks=pytest.mark.full)],
    ids=["upsert", "scd2", "replace keys"],
)
@pytest.mark.full
def test_a_row_without_a_value_in_a_column_of_partitions_is_found_again(
    tmp_path: Path, engine: SparkEngine, target: dict[str, Any]
) -> None:
    source = {"format": "ndjson", "schema": "id long, at long, value string, area string"}
    by_area = target | {"merge_keys": ["area", "id"], "partition_by": ["area"]}
    feed = Feed(tmp_path, engine, {"source": source, "target": by_area, "late_files": "ignore"})
    areas = [None, "a", " "]
    for at_ in (1, 2):
        rows = [{"id": n, "at": at_, "value": f"{n}", "area": area} for n, area in enumerate(areas)]
        feed.put(f"{at_}.ndjson", *rows)
        feed.load()
    assert feed.rows("id", "area") == [(0, None), (1, "a"), (2, " ")]


@pytest.mark.full
def test_a_replacing_reset_makes_a_history_again(tmp_path: Path, engine: SparkEngine) -> None:
    source = {"format": "ndjson", "schema": "id long, since long, value string"}
    target = SCD2 | {"effective_column": "since", "partition_by": ["_is_current"]}
    feed = Feed(tmp_path, engine, {"source": source, "target": target})
    feed.put("a.ndjson", {"id": 1, "since": 1, "value": "a"}, {"id": 1, "since": 2, "value": "b"})
    feed.load()
    feed.put("b.ndjson", {"id": 1, "since": 3, "value": "c"})
    feed.load()
    expected = [(1, "a", 1, 2, False), (1, "b", 2, 3, False), (1, "c", 3, None, True)]
    for decision in (["rewind", NAME, "--to", "1", "--replace"], ["reset", NAME, "--replace"]):
        feed.command("state", *decision, "--reason", "test", "--yes")
        feed.load()
        assert _history(feed) == expected


@pytest.mark.remedy("versions_twice", "run", "state reset --replace")
@pytest.mark.full
@pytest.mark.parametrize("choice", ["run", "reset"])
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_history_that_others_have_doubled_is_a_decision_and_each_choice_leads_on(
    tmp_path: Path, engine: SparkEngine, table_format: str, choice: str
) -> None:
    source = {"format": "ndjson", "schema": "id long, since long, value string"}
    target = SCD2 | {"effective_column": "since", "format": table_format}
    feed = Feed(tmp_path, engine, {"source": source, "target": target})
    feed.put("a.ndjson", {"id": 1, "since": 1, "value": "a"}, {"id": 2, "since": 1, "value": "b"})
    feed.load()
    others = Others(feed, engine.session())
    others.do("double")
    feed.put("b.ndjson", {"id": 1, "since": 2, "value": "c"})

    error = feed.fail()
    assert (error.code, error.exit_code, feed.open_intent is not None) == ("versions_twice", 4, True)
    assert [words.split()[1:3] for words in error.choices] == [["run", NAME], ["state", "reset"]]
    if choice == "run":
        others.do("rollback")
    else:
        feed.decide("reset", "--replace")
    feed.load()
    assert _history(feed) == [(1, "a", 1, 2, False), (1, "c", 2, None, True), (2, "b", 1, None, True)]


@pytest.mark.full
@pytest.mark.parametrize("target", [UPSERT, SCD2 | {"effective_column": "since"}], ids=["upsert", "scd2"])
def test_a_first_file_that_cannot_be_read_leaves_a_table_that_takes_the_next(
    tmp_path: Path, engine: SparkEngine, target: dict[str, Any]
) -> None:
    source = {"format": "ndjson", "schema": "id long, since long, value string"}
    feed = Feed(tmp_path, engine, {"source": source, "target": target})
    feed.put_text("a.ndjson", "not JSON\n")
    assert feed.run().error is not None
    feed.put("a.ndjson", {"id": 1, "since": 1, "value": "a"}, {"id": 1, "since": 2, "value": "b"})
    feed.load()
    feed.put("b.ndjson", {"id": 1, "since": 3, "value": "c"})
    feed.load()
    assert feed.rows("value")[-1] == ("c",)
    assert len(feed.ids) == (1 if target is UPSERT else 3)


@pytest.mark.parametrize(
    ("target", "sql", "said"),
    [
        (SCD2, "SELECT id, at, value, 1 AS _valid_to FROM input", "target.load: scd2: .* found '_valid_to'"),
        (SCD2, "SELECT id, value FROM input", "effective_column"),
        ({"table": "bronze/both", "shared": True}, "SELECT id, 'x' AS _Dataflow FROM input", "target.shared: true: .* found '_Dataflow'"),
        ({"partition_by": ["area"]}, "SELECT id, unhex('FE') AS area FROM input", "target.partition_by: .* found area of type binary"),
        ({"format": "iceberg"}, "SELECT id, 'x' AS _commit FROM input", "target.format: iceberg: .* found '_commit'"),
    ],
)  # fmt: skip
def test_rows_with_columns_that_the_table_cannot_have_begin_nothing(
    tmp_path: Path, engine: SparkEngine, target: dict[str, Any], sql: str, said: str
) -> None:
    source = {"format": "ndjson", "schema": "id long, at long, value string"}
    feed = Feed(tmp_path, engine, {"source": source, "target": target, "sql": sql})
    feed.put("a.ndjson", {"id": 1, "at": 1, "value": "a"})
    error = feed.run().error
    assert isinstance(error, ConfigurationError)
    assert re.search(said, error.message)
    assert (feed.newest, feed.open_intent) == (None, None)


def test_a_full_load_replaces_the_whole_table_in_each_run(tmp_path: Path, engine: SparkEngine) -> None:
    made = windows_on_lake(
        tmp_path,
        engine,
        source={},
        watermark={"type": "window", "definition": []},
        target={"load": "full_load"},
    )
    made.feed.define(target={"replace_by_watermark": None})
    made.table.put(event(1, "2026-05-29", value=1), event(2, "2026-05-30", value=2))
    made.run("2026-05-31")
    made.table.drop(1)
    made.table.put(event(3, "2026-05-30", value=3))
    made.run("2026-06-01")
    assert made.rows == [(2, 2), (3, 3)]
    assert made.feed.entries[-1].total_rows == 2


@pytest.mark.full
@pytest.mark.parametrize("load", ["merge_upsert", "merge_overwrite"])
def test_a_step_of_the_users_may_make_the_keys(tmp_path: Path, engine: SparkEngine, load: str) -> None:
    flow, table = on_lake(
        tmp_path, engine, target={"load": load, "merge_keys": ["key"]},
        sql="SELECT at, max(value) AS value, id % 2 AS key FROM input GROUP BY at, id % 2",
    )  # fmt: skip
    table.put(*[{"id": number, "at": at(1), "value": number} for number in (1, 2, 3)])
    flow.run("2026-01-01T18:00")
    table.put({"id": 5, "at": at(2), "value": 5})
    flow.run()
    assert flow.feed.rows("key", "value") == [(0, 2), (1, 5)]
