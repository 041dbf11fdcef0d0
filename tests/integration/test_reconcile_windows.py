"""Windows of a source and of its table compared, for each window and unit; only loaded windows take part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import Columns
from tests.support.feed import Feed
from tests.support.reconciled import ids_of, reconciled
from tests.support.window_feed import (
    BY_COLUMNS,
    REPLACED,
    DatabaseTable,
    LakeTable,
    Windows,
    event,
    instant,
    on_lake,
    on_postgres,
    watermark,
)

pytestmark = pytest.mark.postgres
KEYED = {"load": "merge_upsert", "merge_keys": ["id"]}
NOW = "2020-01-04T00:30"


def differing(document: dict[str, Any]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Return the differing rows of each window and unit: missing, extra and different."""
    return {
        (range_["lower"]["at"]["__datetime__"][:10], range_["unit"]["u"]): counts
        for range_ in document["ranges"]
        if any(counts := (range_["missing"], range_["extra"], range_["different"]))
    }


EVENTS = [
    event(1, "2020-01-01T01:00", "a", 1),
    event(2, "2020-01-01T02:00", "b", 2),
    event(3, "2020-01-02T03:00", "a", 3),
    event(4, "2020-01-03T04:00", "b", 4),
]


@pytest.mark.each_case
@pytest.mark.parametrize("target", [KEYED, REPLACED], ids=["keys", "rows"])
def test_windows_of_a_database_are_compared_by_window_and_unit(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine, target: dict[str, Any]
) -> None:
    table = DatabaseTable(postgres)
    table.put(*EVENTS)
    feed = on_postgres(
        tmp_path, engine, table, {"table": f"{table.schema}.events", **BY_COLUMNS}, target=target
    )
    flow = Columns(feed)
    feed.run(now=instant(NOW))
    equal = reconciled(flow, "--rows")
    assert (equal["equal"], len(equal["ranges"])) == (True, 6)
    assert equal["up_to"]["at"] == {"__datetime__": "2020-01-04T00:00:00+00:00"}
    table.put(event(5, "2020-01-02T05:00", "b", 5))  # missing
    table.put(event(9, "2020-01-04T00:10", "a", 9), event(8, "2020-01-01T01:00", "c", 8))  # take no part
    DeltaTable(str(feed.table)).update(updates={"id": "40"}, predicate="id = 4")
    table.ask("DELETE FROM {s}.events WHERE id = 2")
    table.put(event(3, "2020-01-02T03:00", "a", 30))
    document = reconciled(flow, "--rows", code=1)
    is_keyed = target is KEYED
    assert differing(document) == {
        ("2020-01-01", "b"): (0, 1, 0),
        ("2020-01-02", "a"): (0, 0, 1) if is_keyed else (1, 1, 0),
        ("2020-01-02", "b"): (1, 0, 0),
        ("2020-01-03", "b"): (1, 1, 0),
    }
    if is_keyed:
        assert ids_of(document) == {"missing": [4, 5], "extra": [2, 40], "different": [3]}
    day = reconciled(flow, "--start", "2020-01-01", "--end", "2020-01-02", code=1)
    assert differing(day) == {("2020-01-01", "b"): (0, 1, 0)}
    backwards = feed.cli("reconcile", "flow", "--start", "2020-01-02", "--end", "2020-01-01")
    assert "found --start 2020-01-02 and --end 2020-01-01" in backwards.error["message"]
    refused = feed.cli("reconcile", "flow", "--rows", "--repair", "--reason", "because", "--yes")
    assert (refused.code, refused.error["code"]) == (2, "no_repair")
    feed.command("replay", "flow", "--start", "2020-01-01", "--end", "2020-01-04", "--replace")
    assert reconciled(flow, "--rows")["equal"] is True


def test_windows_of_a_lake_table_are_compared_at_one_version(tmp_path: Path, engine: SparkEngine) -> None:
    windows: Windows = on_lake(tmp_path, engine, target=KEYED)
    table: LakeTable = windows.table
    table.put(*EVENTS)
    windows.run(NOW)
    flow = Columns(windows.feed)
    assert reconciled(flow, "--rows")["equal"] is True
    table.add(event(5, "2020-01-02T05:00", "b", 5))
    document = reconciled(flow, "--rows", code=1)
    assert differing(document) == {("2020-01-02", "b"): (1, 0, 0)}
    assert document["source_version"] == table.version
    windows.feed.define(watermark=watermark(units=None), source={"unit_columns": None})
    assert "definition has changed" in windows.feed.cli("reconcile", "flow").error["message"]


def test_windows_that_rows_do_not_tell_are_refused(tmp_path: Path, engine: SparkEngine) -> None:
    folders = {"path": "./landing/{start:%Y-%m-%d}", "format": "ndjson", "schema": "id long"}
    feed = Feed(
        tmp_path,
        engine,
        {"source": folders, "watermark": watermark(units=None, partial=False), "target": {"load": "append"}},
    )
    feed.put("2020-01-01/1.ndjson", 1)
    feed.run(now=instant("2020-01-02T00:30"))
    answer = feed.cli("reconcile", "flow")
    assert answer.code == 2, answer.out
    assert "expects a source whose rows tell their window and unit" in answer.error["message"]
