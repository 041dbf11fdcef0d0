"""Windows that changed, as commands without Spark tell it: plan, ledger, why, and what decisions do to the position."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from partitions.instants import DAY, milliseconds
from resources.spark.engine import SparkEngine
from tests.support.feed import Feed
from tests.support.readings import NOW, START, TABLE, Readings, days_of_readings, reading

AT = ("--now", NOW.isoformat())
FIRST, LAST = milliseconds(START), milliseconds(NOW)
UNITS = {'{"airport":"EWR"}': [[FIRST, LAST]], '{"airport":"JFK"}': [[FIRST, LAST]]}


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    """Days of readings, which an operator has taken as loaded at version 0. Nothing starts Spark."""
    feed = Feed(tmp_path / "project", SparkEngine(), days_of_readings(), name="days")
    table = upstream(feed)
    table.append(*[reading(10 * day, day + 0.5) for day in range(10)])
    feed.decide("set", state_at(table))
    return feed


def upstream(feed: Feed) -> Readings:
    return Readings(feed.folder / "lake", feed.engine)


def state_at(table: Readings, **changes: Any) -> str:
    position = {"table": str(table._table.metadata().id), "version": table.version}
    return json.dumps({"grid": "daily UTC", "units": UNITS, "read_at": position} | changes)


def changed(feed: Feed) -> list[str]:
    """Return day and airport of the work units that are due since they have changed."""
    (plan,) = feed.command("plan", "days", *AT).json
    assert all(work["reason"] == "changed" for work in plan["slices"])
    return [f"{work['window']['start'][8:10]} {work['unit']['airport']}" for work in plan["slices"]]


def test_a_state_with_a_position_is_taken_over_without_loading_a_day_again(feed: Feed) -> None:
    assert changed(feed) == []
    upstream(feed).append(reading(100, 3.1, "JFK"))
    upstream(feed).delete(50)
    assert changed(feed) == ["04 JFK", "06 EWR"]


def test_a_state_without_a_position_loads_all_days_once_more(feed: Feed) -> None:
    feed.decide("set", state_at(upstream(feed), read_at={}))
    assert len(changed(feed)) == 20
    (ledger,) = feed.command("ledger", "days", *AT).json
    assert ledger["units"][0]["outdated"][0]["why"] == f"out of date: read at an unknown version of {TABLE}"


def test_ledger_why_and_list_name_the_commit_that_changed_a_day(feed: Feed) -> None:
    upstream(feed).append(reading(100, 3.1, "JFK"))
    since = f"out of date since version 1 of {TABLE}"
    (ledger,) = feed.command("ledger", "days", *AT).json
    (jfk,) = (unit for unit in ledger["units"] if unit["unit"]["airport"] == "JFK")
    assert [gap["why"] for gap in jfk["outdated"]] == [since]
    assert [part["version"] for part in jfk["read_at"]] == ["version 0"]
    assert re.search(r"EWR .* version 0 .* - ", feed.text("ledger", "days", *AT))
    why = feed.command("why", "days", "2026-01-04", *AT)
    assert since in why.out
    assert "1 out of date" in feed.text("list", *AT)


def test_the_clock_and_units_say_what_lies_in_a_window(feed: Feed) -> None:
    upstream(feed).append(reading(100, 12), reading(101, 3.1, "LGA"))
    assert changed(feed) == []


def test_a_cleaned_log_stops_the_plan_and_accept_lets_all_days_load_again(feed: Feed) -> None:
    for number in range(2):
        upstream(feed).append(reading(100 + number, 3.1))
    upstream(feed).clean()
    answer = feed.cli("plan", "days", *AT)
    assert (answer.code, answer.error["code"]) == (4, "versions_gone")
    assert "(windows are read at version 0)" in answer.error["message"]
    assert [choice.split()[1:3] for choice in answer.error["choices"]] == [
        ["state", "accept"],
        ["state", "reset"],
    ]
    (ledger,) = feed.command("ledger", "days", *AT).json
    assert ledger["units"][0]["gaps"] == []
    accepted = feed.decide("accept")
    assert f"they were read at version 0 of {TABLE}" in accepted.out + accepted.err
    assert "read_at" not in feed.watermark
    assert len(changed(feed)) == 20


def test_another_table_of_that_name_stops_the_plan(feed: Feed) -> None:
    upstream(feed).folder.rename(feed.folder / "away")
    upstream(feed).append(reading(1, 1.5))
    answer = feed.cli("plan", "days", *AT)
    assert (answer.code, answer.error["code"]) == (4, "source_replaced")


def test_an_older_copy_of_the_table_stops_the_plan(feed: Feed) -> None:
    table = upstream(feed)
    table.append(reading(100, 3.1))
    feed.decide("set", state_at(table))
    (table.folder / "_delta_log/00000000000000000001.json").unlink()
    answer = feed.cli("plan", "days", *AT)
    assert (answer.code, answer.error["code"]) == (4, "source_replaced")


def test_accept_changes_nothing_where_the_log_goes_on(feed: Feed) -> None:
    upstream(feed).append(reading(100, 3.1))
    before = feed.watermark
    feed.decide("accept")
    assert feed.watermark == before
    assert changed(feed) == ["04 EWR"]


def test_a_changed_grid_keeps_position_and_changes(feed: Feed) -> None:
    part = [FIRST + 3 * DAY, FIRST + 4 * DAY, "version 0"]
    feed.decide("set", state_at(upstream(feed), changed={'{"airport":"EWR"}': [part]}))
    feed.define(watermark={"window": "hourly"})
    feed.decide("accept", now=NOW.isoformat())
    assert feed.watermark["read_at"]["version"] == 0
    assert feed.watermark["changed"] == {'{"airport":"EWR"}': [part]}
