"""Rows of an HTTP API: each once, whatever the API answers, and what is saved is what was asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import stamina
import yaml

from resources.outcome import Step
from resources.sources.files.formats.json_inferring import JsonColumns
from resources.spark.engine import SparkEngine
from resources.staging import FOLDER
from tests.support.api import BY_TIME, SCHEMA, TOKEN, Api, ApiFeed, Row, content, page, status
from tests.support.columns import REPLACED, at
from tests.support.crash_runner import WRITING, crash
from tests.support.feed import CHECKOUT, Feed
from tests.support.window_feed import instant, watermark

OFFSETS = {"paging": {"type": "offset", "param": "offset", "size_param": "limit", "size": 3}}
BY_ID = {"watermark_param_mapping": {"id": "since_id"}}
ID = {"watermark": {"type": "column", "columns": ["id"]}}


@pytest.fixture(autouse=True)
def _no_pauses() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


def row(number: int, day: int | None = None, **values: Any) -> Row:
    """A row of a day of January 2026."""
    made = {"id": number, "at": at(number if day is None else day).isoformat(), "value": number}
    return made | values


def staged(folder: Path) -> list[str]:
    """What is staged."""
    return [path.name for path in (folder / "lake" / FOLDER).rglob("*") if path.is_file()]


def test_a_run_asks_above_its_value_and_saves_ends(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | OFFSETS).flow()
    server.rows = [row(number) for number in range(1, 9)]
    assert flow.run("2026-01-06").rows == 5
    assert set(server.requested("since", "until")) == {(None, None), (None, "2026-01-06T00:00:00+00:00")}
    assert flow.watermark == {"at": datetime(2026, 1, 6, tzinfo=UTC), "__exclusive__": ["at"]}
    server.log.clear()
    assert flow.run("2026-01-20").rows == 3
    assert set(server.requested("since", "until")) == {
        ("2026-01-06T00:00:00+00:00", "2026-01-20T00:00:00+00:00")
    }
    assert flow.run("2026-01-20").status == "nothing"
    assert flow.ids == list(range(1, 9))
    assert staged(tmp_path) == []


def test_rows_at_a_bound_are_read_once(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME).flow()
    server.rows = [row(1, at="2026-01-02T00:00:00Z"), row(2, at="2026-01-01T23:59:59.999999Z")]
    flow.run("2026-01-02")
    assert flow.ids == [2]
    flow.run("2026-01-03")
    assert flow.ids == [1, 2]


@pytest.mark.parametrize("ignored", [{"since"}, {"until"}, {"since", "until"}])
def test_an_api_that_ignores_its_parameters_doubles_no_row(
    tmp_path: Path, engine: SparkEngine, server: Api, ignored: set[str]
) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | OFFSETS | {"schema": SCHEMA}).flow()
    server.ignored = ignored
    server.rows = [row(number) for number in range(1, 9)]
    for day in ("2026-01-04", "2026-01-07", "2026-01-07", "2026-01-20"):
        flow.run(day)
    assert flow.ids == list(range(1, 9))


def test_without_an_upper_parameter_the_filter_cuts(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    source = {"watermark_param_mapping": {"at": "since"}, "schema": SCHEMA}
    flow = ApiFeed(tmp_path, engine, server, source).flow()
    server.rows = [row(1), row(2), row(9)]
    flow.run("2026-01-05")
    assert (flow.ids, flow.watermark) == ([1, 2], {"at": at(2)})
    assert set(server.requested("since", "until")) == {(None, None)}
    flow.run("2026-01-10")
    assert (flow.ids, flow.watermark) == ([1, 2, 9], {"at": at(9)})


def test_a_step_too_saves_the_highest_value(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    source = {"watermark_param_mapping": {"at": "since"}, "schema": SCHEMA}
    flow = ApiFeed(tmp_path, engine, server, source, {"sql": "SELECT * FROM input WHERE id <> 2"}).flow()
    server.rows = [row(1), row(2)]
    flow.run()
    assert (flow.ids, flow.watermark) == ([1], {"at": at(2)})
    server.rows += [row(3)]
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 3], {"at": at(3)})


def test_numbers_are_read_to_the_highest_fetched(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_ID | OFFSETS, ID).flow()
    assert flow.run().status == "nothing"
    server.rows = [row(3, 1), row(1, 1), row(2, 1)]
    flow.run()
    assert flow.watermark == {"id": 3}
    server.rows += [row(7, 1), row(5, 1)]
    server.log.clear()
    assert flow.run().rows == 2
    assert (flow.ids, flow.watermark) == ([1, 2, 3, 5, 7], {"id": 7})
    assert set(server.requested("since_id")) == {("3",)}
    assert flow.run().status == "nothing"


@pytest.mark.parametrize(
    ("by", "step"),
    [
        ("id", Step.INTENT_PUT),
        ("id", Step.WRITTEN),
        *(
            pytest.param(by, step, marks=pytest.mark.full)
            for by in ("id", "at")
            for step in (Step.LIST_KEPT, Step.INTENT_PUT, WRITING, Step.WRITTEN, Step.VERIFIED)
            if (by, step) not in (("id", Step.INTENT_PUT), ("id", Step.WRITTEN))
        ),
    ],
)
def test_a_client_killed_after_any_step_leaves_each_row_once_and_nothing_staged(
    tmp_path: Path, engine: SparkEngine, server: Api, by: str, step: str
) -> None:
    """How far numbers go, only the fetched rows tell: the bound stands in the intent, so what comes later is not read by the recovery."""
    source = (BY_ID if by == "id" else BY_TIME) | {"schema": SCHEMA}
    slow = {
        "sql": "SELECT * FROM input WHERE coalesce(java_method('java.lang.Thread', 'sleep', 300L), '') <> 'x'"
    }
    definition = {"watermark": {"type": "column", "columns": [by]}} | (slow if step == WRITING else {})
    flow = ApiFeed(tmp_path, engine, server, source, definition).flow()
    server.rows = [row(1), row(2)]
    crash(flow.feed, step)
    server.rows += [row(number, at=f"2026-06-01T12:00:0{number}Z") for number in (3, 4)]
    assert flow.run("2026-06-01").status == ("committed" if step == Step.LIST_KEPT else "recovered")
    flow.run("2026-06-02")
    assert flow.ids == [1, 2, 3, 4]
    assert flow.feed.open_intent is None
    assert staged(tmp_path) == []


def test_ranges_are_slices_and_committed_ones_stay(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    source = BY_TIME | {"schema": SCHEMA, "watermark_param_range": {"amount": 2, "unit": "day"}}
    flow = ApiFeed(tmp_path, engine, server, source).flow()
    server.rows = [row(1)]
    flow.run("2026-01-02")
    server.rows += [row(number) for number in range(2, 8)] + [row(9, at="2026-01-04T00:00:00Z")]
    server.log.clear()
    server.faults.extend([None, None, *[status(500)] * 10])
    assert "HTTP 500" in flow.fail("2026-01-08").message
    assert flow.ids == [1, 2, 3]
    server.faults.clear()
    server.log.clear()
    outcome = flow.run("2026-01-08")
    assert [committed.rows for committed in outcome.committed] == [3, 2]
    assert list(dict.fromkeys(server.requested("since", "until"))) == [
        ("2026-01-04T00:00:00+00:00", "2026-01-06T00:00:00+00:00"),
        ("2026-01-06T00:00:00+00:00", "2026-01-08T00:00:00+00:00"),
    ]
    assert flow.ids == [1, 2, 3, 4, 5, 6, 7, 9]


def test_an_inclusive_api_of_days_loses_no_row(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    source = BY_TIME | {
        "schema": SCHEMA,
        "watermark_param_format": "date",
        "watermark_param_exclusive": "1day",
        "watermark_param_timezone": "Europe/Berlin",
    }
    server.ignored = {"since", "until"}
    flow = ApiFeed(tmp_path, engine, server, source).flow()
    server.rows = [
        row(1, at="2026-01-01T22:59:59Z"),
        row(2, at="2026-01-01T23:00:00Z"),
        row(3, at="2026-01-03T00:00:00Z"),
    ]
    flow.run("2026-01-02T12:00")
    assert (flow.ids, server.requested("until")[-1]) == ([1], ("2026-01-01",))
    flow.run("2026-01-04T12:00")
    assert server.requested("since", "until")[-1] == ("2026-01-02", "2026-01-03")
    assert flow.ids == [1, 2, 3]


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ([status(500)] * 9, "HTTP 500"),
        ([content('{"data": {"items": [{"id": 9')] * 9, "expected JSON"),
        ([content("<html>", "text/html")], "found the content type text/html"),
        ([page(row(4), row(5), row(6))] * 9, "seems to ignore"),
        ([content('{"rows": []}')], "expected records at data.items"),
    ],
)
def test_what_goes_wrong_on_a_later_page_saves_nothing(
    tmp_path: Path, engine: SparkEngine, server: Api, faults: list[Any], expected: str
) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | OFFSETS | {"schema": SCHEMA}).flow()
    server.rows = [row(number) for number in range(1, 9)]
    server.faults.extend([None, None, None, *faults])  # the plan's look, and two pages
    assert expected in flow.fail().message
    assert (flow.ids, flow.watermark, flow.feed.open_intent, staged(tmp_path)) == ([], {}, None, [])
    server.faults.clear()
    assert flow.run().rows == 8


def test_a_query_of_too_many_records_is_halved(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    """The API gives five records at most, and its end is inclusive."""
    server.most = 5
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | OFFSETS | {"max_records": 5}).flow()
    server.rows = [row(number) for number in range(1, 24)]
    flow.run("2026-01-25")
    assert flow.ids == list(range(1, 24))
    server.rows += [row(number, 26, at=f"2026-01-26T{number:02}:00:00Z") for number in range(24)]
    flow.run("2026-01-27")
    assert sorted(flow.ids) == sorted([*range(1, 24), *range(24)])
    assert flow.run("2026-01-27").status == "nothing"
    server.rows += [row(number, 1, at="2026-01-27T12:00:00Z") for number in range(100, 106)]
    error = flow.fail("2026-01-28")
    assert (error.code, flow.feed.open_intent) == ("source_incomplete", None)
    assert "fewer than 5 records (max_records) of one request" in error.message
    assert (
        "Strandline cannot halve the request: the format of the bounds cannot express a value in between"
        in error.message
    )
    assert len(flow.ids) == 47


def test_numbers_are_halved_if_the_api_takes_an_end(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    server.most = 5
    source = BY_ID | {"watermark_to_param": "until_id", "max_records": 5}
    flow = ApiFeed(tmp_path, engine, server, source, ID).flow()
    server.rows = [row(number, 1) for number in (3, 1, 900, 2, 5, 4, 8, 7, 21, 22, 23, 24, 25)]
    flow.run()
    assert (flow.ids, flow.watermark) == (sorted(each["id"] for each in server.rows), {"id": 900})


def test_numbers_without_an_end_to_say_fail_by_name(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    server.most = 5
    flow = ApiFeed(tmp_path, engine, server, BY_ID | {"max_records": 5}, ID).flow()
    server.rows = [row(number, 1) for number in range(1, 8)]
    error = flow.fail()
    assert error.code == "source_incomplete"
    assert (
        "Strandline cannot halve the request: no request parameter holds the upper bound (watermark_to_param)"
        in error.message
    )


@pytest.mark.parametrize("way", ["placeholders", "parameters", "both"])
def test_a_window_that_has_as_many_records_as_the_api_gives_is_cut_in_halves(
    tmp_path: Path, engine: SparkEngine, server: Api, way: str
) -> None:
    server.most = 5
    definition = {"watermark": watermark("2026-01-01"), "target": REPLACED}
    source = OFFSETS | WINDOWS[way] | {"max_records": 5}
    feed = ApiFeed(tmp_path, engine, server, source, definition).feed()
    server.rows = [
        row(number, 1, at=f"2026-01-0{1 + number % 2}T{number:02}:30:00Z", unit="a") for number in range(24)
    ]
    assert feed.run(now=instant("2026-01-03")).error is None
    assert feed.ids == list(range(24))


FAILED = {"errors": [{"message": "timeout"}], "data": {"items": None}}
FAULTS: dict[str, Any] = {
    "errors": (lambda handler: handler.json(FAILED), "source_answer"),
    "no records": (lambda handler: handler.json({"data": {"items": None}}), "source_answer"),
    "total": (
        lambda handler: handler.json({"data": {"items": []}, "meta": {"total": 3}}),
        "source_incomplete",
    ),
    "more": (content('{"data": {"items": []}, "meta": {"total": 0}} {}'), "source_answer"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_that_is_not_whole_moves_no_watermark_and_takes_no_row_away(
    tmp_path: Path, engine: SparkEngine, server: Api, fault: str
) -> None:
    columns = {"type": "column", "columns": ["at"], "backward": {"days": 2}}
    flow = ApiFeed(
        tmp_path,
        engine,
        server,
        BY_TIME | {"total": "meta.total", "schema": SCHEMA},
        {"watermark": columns, "target": REPLACED},
    ).flow()
    server.rows = [row(number) for number in range(1, 6)]
    flow.run("2026-01-06")
    before = flow.watermark
    answer, code = FAULTS[fault]
    server.faults.extend([answer] * 9)
    error = flow.fail("2026-01-08")
    assert (error.code, flow.ids, flow.watermark) == (code, [1, 2, 3, 4, 5], before)
    server.faults.clear()
    flow.run("2026-01-08")
    assert flow.ids == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_window_whose_answer_is_not_whole_stays_open(
    tmp_path: Path, engine: SparkEngine, server: Api, fault: str
) -> None:
    source = WINDOWS["placeholders"] | {"total": "meta.total", "schema": f"{SCHEMA}, unit string"}
    definition = {"watermark": watermark("2026-01-01", "2026-01-02", grace="P9D"), "target": REPLACED}
    feed = ApiFeed(tmp_path, engine, server, source, definition).feed()
    server.rows = [row(1, unit="a"), row(2, 1, unit="b")]
    assert feed.run(now=instant("2026-01-03")).error is None
    answer, code = FAULTS[fault]
    server.faults.extend([answer] * 9)
    outcome = feed.run(now=instant("2026-01-04"))
    assert {"source_answer": "API GET", "source_incomplete": "(total)"}[code] in str(outcome.error)
    assert feed.ids == [1, 2]
    server.faults.clear()
    server.rows.append(row(3, 1, unit="a"))
    assert feed.run(now=instant("2026-01-04")).error is None
    assert feed.ids == [1, 2, 3]


def test_a_new_field_stops_a_run_unless_left_out(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    given = ApiFeed(tmp_path, engine, server, BY_TIME)
    flow = given.flow()
    server.rows = [row(1, tag={"a": 1})]
    flow.run("2026-01-05")
    server.rows.append(row(6, tag={"a": 1, "b": 2}))
    message = flow.fail("2026-01-07").message
    assert "record 1: expected the fields of the pinned schema, found tag.b beside them" in message
    assert f"{server.url}/rows" in message
    assert (
        message.index("schema_mode: merge")
        < message.index("unknown_fields: ignore")
        < message.index("source.schema")
    )
    flow.feed.define(unknown_fields="ignore")
    flow.run("2026-01-07")
    assert flow.ids == [1, 6]


@pytest.mark.parametrize("mode", ["strict", "merge"])
def test_records_with_known_fields_are_not_looked_through_by_spark(
    tmp_path: Path, engine: SparkEngine, server: Api, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | {"schema": f"{SCHEMA}, tag struct<a:long>"}).flow()
    flow.feed.define(target={"load": "append", "schema_mode": mode})
    server.rows = [row(1, tag={"a": 1}), row(2), row(3, tag=None)]
    monkeypatch.setattr(
        JsonColumns, "incoming_columns", lambda *_: pytest.fail("the records were looked through again")
    )
    flow.run("2026-01-05")
    assert flow.ids == [1, 2, 3]
    monkeypatch.undo()
    server.rows.append(row(6, tag={"a": 1, "b": 2}))
    if mode == "merge":
        flow.run("2026-01-07")
        assert flow.feed.rows("id", "tag")[-1][1]["b"] == 2
    else:
        assert "found tag.b beside them" in flow.fail("2026-01-07").message


NO_VALUES: dict[str, Any] = {
    "object": (None, {"a": {"b": [1, 2]}}),
    "text": (None, "x"),
    "number": (None, 2.5),
    "empty list": ([], [{"a": 1}]),
    "inside": ({"a": None, "b": 1}, {"a": {"c": 5}, "b": 2}),
    "in a list": ([{"a": None, "b": 1}], [{"a": "x", "b": 2}]),
}


@pytest.mark.full
@pytest.mark.parametrize("mode", ["strict", "merge"])
@pytest.mark.parametrize("way", NO_VALUES)
def test_a_field_without_a_value_has_no_type_yet_and_gets_that_of_its_first_value(
    tmp_path: Path, engine: SparkEngine, server: Api, way: str, mode: str
) -> None:
    first, later = NO_VALUES[way]
    flow = ApiFeed(
        tmp_path, engine, server, BY_TIME, {"target": {"load": "append", "schema_mode": mode}}
    ).flow()
    server.rows = [row(1, extra=first), row(2, extra=first)]
    flow.run("2026-01-04")
    server.rows.append(row(5, extra=first))
    flow.run("2026-01-06")
    server.rows.append(row(7, extra=later))
    flow.run("2026-01-08")
    server.rows.append(row(9, extra=later))
    flow.run("2026-01-10")
    assert flow.ids == [1, 2, 5, 7, 9]
    loaded = dict(flow.feed.rows("id", "extra"))
    assert loaded[7] == loaded[9] == later


@pytest.mark.full
def test_a_new_field_beside_an_untyped_one_stops(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME).flow()
    server.rows = [row(1, extra=None)]
    flow.run("2026-01-04")
    server.rows.append(row(5, extra={"a": 1}, other=1))
    assert "found other beside them" in flow.fail("2026-01-06").message
    server.rows[-1].pop("other")
    flow.run("2026-01-06")
    assert flow.ids == [1, 5]


def test_a_record_that_does_not_fit_is_named(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | {"schema": SCHEMA}).flow()
    server.rows = [row(1), row(2, value="many")]
    message = flow.fail().message
    assert ", page 1: record 2: " in message
    assert "value" in message
    assert flow.ids == []


def test_inference_knows_times_of_the_watermark(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME).flow()
    server.rows = [row(1, note="2026-01-01T00:00:00Z")]
    flow.run()
    assert flow.feed.rows("at", "note") == [(at(1), "2026-01-01T00:00:00Z")]


def test_inferred_columns_keep_the_order_of_the_records(
    tmp_path: Path, engine: SparkEngine, server: Api
) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME).flow()
    server.rows = [row(1, zone="b"), row(2, zone="c", also=None, area={"y": 1, "x": 2})]
    flow.run()
    assert list(flow.feed.types) == ["id", "at", "value", "zone", "area"], "also has no type yet"


def test_a_look_back_asks_again_and_replaces_rows(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    definition = {
        "watermark": {"type": "column", "columns": ["at"], "backward": {"days": 2}},
        "target": REPLACED,
    }
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | {"schema": SCHEMA}, definition).flow()
    server.rows = [row(number) for number in range(1, 6)]
    flow.run("2026-01-06")
    for each in server.rows:
        each["value"] = 0
    del server.rows[4]
    flow.run("2026-01-06")
    assert server.requested("since")[-1] == ("2026-01-04T00:00:00+00:00",)
    assert sorted(flow.feed.rows("id", "value")) == [(1, 1), (2, 2), (3, 3), (4, 0)]


@pytest.mark.full
def test_a_long_look_back_leaves_no_new_row_behind(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    definition = {
        "watermark": {"type": "column", "columns": ["at"], "backward": {"days": 2}, "max_slices": 1},
        "target": REPLACED,
    }
    ranges = {"watermark_param_range": {"amount": 1, "unit": "day"}, "schema": SCHEMA}
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | ranges, definition).flow()
    server.rows = [row(number) for number in range(1, 4)]
    flow.run("2026-01-04")
    server.rows = [row(number) for number in range(1, 9)]
    highest = []
    for _ in range(3):
        flow.run("2026-01-08")
        highest.append(max(flow.ids))
    assert highest == [4, 5, 6]
    assert flow.ids == [1, 2, 3, 4, 5, 6]


def test_columns_joined_by_or_bring_a_row_once(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    definition = {
        "watermark": {"type": "column", "columns": ["id", "at"], "backward": {"days": 0}},
        "target": REPLACED,
    }
    source = {"watermark_param_mapping": {"at": "since", "id": "since_id"}, "schema": SCHEMA}
    flow = ApiFeed(tmp_path, engine, server, source, definition).flow()
    server.rows = [row(2, 2)]
    flow.run("2026-01-20")
    server.rows += [row(3, 1), row(1, 3), row(4, 4)]
    server.log.clear()
    flow.run("2026-01-20")
    assert flow.ids == [1, 2, 3, 4]
    assert set(server.requested("since_id", "since")) == {("2", None), (None, at(2).isoformat())}


WINDOWS: dict[str, dict[str, Any]] = {
    "placeholders": {"params": {"since": "{start}", "until": "{end}", "unit": "{unit.u}"}},
    "parameters": BY_TIME | {"params": {"unit": "{unit.u}"}},
    "columns": {"window_column": "at", "unit_columns": {"u": "unit"}},
    "both": BY_TIME | {"window_column": "at", "unit_columns": {"u": "unit"}},
    "path": {"path": "/units/{unit.u}", "params": {"since": "{start}", "until": "{end}", "unit": "{unit.u}"}},
}


@pytest.mark.parametrize("way", WINDOWS)
def test_each_window_of_each_unit_is_read_once_and_again_within_its_grace(
    tmp_path: Path, engine: SparkEngine, server: Api, way: str
) -> None:
    definition = {"watermark": watermark("2026-01-01", grace="P1D"), "target": REPLACED}
    feed = ApiFeed(tmp_path, engine, server, OFFSETS | WINDOWS[way], definition).feed()
    server.rows = [row(number, number, unit="a" if number % 2 else "b") for number in range(1, 4)]
    assert feed.run(now=instant("2026-01-04")).error is None
    assert feed.ids == [1, 2, 3]
    server.rows += [row(4, 4, unit="c"), row(5, 3, unit="b"), row(6, 4, unit="a")]
    assert feed.run(now=instant("2026-01-05")).error is None
    assert feed.ids == [1, 2, 3, 5, 6]
    assert staged(tmp_path) == []


def test_a_schema_is_inferred_from_single_windows(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    """An API may refuse a longer stretch of time than a window."""
    feed = ApiFeed(
        tmp_path,
        engine,
        server,
        WINDOWS["placeholders"],
        {"watermark": watermark("2026-01-01"), "target": REPLACED},
    ).feed()
    server.rows = [row(3, 3, unit="b")]
    assert feed.run(now=instant("2026-01-04")).error is None
    assert feed.ids == [3]
    asked = {tuple((text or "")[:10] for text in bounds) for bounds in server.requested("since", "until")}
    assert asked == {("2026-01-01", "2026-01-02"), ("2026-01-02", "2026-01-03"), ("2026-01-03", "2026-01-04")}


def test_a_refused_unit_is_passed_over_and_retried(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    source = WINDOWS["parameters"] | {"schema": f"{SCHEMA}, unit string"}
    feed = ApiFeed(
        tmp_path, engine, server, source, {"watermark": watermark("2026-01-01", "2026-01-02")}
    ).feed()
    server.rows = [row(1, unit="a"), row(2, 1, unit="b")]
    server.faults.extend([None, *[status(400, "no such unit")] * 2])
    outcome = feed.run(now=instant("2026-01-04"))
    assert "HTTP 400: no such unit" in str(outcome.error)
    assert feed.ids == [1]
    assert feed.run(now=instant("2026-01-04")).error is None
    assert feed.ids == [1, 2]


def test_a_404_that_means_no_rows_loads_no_row(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    source = WINDOWS["parameters"] | {"schema": f"{SCHEMA}, unit string", "ignore_http_codes": [404]}
    given = watermark("2026-01-01", "2026-01-02", grace="P9D")
    feed = ApiFeed(tmp_path, engine, server, source, {"watermark": given, "target": REPLACED}).feed()
    server.rows = [row(1, unit="a"), row(2, 1, unit="b")]
    server.faults.extend([None, status(404, "no rows")])
    assert feed.run(now=instant("2026-01-03")).error is None
    assert feed.ids == [1]
    feed.command("ledger", "flow")
    server.faults.extend([status(404)])  # what was taken back at the source goes from the table, too
    assert feed.run(now=instant("2026-01-04")).error is None
    assert feed.ids == [2]


def test_a_404_of_no_rows_moves_no_watermark(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(
        tmp_path, engine, server, BY_TIME | OFFSETS | {"schema": SCHEMA, "ignore_http_codes": [404]}
    ).flow()
    server.rows = [row(1)]
    flow.run("2026-01-05")
    server.faults.append(status(404))
    assert flow.run("2026-01-06").status == "nothing"
    assert flow.watermark["at"] == datetime(2026, 1, 5, tzinfo=UTC)
    server.rows.append(row(6))
    server.faults.extend(
        [None, None, status(404)]
    )  # the look, and one page: a number may lead behind the last
    assert flow.run("2026-01-07").rows == 1
    assert flow.ids == [1, 6]
    server.faults.extend([status(404)] * 2)
    doctor = flow.feed.cli("doctor")
    assert (doctor.code, "found HTTP 404" in doctor.out + doctor.err) == (1, True)


@pytest.mark.parametrize("value", ["a/../b", "x?y=1&z", "ü #"])
def test_a_unit_is_data_in_a_path(tmp_path: Path, engine: SparkEngine, server: Api, value: str) -> None:
    units = [{"name": "u", "type": "unit", "units": json.dumps([{"u": value}])}]
    given = [{"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "2026-01-02"}}, *units]
    definition = {"watermark": {"type": "window", "definition": given, "window": "daily"}}
    source = {
        "path": "/units/{unit.u}/rows",
        "params": {"since": "{start}", "until": "{end}"},
        "schema": SCHEMA,
    }
    feed = ApiFeed(tmp_path, engine, server, source, definition).feed()
    server.rows = [row(1)]
    assert feed.run(now=instant("2026-01-04")).error is None
    (asked,) = {each.path for each in server.log}
    assert asked.count("/") == 4
    assert feed.ids == [1]


def test_a_plan_asks_one_page_and_starts_no_spark(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | OFFSETS | {"schema": SCHEMA}).flow()
    server.rows = [row(number) for number in range(1, 9)]
    (plan,) = flow.feed.cli("plan", "flow", "--now", "2026-02-01").json
    assert plan["due"]
    assert plan["slices"][0]["predicate"] == "(at < 2026-02-01 00:00:00+00:00) or (at is NULL)"
    assert server.requested("offset", "until") == [("0", "2026-02-01T00:00:00+00:00")]


def test_no_secret_is_in_anything_that_is_written(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | OFFSETS).flow()
    server.rows = [row(number) for number in range(1, 9)]
    flow.run("2026-01-05")
    server.faults.extend([None, *[status(500, TOKEN)] * 3])
    failed = flow.fail("2026-01-20")
    server.faults.extend([status(401, f"wrong token {TOKEN}")] * 3)
    answers = [
        flow.feed.cli(*words)
        for words in (("plan", "flow"), ("run", "flow"), ("list",), ("doctor",), ("state", "history", "flow"))
    ]
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 8
    texts = [failed.message, repr(flow.feed.platform), repr(flow.feed.dataflow)]
    texts += [answer.out + answer.err for answer in answers]
    assert "wrong token" in "".join(texts)
    assert not [text for text in written if TOKEN.encode() in text]
    assert not [text for text in texts if TOKEN in text]


def test_a_rewind_with_replace_loads_the_api_once(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME).flow()
    server.rows = [row(1), row(2)]
    inferred = flow.feed.cli("schema", "infer", "flow", "--now", "2026-01-05")
    types = {column["name"]: column["type"] for column in inferred.json["columns"]}
    assert types == {"at": "timestamp", "id": "bigint", "value": "bigint"}
    flow.run("2026-01-05")
    server.rows[0]["value"] = 10
    server.rows.append(row(3))
    flow.feed.decide("rewind", "--to", "0", "--replace")
    flow.run("2026-01-05")
    assert sorted(flow.feed.rows("id", "value")) == [(1, 10), (2, 2), (3, 3)]
    assert staged(tmp_path) == []


def test_the_dataflow_on_the_page_of_the_source_runs(
    tmp_path: Path, engine: SparkEngine, server: Api
) -> None:
    page_text = (CHECKOUT / "docs/reference/apis.md").read_text()
    settings, flow = (
        yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page_text, re.DOTALL)[:2]
    )
    settings["connections"]["shop"]["base_url"] = server.url
    feed = Feed(tmp_path, engine, flow, settings, {"SHOP_TOKEN": TOKEN})
    server.time = "updated_at"
    server.rows = [{"id": number, "updated_at": at(number).isoformat()} for number in range(1, 6)]
    assert feed.run(now=instant("2026-01-03T12:01")).error is None
    assert server.requested("until", "offset", "limit")[-1] == ("2026-01-03T12:00:00+00:00", "100", "100")
    server.rows.append({"id": 6, "updated_at": at(3).isoformat()})
    assert feed.run(now=instant("2026-01-05")).error is None
    assert feed.ids == [1, 2, 3, 4, 6]


def test_an_api_that_is_gone_advances_nothing(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | {"schema": SCHEMA}).flow()
    server.faults.extend([status(404)] * 3)
    assert flow.fail().code == "source_missing"
    assert flow.watermark == {}


def test_rows_without_any_value_wait_for_one(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    by_value = {"watermark": {"type": "column", "columns": ["value"]}}
    flow = ApiFeed(tmp_path, engine, server, {"schema": SCHEMA}, by_value).flow()
    server.rows = [row(1, value=None)]
    assert flow.run().status == "nothing"
    server.rows.append(row(2, value=5))
    flow.run()
    assert flow.run().status == "nothing"
    assert flow.ids == [1, 2]


def test_pages_before_the_first_value_are_loaded(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    by_value = {"watermark": {"type": "column", "columns": ["value"]}}
    flow = ApiFeed(tmp_path, engine, server, OFFSETS, by_value).flow()
    server.rows = [row(number, value=None) for number in range(1, 15)] + [row(15, value=4)]
    flow.run()
    assert flow.run().status == "nothing"
    assert (flow.ids, flow.watermark) == (list(range(1, 16)), {"value": 4})


def test_an_answer_without_content_holds_no_row(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME).flow()
    server.rows = [row(1)]
    flow.run("2026-01-05")
    server.faults.append(status(204))
    assert flow.run("2026-01-06").status == "nothing"
    assert flow.watermark["at"] == datetime(2026, 1, 5, tzinfo=UTC)


def test_infinity_and_nan_bound_nothing_of_an_api(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    source = {"schema": "id long, at timestamp, value double"}
    flow = ApiFeed(
        tmp_path, engine, server, source, {"watermark": {"type": "column", "columns": ["value"]}}
    ).flow()
    server.rows = [row(1, value=1.5), row(2, value=float("nan")), row(3, value=float("inf"))]
    flow.run()
    server.rows.append(row(4, value=2.5))
    flow.run()
    assert (flow.ids, flow.watermark) == ([1, 4], {"value": 2.5})


def test_long_fractions_are_loaded_as_the_nearest(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    source = {"schema": "id long, at timestamp, value float"}
    columns = {"watermark": {"type": "column", "columns": ["value"]}}
    flow = ApiFeed(tmp_path, engine, server, source, columns).flow()
    server.rows = [row(1, value=1.234), row(2, value=1.239)]
    flow.run()
    assert flow.ids == [1, 2]
    assert flow.run().rows == 0
    server.rows.append(row(3, value=1.3))
    flow.run()
    assert flow.ids == [1, 2, 3]


@pytest.mark.parametrize("ids", [(1, "2", "3"), ("1", 2, 3)])
def test_a_watermark_of_texts_and_numbers_is_one_of_texts_and_leaves_no_row_out(
    tmp_path: Path, engine: SparkEngine, server: Api, ids: tuple[Any, ...]
) -> None:
    flow = ApiFeed(tmp_path, engine, server, OFFSETS, ID).flow()
    server.rows = [{"id": number} for number in ids[:2]]
    flow.run()
    server.rows.append({"id": ids[2]})
    flow.run()
    assert flow.feed.rows("id") == [("1",), ("2",), ("3",)]
    assert flow.watermark == {"id": "3"}


@pytest.mark.parametrize(
    ("schema", "records", "said"),
    [
        ("id long", '[{"id": "1"}]', "record 1: field id: expected a whole number, found text"),
        (
            "id long",
            '[{"id": 1e3}]',
            "record 1: field id: expected bigint, found a number with a fraction or",
        ),
        (
            None,
            '[{"id": 1, "ID": 2}]',
            "expected column names that differ in more than upper and lower case, found id and ID",
        ),
        (
            None,
            r'[{"id": 1, "v": "\ud83d"}]',
            "record 1: field v: expected string, found an unpaired surrogate",
        ),
    ],
)
def test_records_of_which_no_run_can_read_one_are_told_by_name(
    tmp_path: Path, engine: SparkEngine, server: Api, schema: str | None, records: str, said: str
) -> None:
    flow = ApiFeed(tmp_path, engine, server, {"records": None, "schema": schema}, ID).flow()
    server.faults.extend([content(records)] * 9)
    error = flow.fail()
    assert said in error.message
    assert (flow.feed.open_intent, flow.ids) == (None, [])


INEXACT = {
    "value int": ("2147483648", "value"),
    "value tinyint": ("128", "value"),
    "value long": ("1.5", "value"),
    "value bigint": ("9223372036854775808", "value"),
    "value double": ("9007199254740993", "value"),
    "value decimal(10,2)": ("1.234", "value"),
    "value boolean": ("1", "value"),
    "value date": ('"2026-01-05T10:00"', "value"),
    "value timestamp": ('"2026-01-05T10:00:00Z and more"', "value"),
    "value timestamp_ntz": ('"2026-01"', "value"),
    "inner struct<a: array<struct<b: int>>>": ('{"a": [{"b": 1}, {"b": 3000000000}]}', "inner.a.b"),
}


@pytest.mark.parametrize("column", INEXACT)
def test_a_value_that_its_column_does_not_hold_exactly_fails_by_name(
    tmp_path: Path, engine: SparkEngine, server: Api, column: str
) -> None:
    value, field = INEXACT[column]
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | {"schema": f"id long, at timestamp, {column}"}).flow()
    name = column.partition(" ")[0]
    records = f'{{"id": 1, "at": "{at(1).isoformat()}"}}, {{"id": 2, "at": "{at(2).isoformat()}", "{name}": {value}}}'
    server.faults.extend([content(f'{{"data": {{"items": [{records}]}}}}')] * 2)
    error = flow.fail()
    assert f"record 2: field {field}: expected " in error.message
    assert "declare a type in source.schema that holds them" in error.message
    assert (flow.ids, flow.watermark) == ([], {})


def test_exact_columns_get_what_was_sent(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME).flow()
    server.rows = [
        row(1, zip="01220", code="3E5", opens="09:15", big=2**62, part=0.1, on="2026-01-05", none=None)
    ]
    flow.run()
    names = ("zip", "code", "opens", "big", "part", "on")
    assert flow.feed.rows(*names) == [("01220", "3E5", "09:15", 2**62, 0.1, "2026-01-05")]


def test_list_and_sensor_ask_a_failing_api_once(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    flow = ApiFeed(tmp_path, engine, server, BY_TIME | {"schema": SCHEMA}).flow()
    server.faults.extend([status(503)] * 9)
    (listed,) = flow.feed.cli("list").json
    assert "found HTTP 503" in listed["waiting"]["why"]
    assert (listed["waiting"]["new_rows"], len(server.faults)) == (None, 8)
