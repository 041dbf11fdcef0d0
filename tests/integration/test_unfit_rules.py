"""Rules that do not fit their rows stop a run before its intent, and rows that change are judged again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.integration.test_rules import POSITIVE, SOURCE
from tests.support.crash_runner import crash
from tests.support.feed import Feed, rows_in

UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "text for a number": ({"accepted": {"v": [1, "a"]}}, "column v, which holds numbers, found 'a'"),
    "a flag for a number": ({"accepted": {"v": [True]}}, "found True"),
    "a number of 41 digits": ({"accepted": {"v": [10**40]}}, "which holds numbers"),
    "values of a struct": ({"accepted": {"n": ["a"]}}, "which holds a nested type"),
    "another type": (
        {"references": {"s": "bronze/known.id"}},
        "found s with text, and bronze/known.id with numbers",
    ),
    "no such column": ({"references": {"v": "bronze/known.nope"}}, "found no nope among id"),
    "an aggregate": ({"name": "highest", "expect": "max(v) > 0"}, "found 'max(v) > 0'"),
    "a window": (
        {"name": "alone", "expect": "count(*) OVER (PARTITION BY v) = 1"},
        "expected a condition on the rows",
    ),
    "text": ({"name": "text", "expect": "s"}, "expected a condition on the rows"),
    "a map": ({"unique": ["m"]}, "found m of type map<string,bigint>"),
}


@pytest.mark.each_case
@pytest.mark.parametrize("case", UNFIT)
def test_a_rule_that_fits_no_row_stops_the_run_before_its_intent(make_feed: MakeFeed, case: str) -> None:
    rule, found = UNFIT[case]
    schema = "id long, v long, s string, n struct<x: long>, m map<string, long>"
    feed = make_feed(source={"schema": schema}, rules=[rule])
    known = Feed(feed.folder, feed.engine, name="known")
    known.put("1.ndjson", 1)
    known.load()
    feed.put("1.ndjson", {"id": 1, "v": 1, "s": "abc", "n": {"x": 1}, "m": {"a": 1}})
    error = feed.fail()
    assert (error.code, found in error.message) == ("query", True), error.message
    assert (feed.newest, feed.open_intent) == (None, None)
    feed.define(rules=[{"references": {"v": "bronze/known.ID"}}])
    feed.load()
    assert feed.ids == [1]


def test_rows_with_the_columns_of_rejected_rows_are_refused(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": "id long, v long, _rejected_by string"}, rules=[POSITIVE])
    feed.put("1.ndjson", {"id": 1, "v": 1, "_rejected_by": "a"}, {"id": 2, "v": -1, "_rejected_by": "b"})
    assert "found _rejected_by. Name them otherwise in sql" in feed.fail().message
    feed.define(rules=[POSITIVE | {"on_fail": "warn"}])  # which needs no such table
    feed.load()
    assert feed.rows("id", "_rejected_by") == [(1, "a"), (2, "b")]


def test_a_delete_by_an_aggregate_stops_the_run_before_its_intent(make_feed: MakeFeed) -> None:
    target = {"load": "merge_upsert", "merge_keys": ["id"], "delete_when": "max(v) > 0"}
    feed = make_feed(source=SOURCE, target=target)
    feed.put("1.ndjson", {"id": 1, "v": 1})
    assert "target.delete_when: expected a condition on the rows' columns" in feed.fail().message
    assert (feed.newest, feed.open_intent) == (None, None)


def test_equal_rejected_rows_that_change_before_a_slice_is_finished_are_judged_again(
    make_feed: MakeFeed,
) -> None:
    source = {"type": "python", "function": "rows:read", "schema": "id long, v long, m map<string, long>"}
    watermark = {"type": "column", "columns": ["id"]}
    feed = make_feed(source=source, watermark=watermark, rules=[{"unique": ["v"]}])
    code = "def read(request):\n    return [{'id': 1, 'v': 1, 'm': %s}] * 2 + [{'id': 3, 'v': 3, 'm': {}}]\n"
    (feed.folder / "rows.py").write_text(code % "{'a': 1}")
    crash(feed, Step.SET_ASIDE)
    (feed.folder / "rows.py").write_text(code % "{'a': 2}")
    feed.load()
    rejected = rows_in(Path(f"{feed.table}_rejected"), ("id", "m"))
    assert (feed.ids, rejected) == ([3], [(1, [("a", 2)])] * 2)
    assert [entry.why for entry in feed.entries] == ["abandon", "run"]


def test_a_rewind_of_a_load_by_keys_rejects_each_row_once(make_feed: MakeFeed) -> None:
    feed = make_feed(source=SOURCE, target={"load": "merge_upsert", "merge_keys": ["id"]}, rules=[POSITIVE])
    feed.put("1.ndjson", {"id": 1, "v": 1}, {"id": 2, "v": -2})
    feed.load()
    feed.put("2.ndjson", {"id": 3, "v": -3})
    feed.load()
    feed.decide("rewind", "--to", "1")
    feed.load()
    assert rows_in(Path(f"{feed.table}_rejected"), ("id",)) == [(2,), (3,)]
    feed.decide("reset")
    feed.load()
    assert (feed.ids, rows_in(Path(f"{feed.table}_rejected"), ("id",))) == ([1], [(2,), (3,)])
