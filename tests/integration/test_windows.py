"""Windows of time on a table of the lake: what is read, what it replaces, and what grows."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from partitions.errors import ConfigurationError, TargetError
from resources.spark.engine import SparkEngine
from tests.support.feed import NAME
from tests.support.window_feed import REPLACED, Windows, event, instant, on_lake, watermark

Make = Callable[..., Windows]
MOMENT = timedelta(microseconds=1)
BY_TIME = {"window_column": "at"}
APPENDED = {"load": "append"}


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Make:
    """Windows on a table of the lake, with these keys beside the usual ones."""

    def made(**definition: Any) -> Windows:
        return on_lake(tmp_path / "project", engine, **definition)

    return made


@pytest.fixture(scope="module")
def graced(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> tuple[Windows, list[list[str]]]:
    """Daily windows with a grace of three days, after two runs between which the source has changed; and what each run has read."""
    made = on_lake(
        tmp_path_factory.mktemp("graced") / "project",
        engine,
        source=BY_TIME,
        watermark=watermark(to="P0D", units=None, grace="P3D"),
    )
    made.table.put(
        event(1, "2020-01-01"),
        event(2, "2020-02-10T12:00", value=1),
        event(3, "2020-02-17T23:59", value=1),
        event(4, "2020-02-18", value=1),
        event(5, "2020-02-19T12:00"),
        event(6, "2020-02-19T13:00"),
        event(7, "2020-02-20T23:59:59.999"),
        event(8, "2020-02-21"),
    )
    first = made.run("2020-02-21T08:00")
    made.table.drop(5, 6, 7)
    made.table.put(event(2, "2020-02-10T12:00", value=2), event(3, "2020-02-17T23:59", value=2))
    made.table.put(event(4, "2020-02-18", value=2), event(9, "2020-02-20T12:00"), event(10, "2020-02-22"))
    second = made.run("2020-02-22T08:00")
    return made, [[start for start, _ in one] for one in (first, second)]


class TestGrace:
    def test_a_first_run_reads_all_and_then_the_grace(self, graced: tuple[Windows, list[list[str]]]) -> None:
        _, (first, second) = graced
        assert (len(first), first[0], first[-1]) == (51, "2020-01-01", "2020-02-20")
        assert second == ["2020-02-18", "2020-02-19", "2020-02-20", "2020-02-21"]

    def test_what_changed_is_there_once_or_deleted(self, graced: tuple[Windows, list[list[str]]]) -> None:
        rows = dict(graced[0].rows)
        assert sorted(rows) == [1, 2, 3, 4, 8, 9], "5 and 6 were all of 02-19, which is empty now"
        assert rows[4] == 2

    def test_before_it_nothing_is_read_or_deleted(self, graced: tuple[Windows, list[list[str]]]) -> None:
        made, _ = graced
        assert (dict(made.rows)[2], dict(made.rows)[3]) == (1, 1)
        (info,) = [
            line["commitInfo"]
            for line in map(
                json.loads, (made.feed.table / "_delta_log" / f"{1:020}.json").read_text().splitlines()
            )
            if "commitInfo" in line
        ]
        predicate = info["operationParameters"]["predicate"]
        assert "2020-02-18" in predicate
        assert "2020-02-17" not in predicate
        assert info["operationMetrics"]["numDeletedRows"] == "4"

    def test_the_log_counts_the_rows_that_are_there(self, graced: tuple[Windows, list[list[str]]]) -> None:
        made, _ = graced
        entry = made.feed.entries[-1]
        assert (entry.rows, entry.total_rows, entry.work_units) == (3, 6, 4)

    @pytest.mark.full
    def test_a_run_that_reads_nothing_new_writes_what_it_reads_again_once(
        self, graced: tuple[Windows, list[list[str]]], tmp_path: Path
    ) -> None:
        made, _ = graced
        copy = Windows(made.feed.copy(tmp_path / "copy"), made.table)
        before = copy.rows
        assert len(copy.run("2020-02-22T09:00")) == 3
        assert copy.rows == before


class TestGrowth:
    def test_an_open_window_grows_by_what_is_new_and_keeps_what_was_read(self, make: Make) -> None:
        made = make(
            source=BY_TIME,
            watermark=watermark("2020-02-21", units=None),
        )
        made.table.put(event(1, "2020-02-21T10:00"), event(2, "2020-02-21T10:30"))
        assert made.run("2020-02-21T10:30:59") == [("2020-02-21", "{}")]
        made.table.put(event(3, "2020-02-21T10:15"), event(4, "2020-02-21T10:59"))
        made.run("2020-02-21T11:00")
        assert made.feed.ids == [1, 2, 4], "row 3 came late, and there is no grace"
        made.table.put(event(5, "2020-02-21T23:59"), event(6, "2020-02-22T08:00"))
        assert made.run("2020-02-22T09:00") == [("2020-02-21", "{}"), ("2020-02-22", "{}")]
        assert made.feed.ids == [1, 2, 4, 5, 6]
        assert made.feed.watermark["units"]["{}"] == [[_ms("2020-02-21"), _ms("2020-02-22T09:00")]]

    def test_the_rest_of_a_window_is_read_although_later_ones_were_loaded_first(self, make: Make) -> None:
        made = make(target=APPENDED, watermark=watermark("2020-02-21", units="a", parallelism=1))
        made.table.put(event(1, "2020-02-21T10:00"))
        made.run("2020-02-21T10:30")
        made.table.put(event(2, "2020-02-21T23:00"), event(3, "2020-02-22T08:00"))
        assert made.run("2020-02-22T09:00") == [("2020-02-22", '{"u":"a"}')], (
            "what was never loaded goes first"
        )
        assert made.run("2020-02-22T09:00") == [("2020-02-21", '{"u":"a"}')]
        assert made.feed.ids == [1, 2, 3]
        assert made.run("2020-02-22T09:00") == []


class TestCalendars:
    @pytest.mark.parametrize(
        ("window", "starts"),
        [
            pytest.param(
                "hourly",
                ["03-29T00:00", "03-29T01:00", "03-29T03:00", "03-29T04:00"],
                marks=pytest.mark.full,
            ),
            ("daily", ["03-28T00:00", "03-29T00:00", "03-30T00:00"]),
            pytest.param("weekly", ["03-25T00:00", "04-01T00:00"], marks=pytest.mark.full),
            pytest.param("monthly", ["02-29T00:00", "03-29T00:00"], marks=pytest.mark.full),
        ],
    )
    def test_a_zones_windows_hold_rows_once(self, make: Make, window: str, starts: list[str]) -> None:
        berlin = ZoneInfo("Europe/Berlin")
        begins = [instant(f"2020-{start}").replace(tzinfo=berlin) for start in starts]
        end = {
            "hourly": "03-29T05:00",
            "daily": "03-31T00:00",
            "weekly": "04-05T00:00",
            "monthly": "04-01T00:00",
        }
        to = instant(f"2020-{end[window]}").replace(tzinfo=berlin)
        definition = watermark(
            f"2020-{starts[0]}:00", to.isoformat(), None, window=window, timezone="Europe/Berlin"
        )
        made = make(source=BY_TIME, watermark=definition)
        first = [event(number, at) for number, at in enumerate(begins)]
        last = [
            event(10 + number, at.astimezone(UTC) - MOMENT) for number, at in enumerate([*begins[1:], to])
        ]
        made.table.put(*first, *last, event(98, begins[0].astimezone(UTC) - MOMENT), event(99, to))
        made.run("2020-05-01")
        assert made.feed.ids == sorted(row["id"] for row in (*first, *last))
        (piece,) = made.feed.entries
        assert piece.work_units == len(begins)

    @pytest.mark.parametrize("kind", [pytest.param("date", marks=pytest.mark.full), "timestamp_ntz"])
    def test_a_column_without_a_zone_is_of_the_definitions(self, make: Make, kind: str) -> None:
        column = pa.date32() if kind == "date" else pa.timestamp("us")
        schema = pa.schema([("id", pa.int64()), ("at", column), ("unit", pa.string()), ("value", pa.int64())])
        made = make(
            schema=schema,
            watermark=watermark("2020-03-28", units="a", timezone="Europe/Berlin", grace="P1D"),
        )
        days = [instant(f"2020-03-{day}").replace(tzinfo=None) for day in (28, 29, 30)]
        rows = [event(number, day) for number, day in enumerate(days)]
        made.table.put(*[{**row, "at": row["at"].date() if kind == "date" else row["at"]} for row in rows])
        made.run("2020-03-30T00:00+02:00")
        assert made.feed.ids == [0, 1], "the day of the third row has only begun"
        made.run("2020-03-31T00:00+02:00")
        assert made.feed.ids == [0, 1, 2]
        assert made.feed.entries[-1].total_rows == 3


class TestTimeless:
    def test_without_time_each_run_reads_every_unit_as_a_whole(self, make: Make) -> None:
        made = make(
            source={"unit_columns": {"u": "unit"}},
            watermark={"type": "window", "definition": [{"name": "u", "type": "unit", "units": "a,b"}]},
        )
        made.table.put(event(1, "2020-01-01"), event(2, "2020-01-01", "b"), event(3, "2020-01-01", "c"))
        made.run("2020-01-01")
        made.table.drop(1)
        made.table.put(event(2, "2020-01-01", "b", value=1))
        assert made.run("2020-01-02") == [("-", '{"u":"a"}'), ("-", '{"u":"b"}')]
        assert made.rows == [(2, 1)]

    @pytest.mark.full
    def test_an_empty_definition_is_one_unit_that_is_the_whole_table(self, make: Make) -> None:
        made = make(source={}, watermark={"type": "window", "definition": []})
        made.table.put(event(1, "2020-01-01"), event(2, "2020-01-01", "b"))
        made.run("2020-01-01")
        made.table.drop(1)
        assert made.run("2020-01-01") == [("-", "{}")]
        assert (made.feed.ids, made.feed.entries[-1].total_rows) == ([2], 1)


def test_of_several_rows_of_a_key_in_a_slice_the_latest_stays_and_always_the_same(make: Make) -> None:
    made = make(
        target={**REPLACED, "merge_keys": ["value"]},
        watermark=watermark("2020-01-01", "2020-01-03", "a", grace="P9D"),
    )
    made.table.put(
        event(1, "2020-01-01T10:00", value=1),
        event(2, "2020-01-02T10:00", value=1),
        event(3, "2020-01-01T10:00", value=2),
        event(4, "2020-01-01T10:00", value=2),
        event(5, "2020-01-01T10:00:00.000001", value=3),
        event(6, "2020-01-01T10:00:00.000002", value=3),
    )
    made.run("2020-01-03")
    assert made.rows == [(2, 1), (4, 2), (6, 3)]
    made.table.rows = dict(reversed(made.table.rows.items()))
    made.table.put()
    made.run("2020-01-04")
    assert made.rows == [(2, 1), (4, 2), (6, 3)]


@pytest.mark.parametrize("sql", ["select id, at from input", "select id, unit, value, at as time from input"])
def test_a_query_without_its_windows_columns_begins_nothing(make: Make, sql: str) -> None:
    made = make(sql=sql, watermark=watermark("2020-01-01", "2020-01-02"))
    made.table.put(event(1, "2020-01-01"))
    error = made.fail("2020-01-03")
    assert isinstance(error, ConfigurationError)
    assert ("unit" if "at from" in sql else "at") in error.message
    assert (made.feed.newest, made.feed.open_intent, made.feed.table.exists()) == (None, None, False)


@pytest.mark.full
def test_a_query_that_moves_rows_out_of_windows_names_what_to_keep(make: Make) -> None:
    made = make(sql="select id, at, unit, value from input", watermark=watermark("2020-01-01", grace="P1D"))
    made.table.put(event(1, "2020-01-01T10:00"))
    made.run("2020-01-02")
    made.feed.define(sql="select id, at + interval 7 days as at, unit, value from input")
    error = made.fail("2020-01-03")
    assert isinstance(error, TargetError)
    assert "moved them out of the window, unit or file" in error.message
    assert "the values of at, unit stay within that part" in error.message
    assert "old definition" not in error.message
    assert made.rows == [(1, 0)]
    assert made.feed.open_intent is None
    made.feed.define(sql="select id, at, unit, value from input")
    made.run("2020-01-03")
    assert made.rows == [(1, 0)]


def test_gaps_and_overlaps_of_several_grains_are_warnings_of_the_plan_and_of_the_run(make: Make) -> None:
    grains = {
        "monthly": ["2020-01-01", "2020-02-15"],
        "daily": ["2020-02-10", "2020-02-17"],
        "hourly": ["2020-02-18", "-"],
    }
    made = make(watermark=watermark("2020-01-01", "-", "a", window=grains))
    made.table.put(event(1, "2020-02-14T23:00"), event(2, "2020-02-17T12:00"), event(3, "2020-02-18T01:30"))
    answer = made.feed.cli("plan", NAME, "--now", "2020-02-18T02:00:00").json[0]
    outcome = made.feed.run(now=instant("2020-02-18T02:00"))
    for warnings in (answer["warnings"], outcome.warnings):
        assert [text.split(": ")[0] for text in warnings] == [
            "the sub-ranges of window leave a gap",
            "the sub-ranges of window overlap, and the earlier one counts",
        ]
        assert "[2020-02-17T00:00:00+00:00, 2020-02-18T00:00:00+00:00)" in warnings[0]
    assert made.feed.ids == [1, 3]
    assert outcome.work_units == 2 + 2 + 2


def test_what_abstinence_leaves_unread_is_a_gap_in_the_state_and_a_warning(make: Make) -> None:
    made = make(
        source=BY_TIME,
        target=APPENDED,
        watermark=watermark("2020-01-01", "-", None, window="monthly", abstinent="P2D", abstinent_skips=True),
    )
    made.table.put(event(1, "2020-01-01"))
    made.run("2020-01-03")
    assert made.run("2020-01-04") == [], "it rests for two days"
    made.table.put(event(2, "2020-01-04"), event(3, "2020-01-05T12:00"))
    made.run("2020-01-06")
    assert made.feed.ids == [1, 3]
    assert made.feed.watermark["skipped"] == {"{}": [[_ms("2020-01-03"), _ms("2020-01-05")]]}
    (warning,) = made.feed.platform.plan(made.feed.dataflow, instant("2020-01-06")).warnings
    assert "[2020-01-03T00:00:00+00:00, 2020-01-05T00:00:00+00:00)" in warning


def _ms(text: str) -> int:
    return int(instant(text).timestamp() * 1000)
