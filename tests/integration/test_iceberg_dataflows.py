"""Dataflows into Iceberg tables whose columns change, that others share, and that are cared for: from their files to the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partitions.errors import TargetError
from resources.decisions.maintenance import maintain
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from resources.spark.errors import SparkUnavailable
from resources.spark_runtime import ICEBERG_PACKAGE
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import WRITING, crash
from tests.support.equality import delete_by_values
from tests.support.feed import NAME, Feed

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}


@pytest.mark.each_case
@pytest.mark.parametrize("load", [{"load": "append"}, UPSERT], ids=["append", "merge_upsert"])
def test_a_table_is_partitioned_by_columns_of_any_name(make_feed: MakeFeed, load: dict[str, Any]) -> None:
    schema = "id long, `a b` string, `x.y` string, `q``r` string"
    names = ["a b", "x.y", "q`r"]
    feed = make_feed(source={"schema": schema}, target={"format": "iceberg", "partition_by": names, **load})
    feed.put("1.ndjson", *[{"id": number, "a b": "A B", "x.y": "%", "q`r": "/"} for number in (1, 2)])
    feed.load()
    feed.put("2.ndjson", {"id": 3, "a b": "A B", "x.y": "%", "q`r": None})
    feed.load()
    contents = feed.platform.table(feed.dataflow).contents
    assert contents.partition_columns() == tuple(names)
    rows = contents.first_rows(9).select(["id", *names]).sort_by("id")
    assert rows.to_pylist() == [
        {"id": number, "a b": "A B", "x.y": "%", "q`r": None if number == 3 else "/"} for number in (1, 2, 3)
    ]


@pytest.mark.remedy("equality_deletes", "maintain")
@pytest.mark.each_case
@pytest.mark.parametrize("load", [{"load": "append"}, UPSERT], ids=["append", "merge_upsert"])
def test_loads_go_on_beside_deletes_by_values(make_feed: MakeFeed, load: dict[str, Any]) -> None:
    feed = make_feed(target={"format": "iceberg", **load}, maintenance={"optimize": "P1D"})
    feed.put("1.ndjson", 1, 2)
    feed.load()
    delete_by_values(feed.table, "id", [1])
    feed.put("2.ndjson", 3, *([2] if load is UPSERT else []))
    assert feed.load().rows == (2 if load is UPSERT else 1)
    second = "Spark: the table has deletes beside its files" if load is UPSERT else "Strandline (pyiceberg)"
    assert [entry.committed_by for entry in feed.entries] == ["Spark: the table is created", second]
    refused = feed.cli("state", "adopt", NAME, "--reason", "test", "--yes")
    assert (refused.code, refused.error["code"]) == (1, "equality_deletes")
    feed.command("maintain", NAME)
    feed.put("3.ndjson", 1)
    feed.load()
    assert (feed.ids, feed.load().status) == ([1, 2, 3], "nothing")
    assert feed.platform.table(feed.dataflow).contents.count_rows() == 3


@pytest.mark.parametrize("load", [{"load": "append"}, UPSERT], ids=["append", "merge_upsert"])
def test_a_dead_run_ends_beside_others(tmp_path: Path, engine: SparkEngine, load: dict[str, Any]) -> None:
    target = {"format": "iceberg", "table": "bronze/both", "shared": True, **load}
    flow, other = (Feed(tmp_path, engine, {"target": target}, name=name) for name in (NAME, "other"))
    for feed in (flow, other):
        feed.put("a.ndjson", 1)
        feed.load()
    flow.put("b.ndjson", 2, 3)
    other.put("b.ndjson", 2)
    crash(flow, WRITING)
    other.load()
    assert flow.load().status == "recovered"
    expected = [(NAME, 1), (NAME, 2), (NAME, 3), ("other", 1), ("other", 2)]
    assert flow.rows("_dataflow", "id") == expected
    assert [flow.load().status, other.load().status] == ["nothing", "nothing"]
    assert [feed.entries[-1].total_rows for feed in (flow, other)] == [3, 2]


@pytest.mark.full
def test_a_server_without_iceberg_is_named(make_feed: MakeFeed, engine: SparkEngine, tmp_path: Path) -> None:
    feed = make_feed(target={"format": "iceberg"}, maintenance={"optimize": "P1D"})
    feed.put("1.ndjson", 1)
    with connect_server(SparkEngine(), tmp_path / "connect.log", patience=600) as remote:
        feed.engine = SparkEngine(remote=remote)
        for _ in range(2):
            error = feed.run().error
            assert isinstance(error, SparkUnavailable)
            assert f"the Spark Connect server {remote} was started without Iceberg. Start" in str(error)
            assert f"Start it with the package {ICEBERG_PACKAGE} (docs/reference/iceberg.md)" in str(error)
            assert "the next run finishes it" not in str(error)
        feed.engine = engine
        assert (feed.load().status, feed.ids) == ("recovered", [1])
        feed.engine = SparkEngine(remote=remote)
        with pytest.raises(
            TargetError, match="cannot be optimized: this Spark process was started without Iceberg"
        ):
            maintain(feed.platform, feed.dataflow, ("optimize",))
