"""Windows over a lake table that are loaded again if their rows change there (docs/reference/windows.md)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.feed import Feed
from tests.support.iceberg import foreign_table
from tests.support.readings import (
    COLUMNS,
    NOW,
    READINGS,
    TABLE,
    IcebergReadings,
    Readings,
    days_of_readings,
    reading,
    without_units,
)
from tests.support.steps import Killed, killed_at

pytestmark = pytest.mark.usefixtures("engine")

AT = ("--now", NOW.isoformat())
BOTH = ("EWR", "JFK")


def reasons(feed: Feed, *at: str) -> dict[str, int]:
    """Return the number of due work units by their reason."""
    (plan,) = feed.command("plan", feed.name, *(at or AT)).json
    return dict(Counter(work["reason"] for work in plan["slices"]))


def load(feed: Feed, *at: str) -> Any:
    (outcome,) = feed.command("run", feed.name, *(at or AT), "--yes").json
    return outcome


def ten_days(feed: Feed, kind: str = "delta") -> Readings | IcebergReadings:
    """Return ten days of a reading of each airport."""
    upstream = READINGS[kind](feed.folder / "lake", feed.engine)
    upstream.append(
        *[
            reading(10 * day + number, day + 0.5, airport)
            for day in range(10)
            for number, airport in enumerate(BOTH)
        ]
    )
    return upstream


def test_days_of_any_age_whose_rows_changed_are_loaded_again(make_feed: MakeFeed) -> None:
    feed = make_feed(**days_of_readings())
    upstream = ten_days(feed)
    load(feed)
    assert (feed.rows(*COLUMNS), reasons(feed)) == (upstream.rows(), {})
    upstream.append(reading(100, 0.7, "JFK"))
    upstream.delete(30)
    upstream.update(51, "b")
    upstream.compact()
    assert reasons(feed) == {"changed": 3}
    (ledger,) = feed.cli("ledger", feed.name, *AT).json
    day = {"start": "2026-01-04T00:00:00+00:00", "end": "2026-01-05T00:00:00+00:00"}
    assert ledger["units"][0]["outdated"] == [{**day, "why": f"out of date since version 2 of {TABLE}"}]
    assert [part["version"] for part in ledger["units"][0]["read_at"]] == ["version 0"]
    (why,) = (feed.cli("why", feed.name, "2026-01-04", *AT).json,)
    assert (
        why["reasons"][0]["why"]
        == f"loaded, out of date since version 2 of {TABLE}: the next run loads it again"
    )
    load(feed)
    assert (feed.rows(*COLUMNS), reasons(feed)) == (upstream.rows(), {})
    assert feed.watermark["read_at"]["version"] == upstream.version
    assert "changed" not in feed.watermark


@pytest.mark.full
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_net_changes_alone_make_days_due_in_each_format(make_feed: MakeFeed, kind: str) -> None:
    feed = make_feed(**days_of_readings())
    upstream = ten_days(feed, kind)
    load(feed)
    upstream.merge(reading(20, 2.5), reading(71, 6.5, "JFK", "moved"))
    assert reasons(feed) == {"changed": 2}  # day 2 has equal rows, and one of day 7 has moved to day 6
    upstream.compact()
    upstream.restore(2)
    load(feed)
    assert (feed.rows(*COLUMNS), reasons(feed)) == (upstream.rows(), {})
    upstream.overwrite(*[row for row in upstream.rows() if row[0] != 40])
    assert reasons(feed) == {"changed": 1}
    load(feed)
    assert (feed.rows(*COLUMNS), reasons(feed)) == (upstream.rows(), {})


def test_a_day_that_grows_is_read_on_and_as_a_whole_if_a_late_row_came(make_feed: MakeFeed) -> None:
    feed = make_feed(**without_units(target={"load": "append", "replace_by_watermark": False}))
    upstream = ten_days(feed)
    noon, later = ("--now", "2026-01-10T13:00:00Z"), ("--now", "2026-01-10T15:00:00Z")
    load(feed, *noon)
    upstream.append(reading(200, 9.6))
    assert reasons(feed, *later) == {"new": 1}
    load(feed, *later)
    upstream.append(reading(201, 9.1))
    assert reasons(feed, *later) == {"changed": 1}
    load(feed, *later)
    assert feed.rows(*COLUMNS) == upstream.rows()


@pytest.mark.full
@pytest.mark.parametrize(("step", "expected"), [(Step.LIST_KEPT, [0, 3]), (Step.WRITTEN, [0, 1, 3])])
def test_a_run_that_dies_records_the_version_that_its_slice_reads(
    make_feed: MakeFeed, step: Step, expected: list[int]
) -> None:
    feed = make_feed(**days_of_readings())
    upstream = ten_days(feed)
    load(feed)
    upstream.update(30, "b")
    with pytest.raises(Killed):
        feed.run(killed_at(step, 1), NOW)
    upstream.update(30, "c")
    upstream.update(50, "c")
    outcome = feed.run(now=NOW)
    assert outcome.error is None
    assert (feed.rows(*COLUMNS), reasons(feed)) == (upstream.rows(), {})
    versions = [entry.state()["read_at"]["version"] for entry in feed.entries]
    assert versions == expected


@pytest.mark.full
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_log_that_was_cleaned_stops_the_run_and_accept_loads_all_days_again(
    make_feed: MakeFeed, kind: str
) -> None:
    feed = make_feed(**days_of_readings())
    upstream = ten_days(feed, kind)
    load(feed)
    upstream.update(30, "b")
    upstream.append(reading(100, 3.1))
    upstream.clean()
    answer = feed.cli("plan", feed.name, *AT)
    assert (answer.code, answer.error["code"]) == (4, "versions_gone")
    assert [choice.split()[2] for choice in answer.error["choices"]] == ["accept", "reset"]
    assert feed.command("ledger", feed.name, *AT).json[0]["units"][0]["covered"]
    feed.decide("accept", now=NOW.isoformat())
    assert reasons(feed) == {"changed": 20}
    load(feed)
    assert (feed.rows(*COLUMNS), reasons(feed)) == (upstream.rows(), {})


@pytest.mark.full
def test_another_table_of_that_name_stops_the_run_and_a_reset_loads_it(make_feed: MakeFeed) -> None:
    feed = make_feed(**days_of_readings())
    upstream = ten_days(feed)
    load(feed)
    upstream.folder.rename(feed.folder / "away")
    upstream.append(reading(1, 1.5))
    answer = feed.cli("run", feed.name, *AT)
    assert (answer.code, answer.error["code"]) == (4, "source_replaced")
    assert len(feed.rows("id")) == 20
    feed.decide("reset", "--replace")
    load(feed)
    assert feed.rows(*COLUMNS) == upstream.rows()


@pytest.mark.full
def test_files_that_are_vacuumed_are_told_by_their_times_in_the_log(make_feed: MakeFeed) -> None:
    feed = make_feed(**days_of_readings())
    upstream = ten_days(feed)
    load(feed)
    upstream.append(reading(100, 3.1), reading(101, 3.2))
    upstream.compact()
    upstream.vacuum()
    assert reasons(feed) == {"changed": 2}  # the file is gone, and so are its airports
    load(feed)
    assert feed.rows(*COLUMNS) == upstream.rows()


@pytest.mark.full
def test_two_hops_and_each_format_follow(make_feed: MakeFeed) -> None:
    days = days_of_readings(target={"format": "parquet"})
    feed = make_feed(**days)
    upstream = ten_days(feed)
    for name, format_ in (("again", "iceberg"), ("last", "delta")):
        source = {"table": "silver/days" if name == "again" else "silver/again"}
        flow = days_of_readings(source=source, target={"table": f"silver/{name}", "format": format_})
        (feed.folder / f"dataflows/{name}.yaml").write_text(yaml.safe_dump(flow))
    feed.command("run", "--all", *AT, "--yes")
    upstream.append(reading(100, 3.1))
    upstream.delete(50)
    feed.command("run", "--all", *AT, "--yes")
    last = Feed(
        feed.folder,
        feed.engine,
        yaml.safe_load((feed.folder / "dataflows/last.yaml").read_text()),
        name="last",
    )
    assert last.rows(*COLUMNS) == upstream.rows()
    assert [entry.work_units for entry in last.entries] == [20, 2]


@pytest.mark.full
def test_many_commits_without_a_due_day_move_the_position(make_feed: MakeFeed) -> None:
    definition = days_of_readings()
    definition["watermark"]["definition"][0]["range"]["to"] = "2026-01-06"
    feed = make_feed(**definition)
    upstream = ten_days(feed)
    load(feed)
    for number in range(50):
        upstream.append(reading(100 + number, 8))
    outcome = load(feed)
    assert (outcome["status"], feed.watermark["read_at"]["version"]) == ("committed", 50)
    assert reasons(feed) == {}


@pytest.mark.full
def test_what_changes_while_refresh_is_removed_is_not_missed(make_feed: MakeFeed) -> None:
    feed = make_feed(**days_of_readings())
    upstream = ten_days(feed)
    load(feed)
    upstream.update(30, "b")
    feed.define(watermark={"refresh": None})
    later = ("--now", "2026-01-12T00:00:00Z")
    upstream.append(reading(100, 10.5))
    load(feed, *later)
    assert reasons(feed, *later) == {}
    upstream.update(50, "c")
    feed.define(watermark={"refresh": "changed"})
    assert reasons(feed, *later) == {"changed": 3}  # also the day that was loaded meanwhile
    load(feed, *later)
    assert (feed.rows(*COLUMNS), reasons(feed, *later)) == (upstream.rows(), {})


def test_an_iceberg_table_without_a_snapshot_is_read_as_empty_however_late(
    make_feed: MakeFeed, engine: SparkEngine
) -> None:
    feed = make_feed(**days_of_readings())
    upstream = IcebergReadings(feed.folder / "lake", engine)
    spark = engine.session()
    columns = "(id bigint, at timestamp, airport string, v string)"
    table, properties = foreign_table(spark, upstream.folder), "TBLPROPERTIES ('format-version'='2')"
    spark.sql(f"CREATE TABLE {table} {columns} USING iceberg {properties}").collect()
    planned: list[Step] = []

    def appends(step: Step, line: str) -> None:
        if step is Step.PLANNED and not planned:
            planned.append(step)
            upstream.append(reading(1, 0.5), reading(2, 1.5, "JFK"))

    assert feed.run(appends, NOW).error is None
    assert feed.rows(*COLUMNS) == []
    assert reasons(feed) == {"changed": 2}
    load(feed)
    assert feed.rows(*COLUMNS) == upstream.rows()


@pytest.mark.full
def test_a_rewind_loads_again_what_has_changed_since(make_feed: MakeFeed) -> None:
    feed = make_feed(**days_of_readings())
    upstream = ten_days(feed)
    load(feed)
    upstream.update(30, "b")
    load(feed)
    upstream.update(50, "c")
    load(feed)
    feed.decide("rewind", "--to", "1", now=NOW.isoformat())
    assert reasons(feed) == {"changed": 2}
    load(feed)
    assert (feed.rows(*COLUMNS), reasons(feed)) == (upstream.rows(), {})
    exported = feed.command("state", "export", feed.name).out
    assert '"read_at"' in exported


@pytest.mark.full
@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
def test_deletes_above_change_nothing_and_a_load_of_equal_rows_either(make_feed: MakeFeed, kind: str) -> None:
    feed = make_feed(**days_of_readings(target={"format": kind}))
    upstream = ten_days(feed)
    below = days_of_readings(source={"table": "silver/days"}, target={"table": "silver/below"})
    below["watermark"]["definition"][0]["range"]["to"] = "upstream"
    (feed.folder / "dataflows/below.yaml").write_text(yaml.safe_dump(below))
    feed.command("run", "--all", *AT, "--yes")
    hop = Feed(feed.folder, feed.engine, below, name="below")
    hop.definition = below
    assert hop.rows(*COLUMNS) == upstream.rows()
    feed.command("run", "flow", "--force", "2026-01-02..2026-01-04", *AT, "--yes")
    assert reasons(hop) == {}  # the same rows again
    upstream.update(30, "b")
    (plan,) = hop.command("plan", "below", *AT).json
    assert (plan["due"], plan["waiting_for_upstream"]) == (False, 1)
    feed.command("run", "--all", *AT, "--yes")
    assert hop.rows(*COLUMNS) == upstream.rows()
    assert hop.entries[-1].work_units == 1
    feed.command("delete", "flow", "--where", "id = 50", "--reason", "because", "--yes")
    assert reasons(hop) == {}
    assert len(hop.rows("id")) == 20
