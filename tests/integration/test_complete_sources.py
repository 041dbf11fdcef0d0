"""Sources of which each run reads the whole: what becomes of keys that are missing (docs/how-to/deletes.md)."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from resources.loop.rows import missing_keys
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.feed import NAME, Feed, dies_after
from tests.support.window_feed import DatabaseTable, LakeTable, event, instant, on_lake, on_postgres

WHOLE: dict[str, Any] = {"type": "window", "definition": []}
UPSERT: dict[str, Any] = {
    "load": "merge_upsert",
    "merge_keys": ["id"],
    "on_missing": "delete",
    "max_deleted": "100%",
}
VERSIONS: dict[str, Any] = UPSERT | {
    "load": "scd2",
    "effective_column": "_ingested_at",
    "on_missing": "retire",
}
STEPS = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED)
each_format = pytest.mark.parametrize("table_format", ["delta", "iceberg"])
each_layout = pytest.mark.parametrize("partition_by", [[], ["unit"]], ids=["plain", "partitioned"])
each_seed = pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3))]
)


def whole_table(folder: Path, engine: SparkEngine, target: Mapping[str, Any], **source: Any) -> Any:
    keys = {key: value for key, value in target.items() if value is not None}
    return on_lake(folder, engine, source={"complete": True, **source}, watermark=WHOLE, target=keys)


@each_seed
@each_layout
@each_format
def test_an_upsert_of_a_whole_table_leaves_what_the_table_has(
    tmp_path: Path, engine: SparkEngine, table_format: str, partition_by: list[str], seed: int
) -> None:
    draw = random.Random(seed)
    flow = whole_table(tmp_path, engine, UPSERT | {"format": table_format, "partition_by": partition_by})
    for number in range(5):
        flow.table.rows = {}
        keys = draw.sample(range(8), draw.randrange(1, 7))
        flow.table.put(
            *(event(key, "2026-05-01", draw.choice("ab"), draw.randrange(9)) for key in sorted(keys))
        )
        if number % 2:
            with suppress(KeyboardInterrupt):
                flow.feed.run(dies_after(draw.choice(STEPS)))
        outcome = flow.feed.load()
        expected = sorted((row["id"], row["unit"], row["value"]) for row in flow.table.rows.values())
        assert flow.feed.rows("id", "unit", "value") == expected
        assert outcome.newest is not None
        assert outcome.newest.total_rows == len(expected)


@each_format
def test_versions_of_keys_that_are_missing_end_and_begin_anew(
    tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    flow = whole_table(tmp_path, engine, VERSIONS | {"format": table_format})
    flow.table.put(event(1, "2026-05-01", value=1), event(2, "2026-05-01", value=1))
    times: list[dt.datetime] = []

    def run() -> None:
        outcome = flow.feed.load()
        intent = flow.feed.platform.log.intent(NAME, outcome.newest.number)
        times.append(dt.datetime.fromisoformat(intent.time))

    run()
    flow.table.drop(1)
    flow.table.put(event(2, "2026-05-01", value=2), event(3, "2026-05-01", value=1))
    run()
    flow.table.put(event(1, "2026-05-01", value=1))
    run()
    columns = ("id", "value", "_valid_from", "_valid_to", "_is_current", "_is_deleted")
    first, second, third = times
    assert flow.feed.rows_by_spark(*columns) == [
        (1, 1, _naive(first), _naive(second), False, True),
        (1, 1, _naive(third), None, True, False),
        (2, 1, _naive(first), _naive(second), False, False),
        (2, 2, _naive(second), None, True, False),
        (3, 1, _naive(second), None, True, False),
    ]
    run()
    assert len(flow.feed.rows_by_spark("id")) == 5


def _naive(time: dt.datetime) -> dt.datetime:
    return time.replace(tzinfo=None)


def test_a_key_that_comes_back_with_its_old_time_begins_at_the_read(
    tmp_path: Path, engine: SparkEngine
) -> None:
    flow = whole_table(tmp_path, engine, VERSIONS | {"effective_column": "at"})
    flow.table.put(event(1, "2026-05-01", value=1), event(2, "2026-05-01", value=1))
    flow.feed.load()
    flow.table.drop(1)
    flow.feed.load()
    flow.table.put(event(1, "2026-05-01", value=1), event(2, "2026-05-01", value=5))
    flow.feed.load()
    flow.table.put(event(1, "2026-05-01", value=7))
    flow.feed.load()
    current = [(key, value) for key, value, last in flow.feed.rows("id", "value", "_is_current") if last]
    assert current == [(1, 7), (2, 5)]
    assert [row[0] for row in flow.feed.rows("id")] == [1, 1, 2]


@pytest.mark.remedy("too_many_deleted", "run")
@pytest.mark.parametrize("target", [UPSERT, VERSIONS], ids=["upsert", "scd2"])
def test_a_source_that_lacks_too_many_keys_stops_before_anything_changes(
    tmp_path: Path, engine: SparkEngine, target: dict[str, Any]
) -> None:
    flow = whole_table(tmp_path, engine, target | {"max_deleted": None})
    rows = [event(key, "2026-05-01") for key in range(1, 11)]
    flow.table.put(*rows)
    flow.feed.load()
    flow.table.drop(1, 2)
    assert flow.feed.load().newest is not None
    flow.table.rows = {}
    flow.table.put()
    error = flow.feed.fail()
    assert (error.code, error.exit_code) == ("too_many_deleted", 4)
    assert "at most 20%" in error.message
    assert "8 keys of 8 missing (100%)" in error.message
    assert flow.feed.open_intent is None
    flow.table.put(*rows[2:])
    assert flow.feed.cli("run", NAME).error is None
    flow.table.drop(3, 4, 5, 6)
    assert flow.feed.fail().code == "too_many_deleted"
    flow.feed.define(target={"max_deleted": "50%"})
    assert flow.feed.cli("run", NAME).error is None
    marked = "id" if target is UPSERT else "_is_current"
    assert len([row for row in flow.feed.rows(marked) if row[0]]) == 4


def test_a_slice_that_is_finished_later_is_checked_again(tmp_path: Path, engine: SparkEngine) -> None:
    flow = whole_table(tmp_path, engine, UPSERT | {"max_deleted": "50%"})
    flow.table.put(*(event(key, "2026-05-01") for key in range(1, 5)))
    flow.feed.load()
    flow.table.drop(1)
    with suppress(KeyboardInterrupt):
        flow.feed.run(dies_after(Step.INTENT_PUT))
    assert flow.feed.open_intent is not None
    flow.table.drop(2, 3)
    assert flow.feed.fail().code == "too_many_deleted"
    flow.table.put(event(2, "2026-05-01"), event(3, "2026-05-01"))
    flow.feed.load()
    assert flow.feed.ids == [2, 3, 4]


def test_the_keys_that_a_read_lacks_are_counted_once(
    tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = whole_table(tmp_path, engine, UPSERT | {"max_deleted": "50%"})
    flow.table.put(*(event(key, "2026-05-01") for key in range(1, 5)))
    flow.feed.load()
    flow.table.drop(1)
    counted: list[Any] = []
    check = missing_keys._check_share

    def count(*arguments: Any) -> None:
        counted.append(arguments)
        check(*arguments)

    monkeypatch.setattr(missing_keys, "_check_share", count)
    flow.feed.load()
    assert (flow.feed.ids, len(counted)) == ([2, 3, 4], 1)


def test_missing_keys_that_are_kept_stay(tmp_path: Path, engine: SparkEngine) -> None:
    flow = whole_table(tmp_path, engine, UPSERT | {"on_missing": "keep", "max_deleted": None})
    flow.table.put(event(1, "2026-05-01"), event(2, "2026-05-01"))
    flow.feed.load()
    flow.table.drop(1)
    flow.feed.load()
    assert flow.feed.ids == [1, 2]


def test_in_a_shared_table_keys_of_others_are_not_missing(tmp_path: Path, engine: SparkEngine) -> None:
    shared = UPSERT | {"shared": True, "table": "bronze/both"}
    flow = whole_table(tmp_path, engine, shared)
    flow.table.put(event(1, "2026-05-01"), event(2, "2026-05-01"))
    flow.feed.load()
    other_table = LakeTable(tmp_path / "lake" / "raw" / "others")
    other_table.put(event(7, "2026-05-01"))
    other = Feed(tmp_path, engine, flow.feed.definition, name="other")
    other.define(source={"table": "raw/others"})
    other.load()
    flow.table.drop(1)
    flow.feed.load()
    assert flow.feed.ids == [2, 7]


EXPORTS: dict[str, Any] = {
    "source": {
        "path": "./landing/{start:%Y-%m-%d}",
        "format": "csv",
        "schema": "id long, value long",
        "complete": True,
    },
    "watermark": {
        "type": "window",
        "window": "daily",
        "partial": False,
        "definition": [{"name": "day", "type": "datetime", "range": {"from": "2026-05-01", "to": "-"}}],
    },
}


def export(feed: Feed, day: int, *rows: tuple[int, int]) -> None:
    lines = ["id,value", *(f"{key},{value}" for key, value in rows)]
    feed.put_text(f"2026-05-{day:02}/all.csv", "\n".join(lines) + "\n")


@each_format
def test_each_day_of_full_exports_is_the_whole(
    tmp_path: Path, engine: SparkEngine, table_format: str
) -> None:
    feed = Feed(tmp_path, engine, EXPORTS | {"target": UPSERT | {"format": table_format}})
    export(feed, 1, (1, 1), (2, 1))
    export(feed, 2, (2, 2), (3, 2))
    export(feed, 4, (3, 4), (4, 4))
    feed.run(now=instant("2026-05-05T06:00"))
    assert feed.rows("id", "value") == [(3, 4), (4, 4)]
    export(feed, 3, (1, 3), (9, 3))  # comes late: the export of a later day is the truth
    outcome = feed.run(now=instant("2026-05-05T07:00"))
    assert outcome.error is None
    assert feed.rows("id", "value") == [(3, 4), (4, 4)]
    forced = feed.cli("run", NAME, "--force", "2026-05-02", "--now", "2026-05-05T08:00:00Z", "--yes").json[0]
    assert (forced["status"], feed.rows("id", "value")) == ("committed", [(3, 4), (4, 4)])
    (superseded,) = (warning for warning in forced["warnings"] if "changes no row" in warning)
    assert "[2026-05-02T00:00:00+00:00, 2026-05-03T00:00:00+00:00)" in superseded
    export(feed, 4, (3, 4), (4, 5))
    last = feed.cli("run", NAME, "--force", "2026-05-04", "--now", "2026-05-05T08:00:00Z", "--yes").json[0]
    assert (last["warnings"], feed.rows("id", "value")) == ([], [(3, 4), (4, 5)])
    export(feed, 5, (4, 5))
    feed.run(now=instant("2026-05-06T06:00"))
    assert feed.rows("id", "value") == [(4, 5)]


def test_versions_of_exports_begin_and_end_at_their_days(tmp_path: Path, engine: SparkEngine) -> None:
    target = VERSIONS | {"effective_column": "_window_start", "track": ["value"]}
    feed = Feed(tmp_path, engine, EXPORTS | {"target": target})
    export(feed, 1, (1, 1), (2, 1))
    export(feed, 2, (2, 2))
    export(feed, 3, (1, 1), (2, 2))
    feed.run(now=instant("2026-05-04T06:00"))
    days = [_naive(instant(f"2026-05-0{day}")) for day in (1, 2, 3)]
    columns = ("id", "value", "_valid_from", "_valid_to", "_is_current", "_is_deleted")
    assert feed.rows_by_spark(*columns) == [
        (1, 1, days[0], days[1], False, True),
        (1, 1, days[2], None, True, False),
        (2, 1, days[0], days[1], False, False),
        (2, 2, days[1], None, True, False),
    ]


@pytest.mark.postgres
def test_rows_that_a_database_deleted_leave_the_table(
    tmp_path: Path, engine: SparkEngine, postgres: Postgres
) -> None:
    table = DatabaseTable(postgres)
    source = {"table": f"{table.schema}.events", "complete": True}
    feed = on_postgres(
        tmp_path, engine, table, source, watermark=WHOLE, target=UPSERT | {"max_deleted": "60%"}
    )
    table.put(*(event(key, "2026-05-01") for key in (1, 2, 3)))
    feed.load()
    table.ask("DELETE FROM {s}.events WHERE id = 1")
    assert feed.load().deleted == 1
    assert feed.ids == [2, 3]
    table.ask("DELETE FROM {s}.events")
    assert feed.fail().code == "too_many_deleted"
