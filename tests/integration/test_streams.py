"""Streams over splits on a real engine: epochs, watermarks, late rows, quarantine and the buffer (docs/reference/streams.md)."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import (
    AssetKey,
    DagsterInstance,
    SensorResult,
    TableMetadataValue,
    TableSchemaMetadataValue,
    build_sensor_context,
)
from deltalake import DeltaTable, write_deltalake

from partitions.errors import Conflict
from partitions.stream.state import StreamState
from partitions.stream.ticks import FIRST_TIME, LAST_TIME
from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.loop.recorded import recorded_slice
from resources.loop.side_tables import write_side_tables
from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.integration.test_stream_windows import OPERATORS
from tests.support.feed import NOW, Feed
from tests.support.foreign_acts import Others
from tests.support.iceberg import foreign_table
from tests.support.plain_stream import PlainStream
from tests.support.steps import Killed, killed_at
from tests.support.stream_oracle.ordering import Order
from tests.support.streams import FILES, FileStream, Stream, definition, minutes, moment, plainly

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def make_stream(make_feed: MakeFeed) -> Any:
    def make(**watermark: Any) -> Stream:
        return Stream(make_feed(**definition(**watermark)))

    return make


def test_rows_below_the_minimum_of_all_splits_leave_in_order_and_the_rest_waits(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 10), (2, "b", 20), (3, "a", 0), (4, "b", 15))
    outcome = stream.feed.load()
    # a stands at 5, b at 15: rows below 5 leave
    assert stream.sorted() == [(3, 0, 1)]
    assert stream.places() == {"sorted": [3], "late": [], "quarantine": [], "buffer": [1, 2, 4]}
    assert minutes(stream.feed.watermark["global"]) == 5
    assert outcome.rows == 1
    stream.append((5, "a", 30), (6, "b", 21))
    stream.feed.load()
    # b stands at 16
    assert stream.sorted() == [(3, 0, 1), (1, 10, 2), (4, 15, 2)]
    assert stream.places()["buffer"] == [2, 5, 6]
    assert stream.feed.load().status == "nothing"


def test_each_row_is_in_exactly_one_place(make_stream: Any) -> None:
    stream = make_stream(max_ahead="P3650D")
    stream.append((1, "a", 100), (2, "b", 100))
    stream.append((3, "a", 94), (4, "a", 95), (5, None, 100), (6, "b", None), (7, "b", 10**8))
    stream.feed.define(watermark={"checkpoint": {"interval_files": 1}})
    outcome = stream.feed.load()
    # both stand at 95 after the first version: 94 is late, 95 is not
    assert stream.places() == {"sorted": [], "late": [3], "quarantine": [5, 6, 7], "buffer": [1, 2, 4]}
    (late,) = stream.table("__late")
    assert (late["_split"], minutes(late["_watermark"]), late["_epoch"]) == ("a", 95, 2)
    assert {row["id"]: row["_reason"] for row in stream.table("__quarantine")} == {
        5: "null_split",
        6: "null_event_time",
        7: "future_event_time",
    }
    assert len(outcome.committed) == 2


def test_late_rows_stop_the_run_if_they_must_not_be(make_stream: Any) -> None:
    stream = make_stream(late="fail", checkpoint={"interval_files": 1})
    stream.append((1, "a", 100))
    stream.append((2, "a", 94), (3, "a", 90))
    error = stream.feed.fail()
    assert error.code == "late_rows"
    assert "2 rows of epoch 2 came late, and late is fail: 2 rows of split a" in error.message
    assert len(stream.feed.entries) == 1


@pytest.mark.remedy("buffer_full", "splits remove")
def test_a_slow_split_that_fills_the_buffer_is_removed_by_the_command_that_is_named(make_stream: Any) -> None:
    stream = make_stream(buffer={"max_rows": 3})
    stream.append((1, "a", 0), (2, "b", 1000))
    stream.feed.load()
    stream.append((3, "b", 1100), (4, "b", 1200), (5, "b", 1300))
    error = stream.feed.fail()
    assert error.code == "buffer_full"
    assert "`strandline splits remove`" in error.message
    stream.feed.command("splits", "remove", "flow", "a", "--reason", "it is gone", "--yes")
    stream.feed.load()
    assert sorted(number for numbers in stream.places().values() for number in numbers) == [1, 2, 3, 4, 5]
    assert 1 in stream.places()["sorted"]


@pytest.mark.remedy("configuration", "state show")
def test_an_unknown_split_names_the_command_that_shows_all(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100))
    stream.feed.load()
    error = stream.feed.cli("splits", "remove", "flow", "c", "--reason", "x", "--yes").error
    (show,) = error["choices"]
    assert set(stream.feed.command(*show.split()[1:]).json["watermark"]["splits"]) == {"a", "b"}


def test_a_full_buffer_stops_the_run_and_names_the_slowest_split(make_stream: Any) -> None:
    stream = make_stream(buffer={"max_rows": 2})
    stream.append((1, "a", 0), (2, "b", 1000), (3, "b", 1001))
    error = stream.feed.fail()
    assert error.code == "buffer_full"
    assert "3 rows would wait after epoch 1: 3 for split a, the slowest. That is more" in error.message
    assert "Repair the split" in error.message
    assert stream.feed.entries == []


@pytest.mark.remedy("buffer_lost", "state reset --replace")
def test_a_gone_buffer_is_made_again_by_the_reset_that_is_named(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100), (3, "a", 30))
    stream.feed.load()
    shutil.rmtree(stream.feed.folder / "lake" / "silver" / "readings__buffer")
    stream.append((4, "a", 200), (5, "b", 200))
    error = stream.feed.fail()
    assert (error.code, error.choices) == (
        "buffer_lost",
        ("strandline state reset flow --replace --reason TEXT",),
    )
    stream.feed.decide("reset", "--replace")
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2, 3], "late": [], "quarantine": [], "buffer": [4, 5]}


def test_a_gone_buffer_stops_the_run_until_it_is_put_back(make_stream: Any, tmp_path: Path) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100), (3, "a", 30))
    stream.feed.load()
    buffer = stream.feed.folder / "lake" / "silver" / "readings__buffer"
    buffer.rename(tmp_path / "kept")
    stream.append((4, "a", 200), (5, "b", 200))
    error = stream.feed.fail()
    assert (error.code, error.exit_code) == ("buffer_lost", 4)
    (tmp_path / "kept").rename(buffer)
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2, 3], "late": [], "quarantine": [], "buffer": [4, 5]}


def test_a_buffer_that_is_gone_stops_an_epoch_that_takes_no_row_from_it(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100), (3, "a", 30))
    stream.feed.load()
    shutil.rmtree(stream.feed.folder / "lake" / "silver" / "readings__buffer")
    stream.append((4, "b", 200))
    error = stream.feed.fail()
    assert error.code == "buffer_lost"
    assert [entry.number for entry in stream.feed.entries] == [1]


def test_rows_that_are_gone_from_the_buffer_stop_the_run_that_finishes_an_epoch(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100), (3, "a", 30))
    stream.feed.load()
    stream.append((4, "a", 200), (5, "b", 200))
    with pytest.raises(Killed):
        stream.feed.run(killed_at(Step.INTENT_PUT, 1))
    buffer = DeltaTable(str(stream.feed.folder / "lake" / "silver" / "readings__buffer"))
    before = buffer.version()
    buffer.delete("id = 3")
    error = stream.feed.fail()
    assert (error.code, error.exit_code) == ("buffer_lost", 4)
    assert stream.places()["sorted"] == [1]
    buffer.restore(before)
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2, 3], "late": [], "quarantine": [], "buffer": [4, 5]}


def test_rows_taken_from_the_buffer_once_counted_leave_with_their_epoch(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100), (3, "a", 30))
    stream.feed.load()
    stream.append((4, "a", 200), (5, "b", 200))

    def take(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT:
            DeltaTable(str(stream.feed.folder / "lake" / "silver" / "readings__buffer")).delete("id = 3")

    assert stream.feed.run(take).error is None
    assert stream.places() == {"sorted": [1, 2, 3], "late": [], "quarantine": [], "buffer": [4, 5]}


@pytest.mark.remedy("versions_gone", "state reset --replace")
def test_an_epoch_is_not_finished_with_another_versions_rows(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 100))
    stream.feed.load()
    copy = stream.feed.folder / "copy"
    shutil.copytree(stream.source, copy)
    stream.append((2, "a", 120))
    with pytest.raises(Killed):
        stream.feed.run(killed_at(Step.INTENT_PUT, 1))
    shutil.rmtree(stream.source)
    shutil.copytree(copy, stream.source)
    stream.append((3, "a", 130))  # as many files and bytes
    error = stream.feed.fail()
    assert (error.code, error.exit_code) == ("versions_gone", 4)
    assert stream.places() == {"sorted": [], "late": [], "quarantine": [], "buffer": [1]}
    stream.feed.decide("reset", "--replace")
    stream.feed.load()
    assert stream.places() == {"sorted": [1], "late": [], "quarantine": [], "buffer": [3]}


@pytest.mark.each_case
@pytest.mark.parametrize("format_", [pytest.param("delta", marks=pytest.mark.full), "iceberg"])
def test_a_row_deleted_from_the_buffer_stops_its_epoch(make_feed: MakeFeed, format_: str) -> None:
    declared = definition()
    declared["target"]["format"] = format_
    stream = Stream(make_feed(**declared))
    stream.append((1, "a", 100), (2, "a", 110), (3, "b", 200))
    stream.feed.load()
    buffer = stream.feed.folder / "lake" / "silver" / "readings__buffer"
    spark = stream.feed.engine.session()
    name = f"delta.`{buffer}`" if format_ == "delta" else foreign_table(spark, buffer)
    how = {"delta": "delta.enableDeletionVectors' = 'true", "iceberg": "write.delete.mode' = 'merge-on-read"}
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{how[format_]}')").collect()
    spark.sql(f"DELETE FROM {name} WHERE id = 2").collect()
    stream.append((4, "a", 160))
    error = stream.feed.fail()
    assert (error.code, error.exit_code) == ("buffer_lost", 4)
    assert stream.ids() == [1]


@pytest.mark.full
def test_a_writer_thought_dead_sets_nothing_aside_after_its_give_up(make_stream: Any) -> None:
    stream = make_stream(checkpoint={"interval_files": 1})
    stream.append((1, "a", 100), (2, None, 1))
    stream.append((3, "a", 90), (4, "a", 120), (5, None, 1))
    stream.feed.load()
    stream.append((6, "a", 80), (7, None, 2), (8, "a", 130))
    with pytest.raises(Killed):
        stream.feed.run(killed_at(Step.SET_ASIDE, 1))
    intent = stream.feed.open_intent
    assert intent is not None
    zombie = stream.feed.platform.loop(stream.feed.dataflow, NOW).context
    begun = recorded_slice(zombie.log, zombie.kind, intent)
    stream.feed.define(watermark={"late": "drop"})
    stream.feed.decide("accept")
    stream.feed.load()
    with pytest.raises(Conflict):
        write_side_tables(zombie, intent, begun)
    stream.append((9, "a", 140))
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 4, 8], "late": [3], "quarantine": [2, 5, 7], "buffer": [9]}


@pytest.mark.parametrize("ended_by", ["run", "decision"])
def test_a_number_fenced_by_a_killed_run_is_given_up_aside_too(make_feed: MakeFeed, ended_by: str) -> None:
    stream = FileStream(make_feed(**definition(source=FILES, checkpoint={"interval_files": 1})))
    for rows in (((1, "a", 100), (2, None, 1)), ((3, "a", 90), (4, "a", 120))):
        stream.append(*rows)
        stream.feed.load()
    stream.append((5, "a", 80), (6, "a", 130))
    with pytest.raises(Killed):
        stream.feed.run(killed_at(Step.INTENT_PUT, 1))
    intent = stream.feed.open_intent
    assert intent is not None
    zombie = stream.feed.platform.loop(stream.feed.dataflow, NOW).context
    begun = recorded_slice(zombie.log, zombie.kind, intent)
    stream.append((6, "a", 130), path="0003.ndjson")
    with pytest.raises(Killed):
        stream.feed.run(killed_at(Step.FENCED, 1))
    if ended_by == "decision":
        stream.feed.decide("accept")
    stream.feed.run()
    stream.feed.load()
    with pytest.raises(Conflict):
        write_side_tables(zombie, intent, begun)
    assert stream.places() == {"sorted": [1, 4], "late": [3], "quarantine": [2], "buffer": [6]}


@pytest.mark.parametrize("late", ["drop", "fail"])
@pytest.mark.full
def test_late_rows_before_a_reset_are_not_left_by_policy(make_stream: Any, late: str) -> None:
    stream = make_stream(checkpoint={"interval_files": 1})
    stream.append((1, "a", 100))
    stream.append((2, "a", 10), (3, "a", 120))
    stream.feed.load()
    assert stream.places()["late"] == [2]
    stream.feed.define(watermark={"late": late, "timeout": "PT3H"})
    stream.feed.decide("reset", "--replace")
    stream.feed.load()
    assert stream.places() == {"sorted": [], "late": [], "quarantine": [], "buffer": [1, 2, 3]}


def test_a_new_column_stops_the_run_and_recommends_what_streams_accept(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "a", 10))
    stream.feed.load()
    wider = {"id": [3], "device": ["a"], "ts": pa.array([0], pa.timestamp("us", "UTC")), "more": ["x"]}
    write_deltalake(str(stream.source), pa.table(wider), mode="append", schema_mode="merge")
    error = stream.feed.fail()
    assert (
        "found changes: more is new (string). schema_mode: strict accepts no change. Restore the source's columns; or run the reset"
        in error.message
    )
    assert stream.places() == {"sorted": [1], "late": [], "quarantine": [], "buffer": [2]}


@pytest.mark.full
def test_side_tables_of_a_table_that_was_removed_make_room_with_the_first_epoch(make_stream: Any) -> None:
    stream = make_stream(checkpoint={"interval_files": 1})
    stream.append((1, "a", 100), (2, None, 1))
    stream.append((3, "a", 10), (4, "a", 120), (5, None, 1))
    stream.feed.load()
    before = stream.places()
    assert before == {"sorted": [1], "late": [3], "quarantine": [2, 5], "buffer": [4]}
    shutil.rmtree(stream.feed.folder / "state")
    shutil.rmtree(stream.feed.folder / "lake" / "silver" / "readings")
    stream.feed.load()
    assert stream.places() == before


def test_a_source_with_a_column_that_is_named_like_one_of_a_query_is_refused(make_stream: Any) -> None:
    stream = make_stream()
    at = pa.array([0], pa.timestamp("us", "UTC"))
    rows = {"id": [1], "device": ["a"], "ts": at, "_Strandline_time": ["x"]}
    write_deltalake(str(stream.source), pa.table(rows))
    error = stream.feed.fail()
    assert error.exit_code == 2
    assert "found _Strandline_time. Rename it" in error.message
    assert stream.feed.entries == []


@pytest.mark.full
def test_an_older_export_cannot_be_imported_over_rows_that_were_loaded_since(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100), (3, "a", 30))
    stream.feed.load()
    exports = [stream.feed.folder / "old.jsonl", stream.feed.folder / "new.jsonl"]
    exports[0].write_text(stream.feed.cli("state", "export", "flow").out)
    stream.append((4, "a", 200), (5, "b", 200))
    stream.feed.load()
    for lost in (False, True):
        exports[1].write_text(stream.feed.cli("state", "export", "flow").out)
        if lost:
            shutil.rmtree(stream.feed.folder / "state")
        old, new = (
            stream.feed.cli("state", "import", "flow", str(file), "--reason", "moved", "--yes")
            for file in exports
        )
        assert (old.code, old.json["error"]["code"]) == (4, "no_rewind")
        assert new.code == 0, new.err
        stream.append((6 + lost, "a", 210 + lost))
        stream.feed.load()
    assert stream.places() == {"sorted": [1, 2, 3], "late": [], "quarantine": [], "buffer": [4, 5, 6, 7]}


@pytest.mark.remedy("no_rewind", "state reset --replace")
def test_a_watermark_below_what_is_loaded_cannot_be_set_and_only_a_reset_is_offered(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100), (3, "a", 30))
    stream.feed.load()
    answer = stream.feed.cli("state", "set", "flow", "{}", "--reason", "again", "--yes")
    assert (answer.code, answer.error["code"]) == (4, "no_rewind")
    assert answer.error["choices"] == ["strandline state reset flow --replace --reason TEXT"]
    before = stream.places()
    stream.feed.decide("reset", "--replace")
    stream.feed.load()
    assert stream.places() == before


@pytest.mark.full
def test_a_changed_operator_or_event_time_cannot_be_accepted(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "a", 100), (3, "a", 30))
    stream.feed.load()
    over = {"type": "over", "columns": {"after": {"fn": "lead", "column": "id"}}}
    stream.feed.define(operators=[over])
    stream.append((4, "a", 200))
    error = stream.feed.fail()
    assert "operators was nothing, is over (" in error.message
    assert not any("accept" in choice for choice in error.choices)
    for decision in ("accept", "adopt"):
        taken = stream.feed.cli("state", decision, "flow", "--reason", "try", "--yes")
        assert (taken.code, taken.json["error"]["code"]) == (4, "definition_changed")
    stream.feed.define(operators=[])
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2, 3], "late": [], "quarantine": [], "buffer": [4]}


@pytest.mark.parametrize(
    ("operator", "zone"),
    [
        ("none", None),
        *(
            pytest.param(*each, marks=pytest.mark.full)
            for each in (("hop", "UTC"), ("session", None), ("over", "UTC"))
        ),
    ],
)
@pytest.mark.full
def test_event_times_may_be_years_1_to_9999(make_feed: MakeFeed, operator: str, zone: str | None) -> None:
    operators = [OPERATORS[operator]] if operator in OPERATORS else []
    limits: dict[str, Any] = {
        "timeout": "PT0S",
        "checkpoint": {"interval_files": 2},
    }
    stream = Stream(make_feed(**definition(*operators, **limits)))
    versions = ([FIRST_TIME, 0, FIRST_TIME - 1], [0, 10**9, LAST_TIME], [LAST_TIME, LAST_TIME + 1], [5])
    for number, times in enumerate(versions):
        rows = {
            "id": [10 * number + place for place in range(len(times))],
            "device": ["a"] * len(times),
            "ts": pa.array(times, pa.int64()).cast(pa.timestamp("us", zone)),
        }
        write_deltalake(str(stream.source), pa.table(rows), mode="append")
    outcome = stream.feed.load()
    tally = outcome.as_json()["stream"]
    assert (tally["rows_in"], tally["late"], tally["quarantined"]) == (9, 1, 2)
    assert tally["emitted"] + tally["buffered"] == 6
    (late,) = stream.table("__late")
    assert late["_watermark"].replace(tzinfo=UTC) == datetime.max.replace(tzinfo=UTC)
    quarantine = DeltaTable(str(stream.feed.folder / "lake" / "silver" / "readings__quarantine"))
    reasons = quarantine.to_pyarrow_table(columns=["id", "_reason"]).to_pylist()
    assert sorted((row["id"], row["_reason"]) for row in reasons) == [
        (2, "event_time_out_of_range"),
        (21, "event_time_out_of_range"),
    ]
    assert stream.feed.load().status == "nothing"


@pytest.mark.full
def test_an_epoch_reads_only_those_files_of_the_buffer_that_hold_rows_which_leave(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 10), (2, "b", 12))
    stream.append((3, "b", 200), (4, "b", 210))
    stream.feed.load()
    buffer = stream.feed.folder / "lake" / "silver" / "readings__buffer"
    (high,) = [
        file["path"]
        for file in pa.table(DeltaTable(str(buffer)).get_add_actions(flatten=True)).to_pylist()
        if minutes(file["min.ts"]) == 200
    ]
    (buffer / high).rename(stream.feed.folder / "aside")
    stream.append((5, "a", 50))
    stream.feed.load()
    # G is 45
    assert stream.sorted() == [(1, 10, 2), (2, 12, 2)]
    (stream.feed.folder / "aside").rename(buffer / high)
    stream.append((6, "a", 300), (7, "b", 310))
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2, 3, 4, 5], "late": [], "quarantine": [], "buffer": [6, 7]}


def test_a_version_that_changes_rows_stops_the_run(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 1000))
    stream.feed.load()
    DeltaTable(str(stream.source)).delete("id = 1")
    error = stream.feed.fail()
    assert error.code == "source_changed"


def test_a_merge_that_only_inserts_is_input_and_one_that_changes_nothing_stops_nothing(
    make_stream: Any,
) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 0))
    stream.feed.load()
    spark = stream.feed.engine.session()
    for ids in ("1", "1, 3"):
        spark.sql(
            f"MERGE INTO delta.`{stream.source}` t USING (SELECT explode(array({ids})) AS id) s ON t.id = s.id "
            "WHEN MATCHED AND t.device = 'none' THEN DELETE WHEN NOT MATCHED THEN INSERT (id, device, ts) "
            "VALUES (s.id, 'a', timestamp '2026-01-01 00:00:00')"
        )
    stream.feed.load()
    assert stream.places()["buffer"] == [1, 2, 3]


def test_a_compaction_is_no_input(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0))
    stream.append((2, "a", 1))
    DeltaTable(str(stream.source)).optimize.compact()
    stream.append((3, "a", 20))
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2], "late": [], "quarantine": [], "buffer": [3]}


def test_a_removed_split_is_not_waited_for_and_its_rows_leave_next(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100), (3, "b", 104), (4, "a", 3))
    stream.feed.load()
    assert stream.places()["sorted"] == []
    answer = stream.feed.cli("splits", "remove", "flow", "a", "--reason", "broken", "--yes")
    assert (answer.code, answer.json["entry"]["why"]) == (0, "splits")
    assert minutes(stream.feed.watermark["global"]) == 99
    stream.append((5, "b", 106))
    stream.feed.load()
    assert stream.sorted() == [(1, 0, 3), (4, 3, 3), (2, 100, 3)]
    assert stream.places()["buffer"] == [3, 5]


def test_merged_splits_have_the_highest_watermark_and_unknown_ones_fail(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 10), (2, "b", 20), (3, "c", 30))
    stream.feed.load()
    refused = stream.feed.cli("splits", "merge", "flow", "a", "x", "--into", "ab", "--reason", "r", "--yes")
    assert (refused.code, "found x" in refused.error["message"]) == (2, True)
    stream.feed.command("splits", "merge", "flow", "a", "b", "--into", "ab", "--reason", "r", "--yes")
    shown = stream.feed.cli("state", "show", "flow").json["watermark"]
    assert sorted(shown["splits"]) == ["ab", "c"]
    assert shown["global"] == {"__datetime__": "2026-01-01T00:15:00+00:00"}
    assert shown["totals"] == {"splits": 2, "idle": 0, "waiting": 0}


def test_a_declared_split_leaves_the_definition_before_it_is_removed(make_stream: Any) -> None:
    stream = make_stream(splits=["a", "b", "c"], idle="stall")
    stream.append((1, "a", 10), (2, "b", 20))
    stream.feed.load()
    merging = ("merge", "flow", "a", "c", "--into", "a")
    for command in (("remove", "flow", "c"), merging):
        refused = stream.feed.cli("splits", *command, "--reason", "broken", "--yes")
        assert refused.code == 2
        assert "found c: " in refused.error["message"]
        assert "Remove c from watermark.splits (dataflows/flow.yaml)" in refused.error["message"]
    assert [entry.why for entry in stream.feed.entries] == ["run"]
    stream.feed.define(watermark={"splits": ["a", "b"]})
    stream.feed.command("splits", "remove", "flow", "c", "--reason", "broken", "--yes")
    stream.append((3, "a", 30), (4, "b", 30))
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2], "late": [], "quarantine": [], "buffer": [3, 4]}


def test_a_run_says_what_became_of_the_rows_of_each_epoch(make_stream: Any) -> None:
    stream = make_stream(checkpoint={"interval_files": 1})
    stream.append((1, "a", 100), (2, None, 1))
    stream.append((3, "a", 94), (4, "a", 120))
    (run,) = stream.feed.cli("run", "flow").json
    first, second = run["stream"].pop("epochs")
    assert run["stream"] == {
        "engine": "splits",
        "rows_in": 4,
        "emitted": 1,
        "late": 1,
        "quarantined": 1,
        "buffered": 1,
    }
    assert (first["epoch"], first["rows_in"], first["quarantined"], first["buffered"]) == (1, 2, 1, 1)
    assert (second["epoch"], second["emitted"], second["late"], second["buffered"]) == (2, 1, 1, 1)
    assert (run["late"], run["quarantined"], run["watermark_after"]["epoch"]) == (1, 1, 2)
    (listed,) = stream.feed.cli("list").json
    assert (listed["late"]["count"], listed["quarantined"]["count"]) == (1, 1)
    assert set(listed["watermark"]) == {"epoch", "global"}


def test_state_show_tells_the_rows_and_the_bytes_of_the_buffer(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 100), (2, "b", 200), (3, "a", 110))
    stream.feed.load()
    files = (stream.feed.folder / "lake" / "silver" / "readings__buffer").rglob("[!.]*.parquet")
    assert stream.feed.cli("state", "show", "flow").json["watermark"]["buffer"] == {
        "rows": 2,
        "bytes": sum(file.stat().st_size for file in files),
        "segments": 1,
        "min": {"__datetime__": "2026-01-01T01:50:00+00:00"},
    }


def test_a_partitioned_source_is_read_version_by_version(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 100), (2, "b", 100), partition_by=["device"])
    stream.append((3, "a", 94), (4, "b", 120), (5, None, 1))
    stream.feed.load()
    assert stream.places() == {"sorted": [], "late": [3], "quarantine": [5], "buffer": [1, 2, 4]}


@pytest.mark.full
def test_a_source_that_only_delta_can_read_gives_the_same(make_stream: Any) -> None:
    stream = make_stream()
    spark = stream.feed.engine.session()
    for rows in ("(1L, 'a', 100), (2L, 'b', 100)", "(3L, 'a', 94), (4L, 'b', 120)"):
        made = spark.sql(
            f"SELECT id, device, timestamp_seconds(1767225600 + at * 60) AS ts FROM VALUES {rows} AS t(id, device, at)"
        )
        mapped = made.write.format("delta").option("delta.columnMapping.mode", "name").mode("append")
        mapped.save(f"file:{stream.source}")
    stream.feed.load()
    assert stream.places() == {"sorted": [], "late": [3], "quarantine": [], "buffer": [1, 2, 4]}


@pytest.mark.full
@pytest.mark.parametrize("split", [None, ["device", "kind"]])
def test_whole_numbers_are_event_times_and_splits_any_columns(make_stream: Any, split: Any) -> None:
    stream = make_stream(timeout=5, split=split, order_by=[], buffer={"max_drift": 100})
    for times in ([10, 30], [24, 25, 40]):
        columns = {"id": times, "device": ["a"] * len(times), "kind": ["k"] * len(times), "ts": times}
        write_deltalake(str(stream.source), pa.table(columns), mode="append")
    stream.feed.load()
    assert stream.places() == {"sorted": [10, 25, 30], "late": [24], "quarantine": [], "buffer": [40]}
    (late,) = stream.table("__late")
    assert (late["_watermark"], late["_split"]) == (25, '["a","k"]' if split else "")


def test_dagster_shows_epoch_splits_and_checks(make_stream: Any) -> None:
    stream = make_stream(checkpoint={"interval_files": 1})
    stream.append((1, "a", 0), (2, "b", 1000), (3, "a", 20))
    stream.append((4, "a", 25), (5, "b", 900))
    definitions = build_definitions(load_project(stream.feed.folder), stream.feed.platform, RunOptions())
    with DagsterInstance.ephemeral() as instance:

        def requested() -> int:
            found = definitions.resolve_sensor_def("flow_upstream")(build_sensor_context(instance))
            assert isinstance(found, SensorResult)
            return len(found.run_requests or ())

        assert requested() == 1
        result = definitions.resolve_job_def("load_flow").execute_in_process(instance=instance)
        assert requested() == 0
    checks = {each.check_name: each for each in result.get_asset_check_evaluations()}
    assert {name: each.passed for name, each in checks.items()} == {
        "rows_accounted": True,
        "up_to_date": True,
        "epoch_bounds": True,
        "sorted": True,
        "split_drift": False,
        "watermark_monotone": True,
    }
    by_asset = {
        event.asset_key: event.materialization.metadata for event in result.get_asset_materialization_events()
    }
    assert set(by_asset) == {
        AssetKey(["silver", "flow"]),
        AssetKey(["silver", "flow__late"]),
        AssetKey(["watermark", "flow"]),
    }
    assert by_asset[AssetKey(["silver", "flow__late"])]["rows"].value == 1
    drawn = by_asset[AssetKey(["watermark", "flow"])]["watermarks"].value
    assert "Event time by epoch, 2 splits." in str(drawn)
    told = by_asset[AssetKey(["watermark", "flow"])]
    assert "in_quarantine" not in told  # files are, and rows of this stream were not
    assert told["late_rows"].value == 1
    assert "quarantined_rows" not in told
    shown = by_asset[AssetKey(["silver", "flow"])]
    assert (shown["epoch"].value, shown["rows_in"].value, shown["buffered"].value) == (2, 5, 3)
    assert isinstance(shown["splits"], TableMetadataValue)
    assert [record.data["split"] for record in shown["splits"].records] == ["a", "b"]
    columns = shown["dagster/column_schema"]
    assert isinstance(columns, TableSchemaMetadataValue)
    assert [column.name for column in columns.schema.columns] == list(stream.table()[0])


def test_splits_are_removed_and_merged_by_jobs_of_dagster_as_by_the_command_line(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 10), (2, "b", 20), (3, "c", 30))
    stream.feed.load()

    def decide(job: str, **config: Any) -> bool:
        project = load_project(stream.feed.folder)
        definitions = build_definitions(project, stream.feed.platform, RunOptions())
        given = {"dataflow": "flow", "reason": "by hand", "confirm": True, **config}
        made = definitions.resolve_job_def(job)
        result = made.execute_in_process(
            run_config={"ops": {f"{job}_step": {"config": given}}}, raise_on_error=False
        )
        return bool(result.success)

    assert not decide("strandline_splits_remove", splits=[])
    assert decide("strandline_splits_remove", splits=["a"], confirm=False)
    assert [entry.why for entry in stream.feed.entries] == ["run"]
    assert decide("strandline_splits_remove", splits=["a"])
    assert minutes(stream.feed.watermark["global"]) == 15
    assert decide("strandline_splits_merge", splits=["b", "c"], into="bc")
    assert set(stream.feed.watermark["splits"]) == {"bc"}
    stream.feed.define(watermark={"splits": ["bc"]})
    assert not decide("strandline_splits_remove", splits=["bc"])
    assert not decide("strandline_splits_merge", splits=["bc"], into="d")
    assert [entry.why for entry in stream.feed.entries] == ["run", "splits", "splits"]


VERSIONS = (
    ((1, "a", 100), (2, "b", 200), (3, "a", 110), (4, None, 5)),
    ((5, "a", 90), (6, "a", 300), (7, "b", 201), (8, "b", None)),
    ((9, "a", 310), (10, "b", 400), (11, "b", 150)),
)


def _appended(stream: Stream) -> Stream:
    for rows in VERSIONS:
        stream.append(*rows)
    return stream


@pytest.mark.full
def test_rows_of_a_number_that_was_given_up_are_not_left_in_side_tables(make_stream: Any) -> None:
    stream = _appended(make_stream(splits=["a", "b"]))
    with pytest.raises(Killed):
        stream.feed.run(killed_at(Step.SET_ASIDE, 3))
    stream.feed.decide("reset")
    stream.feed.load()
    assert tuple(stream.places().values()) == plainly(stream.written, 5, ["a", "b"])[:4]


@pytest.mark.full
def test_other_columns_stop_a_stream_and_a_replacing_reset_takes_them(make_stream: Any) -> None:
    stream = make_stream()
    stream.append((1, "a", 10), (2, "b", 60), (3, None, 5))
    stream.append((4, "a", 40), (5, "a", 0))
    stream.feed.define(watermark={"checkpoint": {"interval_files": 1}})
    stream.feed.load()
    assert stream.places() == {"sorted": [1], "late": [5], "quarantine": [3], "buffer": [2, 4]}
    rows = {"id": [6], "device": ["a"], "ts": pa.array([moment(1)], pa.timestamp("us", "UTC")), "size": [7]}
    write_deltalake(str(stream.source), pa.table(rows), mode="append", schema_mode="merge")
    error = stream.feed.fail()
    assert "size is new (bigint)" in error.message
    assert "schema_mode: merge" not in error.message
    stream.feed.decide("reset", "--replace")
    stream.feed.load()
    assert stream.places() == {"sorted": [1], "late": [5, 6], "quarantine": [3], "buffer": [2, 4]}
    assert {row["id"]: row["size"] for row in stream.table("__late")} == {5: None, 6: 7}
    assert [row["size"] for name in ("", "__quarantine") for row in stream.table(name)] == [None, None]


@pytest.mark.full
@pytest.mark.parametrize("format_", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
def test_a_restored_table_adopts_a_compacted_buffer(make_feed: MakeFeed, format_: str) -> None:
    declared = definition(splits=["a", "b"], checkpoint={"interval_files": 1})
    declared["target"]["format"] = format_
    stream = _appended(Stream(make_feed(**declared)))
    stream.feed.load()
    spark = stream.feed.engine.session() if format_ == "iceberg" else None
    Others(stream.feed, spark).do("rollback")
    Others(stream.feed, spark, "silver/readings__buffer").do("compaction")
    stream.append((12, "a", 410), (13, "b", 420), (14, "a", 50))
    error = stream.feed.fail()
    assert (error.code, error.exit_code) == ("table_behind", 4)
    stream.feed.decide("adopt")
    stream.feed.load()
    assert tuple(stream.places().values()) == plainly(stream.written, 5, ["a", "b"])[:4]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2))])
@pytest.mark.full
def test_declared_splits_that_stall_give_a_plain_readings_rows(make_stream: Any, seed: int) -> None:
    chance = random.Random(seed)
    stream = make_stream(
        splits=["a", "b", "c"], idle="stall", checkpoint={"interval_files": chance.choice([1, 2, 1000])}
    )
    number = 0
    for step in range(chance.randint(3, 6)):
        rows = []
        for _ in range(chance.randint(1, 12)):
            number += 1
            device = chance.choice(["a", "b", "c", "c", None] if chance.random() < 0.2 else ["a", "b", "c"])
            rows.append((number, device, chance.choice([None] + [20 * step + chance.randint(0, 40)] * 9)))
        stream.append(*rows)
        if chance.random() < 0.4:
            with suppress(Killed):
                stream.feed.run(
                    killed_at(chance.choice([Step.SET_ASIDE, Step.WRITTEN]), chance.randint(1, 3))
                )
    stream.feed.load()
    expected = plainly(stream.written, 5, ["a", "b", "c"])
    assert tuple(stream.places().values()) == expected[:4]
    assert minutes(stream.feed.watermark["global"]) == expected.value
    ordered = stream.sorted()
    assert ordered == sorted(ordered, key=lambda row: (row[1], row[0]))


_HISTORY: list[tuple[dict[str, Any], list[tuple[int, str | None, int | None]]]] = [
    ({}, [(1, "a", 10), (2, "b", 12), (3, "a", 4), (4, "a", None)]),
    ({}, [(5, "a", 20), (6, "b", 22), (7, "a", 3)]),
    ({}, [(8, "a", 30), (9, None, 31)]),  # b sleeps
    ({}, [(10, "a", 40), (11, "a", 26)]),
    ({}, [(12, "a", 50), (13, "b", 15), (14, "b", 60), (15, "c", 35), (16, "c", 55), (17, "c", 10)]),
    ({"timeout": "PT20M"}, [(18, "a", 52), (19, "b", 41), (20, "c", 58), (21, "c", 36)]),
    ({"timeout": "PT1M"}, [(22, "a", 70), (23, "b", 71), (24, "c", 72), (25, "z", 5)]),
    ({}, [(26, "a", 80), (27, "b", 81), (28, "c", 65), (29, "z", 90), (30, "b", 70)]),
]
"""Epochs: what changes in the definition, and rows. b sleeps and returns, c is new, z comes when all have forgotten it, the timeout changes both ways."""


@pytest.mark.parametrize(
    "declared",
    [
        {"splits": ["a", "z"], "idle_after": 2},
        {"splits": ["a", "b"], "idle_after": 2, "idle": "adopt_max"},
        {"min_splits": 3, "scaling": "unit", "idle_after": 2},
    ],
    ids=["exclude", "adopt_max", "unit"],
)
@pytest.mark.full
def test_splits_that_sleep_give_the_pure_operators_rows(make_stream: Any, declared: dict[str, Any]) -> None:
    stream, plain = make_stream(**declared), PlainStream(Order("ts", ("id",)), split="device")
    for changes, rows in _HISTORY:
        stream.feed.define(watermark=changes)
        stream.append(*rows)
        stream.feed.load()
        chunk = [{"id": id_, "device": device, "ts": moment(at)} for id_, device, at in rows]
        policy = load_project(stream.feed.folder, environment={}).dataflows["flow"].stream.policy
        plain.epoch([chunk], policy)
        state = StreamState.of(stream.feed.watermark)
        assert (state.splits, state.value) == (plain.state.splits, plain.state.value)
    assert [(row["id"], epoch) for row, epoch in plain.sorted] == [
        (id_, epoch) for id_, _, epoch in stream.sorted()
    ]
    late = [(row["id"], row["_split"], row["_watermark"], row["_epoch"]) for row in stream.table("__late")]
    assert sorted(late) == sorted(
        (each.row["id"], each.row["device"], each.watermark, each.epoch) for each in plain.late
    )
    assert {row["id"]: row["_epoch"] for row in stream.table("__quarantine")} == {
        row["id"]: epoch for row, epoch in plain.quarantined
    }
    assert stream.buffered() == sorted(row["id"] for row in plain.buffer.rows)
    assert plain.sorted
    assert plain.late


def test_a_stream_begins_with_a_version_or_with_what_comes_after_its_first_run(make_stream: Any) -> None:
    stream = make_stream()
    stream.feed.define(source={"from": "latest"})
    for at in (10, 20, 30):
        stream.append((at, "a", at))
    assert stream.feed.load().rows == 0
    assert stream.feed.load().status == "nothing"
    stream.append((40, "a", 40), (33, "a", 33))
    stream.feed.load()
    assert stream.places() == {"sorted": [33], "late": [], "quarantine": [], "buffer": [40]}
    assert stream.feed.cli("plan", "flow").json[0]["due"] is False


def test_a_stream_from_a_version_reads_it_and_no_older_one(make_stream: Any) -> None:
    stream = make_stream()
    stream.feed.define(source={"from": 1})
    for at in (10, 20, 30):
        stream.append((at, "a", at))
    stream.feed.load()
    assert stream.places() == {"sorted": [20], "late": [], "quarantine": [], "buffer": [30]}
    stream.feed.define(source={"from": 2})
    assert stream.feed.cli("run", "flow").error["code"] == "definition_changed"


@pytest.mark.full
def test_a_version_that_changes_rows_is_passed_over_if_it_may_be(make_stream: Any) -> None:
    stream = make_stream()
    stream.feed.define(source={"on_change": "skip"})
    stream.append((1, "a", 10), (2, "a", 11))
    DeltaTable(str(stream.source)).delete("id = 1")
    stream.append((3, "a", 20))
    (plan,) = stream.feed.cli("plan", "flow").json
    assert len(plan["slices"]) == 1
    outcome = stream.feed.load()
    assert any("skipped (source.on_change: skip)" in warning for warning in outcome.warnings)
    assert stream.places() == {"sorted": [1, 2], "late": [], "quarantine": [], "buffer": [3]}


def _over(stream: Stream, table: str, name: str) -> Feed:
    """A stream over a table of another one, in the same project."""
    flow = definition(source={"type": "table", "table": table})
    flow["target"]["table"] = f"gold/{name}"
    return Feed(stream.feed.folder, stream.feed.engine, flow, name=name)


@pytest.mark.full
def test_a_stream_over_the_table_of_another_stream_numbers_its_own_epochs(make_stream: Any) -> None:
    first = make_stream()
    second = _over(first, "silver/readings", "again")
    first.append((1, "a", 10), (2, "a", 20), (3, "b", 30))
    first.feed.load()
    assert first.sorted() == [(1, 10, 1)]
    first.append((4, "a", 40), (5, "b", 40), (6, None, 3), (7, "a", 14))
    first.feed.load()
    assert first.sorted() == [(1, 10, 1), (2, 20, 2), (3, 30, 2)]
    # both versions in one epoch: a stands at 15, b at 25
    assert second.load().rows == 1
    assert second.rows("id", "_epoch") == [(1, 1)]
    first.append((8, "a", 70), (9, "b", 80))
    first.feed.load()
    second.load()
    assert second.rows("id", "_epoch") == [(1, 1), (2, 2), (3, 2)]


@pytest.mark.full
def test_late_rows_of_a_stream_can_be_the_source_of_another(make_stream: Any) -> None:
    first = make_stream()
    second = _over(first, "silver/readings__late", "belated")
    first.append((1, "a", 30))
    first.feed.load()
    first.append((2, "a", 10), (3, "a", 20), (4, "a", 40))
    first.feed.load()
    assert first.ids("__late") == [2, 3]
    second.load()
    assert second.rows("id", "_epoch") == [(2, 1)]
    first.append((5, "a", 5), (6, "a", 34))
    first.feed.load()
    second.load()
    # 5 is late there, too: a stands at 15
    late = DeltaTable(str(first.feed.folder / "lake/gold/belated__late")).to_pyarrow_table().to_pylist()
    assert [(row["id"], row["_split"], minutes(row["_watermark"]), row["_epoch"]) for row in late] == [
        (5, "a", 15, 2)
    ]
