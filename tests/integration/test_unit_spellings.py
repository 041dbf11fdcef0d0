"""A definition that spells its units otherwise: nothing is read again, and nothing that is known of them is lost (docs/reference/windows.md, Units)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from partitions.dagster_partitions import WindowPartitions
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.integration.test_window_partitions import Dagster
from tests.support.api import Api, ApiFeed
from tests.support.feed import NAME, Feed
from tests.support.window_feed import (
    REPLACED,
    DatabaseTable,
    Windows,
    instant,
    on_lake,
    on_postgres,
    watermark,
)

NUMBERED = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("unit", pa.int32()), ("value", pa.int64())]
)
APPENDED = {"load": "append"}


DAYS = "2020-01-01", "2020-01-03"


def event(number: int, day: int, unit: Any) -> dict[str, Any]:
    return {"id": number, "at": instant(f"2020-01-{day:02d}"), "unit": unit, "value": 0}


def spelt(feed: Feed, units: Any) -> Feed:
    """The same dataflow with other units."""
    return feed.define(watermark=watermark(*DAYS, units))


def on_numbers(folder: Path, engine: SparkEngine, units: Any, **more: Any) -> Windows:
    made = on_lake(
        folder, engine, schema=NUMBERED, watermark=watermark(*DAYS, units), target=APPENDED, **more
    )
    made.table.put(event(1, 1, 1), event(2, 2, 1), event(3, 1, 2))
    return made


def test_units_as_text_and_number_of_whole_numbers_are_one(tmp_path: Path, engine: SparkEngine) -> None:
    made = on_numbers(tmp_path, engine, "1,2")
    made.run("2020-01-05")
    assert made.feed.ids == [1, 2, 3]
    for units in ([1, 2], ["01", 2.0], [1, "1", 2]):
        spelt(made.feed, units)
        (plan,) = made.feed.cli("plan", NAME, "--now", "2020-01-05").json
        assert (plan["due"], plan["slices"]) == (False, [])
        assert made.run("2020-01-05") == []
    spelt(made.feed, [3, 2, 1])
    made.table.add(event(4, 1, 3))
    assert [unit for _, unit in made.run("2020-01-05")] == ['{"u":3}', '{"u":3}']
    assert made.feed.ids == [1, 2, 3, 4]
    assert set(made.feed.watermark["units"]) == {'{"u":"1"}', '{"u":"2"}', '{"u":3}'}


def test_units_listed_twice_in_other_spellings_are_read_once(tmp_path: Path, engine: SparkEngine) -> None:
    made = on_numbers(tmp_path, engine, ["1", 1, "01", 2])
    assert [unit for _, unit in made.run("2020-01-05")] == ['{"u":"1"}', '{"u":2}'] * 2
    assert made.feed.ids == [1, 2, 3]


def test_a_forced_unit_may_be_spelt_in_any_way(tmp_path: Path, engine: SparkEngine) -> None:
    made = on_numbers(tmp_path, engine, "1,2")
    made.feed.define(target=REPLACED)
    made.run("2020-01-05")
    spelt(made.feed, [1, 2])
    force = ("--force", "2020-01-01..2020-01-02", "--unit", '{"u": 1}', "--now", "2020-01-05")
    (run,) = made.feed.cli("run", NAME, *force).json
    assert (run["status"], run["rows"]) == ("committed", 1)
    assert made.feed.cli("run", NAME, *force[:3], '{"u": 7}', *force[4:]).code == 2


def test_partitions_of_dagster_are_the_listed_units(tmp_path: Path, engine: SparkEngine) -> None:
    made = on_numbers(tmp_path, engine, "1,2")
    made.run("2020-01-05")
    spelt(made.feed, [1, 2])
    partitions = WindowPartitions.of(NAME, made.feed.dataflow.window)
    assert partitions.unit_key('{"u":"1"}') == partitions.unit_key('{"u":1}') == '{"u":1}'
    dagster = Dagster(made.feed, "2020-01-05")
    assert "no work unit is due" in dagster.waits()
    assert dagster.run('{"u":1}|2020-01-01').success
    assert set(made.feed.watermark["units"]) == {'{"u":"1"}', '{"u":"2"}'}


def test_text_and_number_are_one_folder(tmp_path: Path, engine: SparkEngine) -> None:
    source = {"path": "./landing/{start:%Y-%m-%d}/{unit.u}", "missing": "empty", "extensions": [".ndjson"]}
    feed = Feed(tmp_path, engine, {"source": source, "watermark": watermark(*DAYS, "1"), "target": REPLACED})
    for folder in ("1", "01"):
        feed.put(f"2020-01-01/{folder}/x.ndjson", int(folder) + 10 * len(folder))
    feed.run(now=instant("2020-01-05"))
    spelt(feed, [1])
    assert feed.run(now=instant("2020-01-05")).status == "nothing"
    spelt(feed, [1, "01"])
    assert feed.run(now=instant("2020-01-05")).work_units == 2
    assert feed.ids == [11, 21]


@pytest.mark.full
def test_text_and_number_are_one_value_of_a_request(tmp_path: Path, engine: SparkEngine, server: Api) -> None:
    source = {"params": {"since": "{start}", "until": "{end}", "unit": "{unit.u}"}}
    definition = {"watermark": watermark("2026-01-01", "2026-01-03", "1"), "target": REPLACED}
    feed = ApiFeed(tmp_path, engine, server, source, definition).feed()
    server.rows = [{"id": 1, "at": "2026-01-01T06:00:00+00:00", "unit": "1", "value": 1}]
    assert feed.run(now=instant("2026-01-05")).rows == 1
    feed.define(watermark=watermark("2026-01-01", "2026-01-03", [1]))
    assert feed.run(now=instant("2026-01-05")).status == "nothing"


@pytest.mark.full
@pytest.mark.postgres
def test_a_database_tells_its_columns_type_early(
    tmp_path: Path, engine: SparkEngine, postgres: Postgres
) -> None:
    table = DatabaseTable(postgres)
    table.ask("ALTER TABLE {s}.events ALTER COLUMN unit TYPE int USING unit::int")
    table.put(event(1, 1, 1), event(2, 1, 2))
    source = {"table": f"{table.schema}.events", "window_column": "at", "unit_columns": {"u": "unit"}}
    given = watermark(*DAYS, ["1", 1, 2])
    feed = on_postgres(tmp_path, engine, table, source, watermark=given, target=APPENDED)
    assert feed.run(now=instant("2020-01-05")).work_units == 4
    spelt(feed, "1,2")
    assert feed.run(now=instant("2020-01-05")).status == "nothing"
    assert feed.ids == [1, 2]
