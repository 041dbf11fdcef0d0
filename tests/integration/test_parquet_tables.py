"""Parquet tables in runs: loads, crashes, plain readers, downstream dataflows, what others do to the folder, S3 (docs/reference/parquet.md)."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml

from partitions.loads import Append, Load, Replace
from partitions.predicate import Among, AnyOf, Between
from resources.connections.places import Place
from resources.decisions.maintenance import maintain
from resources.tables.contract.commits import TableCommit, Tag
from resources.tables.parquet.table import ParquetTable
from resources.tables.registry import find_table
from tests.integration.conftest import MakeFeed
from tests.integration.test_delta_own_commits import EVERY_TYPE
from tests.support.feed import CHECKOUT, NAME, Feed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARQUET: dict[str, Any] = {"target": {"format": "parquet"}}


def _ids(feed: Feed) -> list[int]:
    """As a plain reader sees them."""
    return sorted(pq.read_table(feed.table)["id"].to_pylist())


def _table(place: Place, partition_by: tuple[str, ...] = ()) -> ParquetTable:
    return ParquetTable(place, partition_by)


def test_plain_readers_see_exactly_the_committed_rows(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "bronze" / "sales"
    place = Place(str(folder))
    rows = spark.createDataFrame(
        [(1, "a", "2026-01-01"), (2, "b", "2026-01-01"), (3, None, "2026-01-02")],
        "id long, name string, day string",
    )
    loads: tuple[tuple[Load, DataFrame], ...] = (
        (Append(), rows),
        (Append(), rows.where("id = 3").selectExpr("id + 1 AS id", "name", "day")),
        (Replace(Among("day", ("2026-01-01",))), rows.where("id = 1")),
    )
    for number, (load, given) in enumerate(loads, 1):
        table = _table(place, ("day",))
        table.write(given, load, Tag("app", number, f"intent {number}"), "{}", base=table.tip("app").version)
        _table(place).after_append(TableCommit(None), "flow")
    expected = [(1, "a", "2026-01-01"), (3, None, "2026-01-02"), (4, None, "2026-01-02")]
    arrow = ds.dataset(folder, partitioning="hive").to_table().select(["id", "name", "day"])
    assert sorted(map(tuple, zip(*arrow.to_pydict().values(), strict=True))) == expected
    frame = pd.read_parquet(folder)
    assert sorted(zip(frame["id"], frame["day"].astype(str), strict=True)) == [
        (i, day) for i, _, day in expected
    ]
    for pattern in ("*/*.parquet", "**/*.parquet"):
        found = duckdb.connect().execute(
            f"SELECT id, name, CAST(day AS VARCHAR) FROM read_parquet('{folder}/{pattern}', hive_partitioning = true) ORDER BY id"
        )
        assert found.fetchall() == expected
    plain = spark.read.parquet(str(folder)).selectExpr("id", "name", "string(day)").collect()
    assert sorted(map(tuple, plain)) == expected
    own = find_table(place)
    versions = [sorted(map(tuple, own.contents.read(spark, number).collect())) for number in (1, 2, 3)]
    assert versions[2] == expected
    assert [len(version) for version in versions] == [3, 4, 3]
    assert (own.contents.count_rows(), own.contents.highest_values(["id", "day"])) == (
        3,
        {"id": 4, "day": "2026-01-02"},
    )
    assert own.contents.holds_any(1, Between("id", 2, 3))
    assert not own.contents.holds_any(3, Between("id", 2, 3))


@pytest.mark.remedy("foreign_files", "state reset --replace")
def test_what_others_do_to_the_folder_stops_the_run_and_a_reset_reloads_it(make_feed: MakeFeed) -> None:
    feed = make_feed(**PARQUET)
    feed.put("a.ndjson", 1, 2)
    feed.load()
    shutil.copy(next(feed.table.glob("*.parquet")), feed.table / "copy.parquet")
    feed.put("b.ndjson", 3)
    stopped = feed.cli("run", NAME, "--json")
    assert (stopped.code, stopped.error["code"]) == (4, "foreign_files")
    assert "copy.parquet" in stopped.error["message"]
    (feed.table / "copy.parquet").unlink()
    feed.load()
    next(feed.table.glob("*.parquet")).unlink()
    lost = feed.cli("run", NAME, "--json")
    assert (lost.code, lost.error["code"]) == (4, "table_behind")
    shutil.copy(next(feed.table.glob("*.parquet")), feed.table / "copy.parquet")
    feed.decide("reset", "--replace")
    feed.load()
    assert _ids(feed) == [1, 2, 3]


def test_a_first_load_into_others_files_begins_nothing_until_reset(make_feed: MakeFeed) -> None:
    feed = make_feed(**PARQUET)
    feed.table.mkdir(parents=True)
    pq.write_table(pa.table({"id": [77]}), feed.table / "theirs.parquet")
    feed.put("a.ndjson", 1)
    stopped = feed.cli("run", NAME, "--json")
    assert (stopped.code, stopped.error["code"]) == (4, "foreign_files")
    assert feed.open_intent is None
    feed.decide("reset", "--replace")
    feed.load()
    assert _ids(feed) == [1]


@pytest.mark.parametrize("lost", ["all files", "the last file"])
def test_a_table_without_its_files_is_adopted_and_loaded_again(make_feed: MakeFeed, lost: str) -> None:
    feed = make_feed(**PARQUET, watermark={"checkpoint": {"interval_files": 1}})
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number)
        feed.load()
    for file in feed.table.glob("*.parquet"):
        if lost == "all files" or pq.read_table(file)["id"].to_pylist() == [2]:
            file.unlink()
    assert feed.cli("run", NAME, "--json").error["code"] == "table_behind"
    feed.decide("adopt")
    assert feed.run().error is None
    feed.put("3.ndjson", 3)
    assert feed.run().error is None
    assert _ids(feed) == [1, 2, 3]
    assert feed.platform.table(feed.dataflow).contents.count_rows() == 3


def test_loads_by_keys_are_refused_with_the_reason(make_feed: MakeFeed) -> None:
    for load in ("merge_upsert", "merge_overwrite", "scd2"):
        feed = make_feed(target={"format": "parquet", "load": load, "merge_keys": ["id"]}, late_files="alert")
        answer = feed.cli("validate", "--json")
        assert answer.code == 2
        (error,) = [error for error in answer.json["errors"] if error["key"] == "target.load"]
        assert error["found"] == f"{load} beside format parquet"
        assert "format: delta" in error["expected"]


def test_the_dataflow_of_the_page_loads_and_is_read_by_partition(feed_of_page: Feed) -> None:
    (feed_of_page.landing / "readings").mkdir()
    lines = '{"id": 1, "sensor": "a", "day": "2026-01-01", "value": 1.5}\n{"id": 2, "sensor": "b", "day": "2026-01-02", "value": 2}\n'
    (feed_of_page.landing / "readings" / "1.ndjson").write_text(lines)
    feed_of_page.load()
    found = duckdb.connect().execute(
        f"SELECT id, value FROM read_parquet('{feed_of_page.table}/**/*.parquet', hive_partitioning = true) WHERE day = '2026-01-02'"
    )
    assert found.fetchall() == [(2, 2.0)]


@pytest.fixture
def feed_of_page(make_feed: MakeFeed) -> Feed:
    """The dataflow of docs/reference/parquet.md."""
    page = (CHECKOUT / "docs/reference/parquet.md").read_text()
    return make_feed(**yaml.safe_load(page.split("```yaml\n")[1].split("```")[0]))


def test_slices_are_read_at_their_versions(make_feed: MakeFeed, tmp_path: Path, spark: SparkSession) -> None:
    feed = make_feed(
        source={"type": "table", "table": "raw/events"},
        watermark={"type": "column", "columns": ["id"]},
        target={"load": "append", "format": "parquet"},
    )
    place = Place(str(feed.folder / "lake" / "raw" / "events"))
    for number, ids in enumerate((range(1, 4), range(4, 6)), 1):
        table = _table(place)
        rows = spark.createDataFrame([(i,) for i in ids], "id long")
        table.write(rows, Append(), Tag("up", number, f"intent {number}"), "{}", base=table.tip("up").version)
        feed.load()  # the upstream's files are staged still
    assert _ids(feed) == [1, 2, 3, 4, 5]


def test_the_care_of_a_table_deletes_old_files_and_the_next_run_goes_on(make_feed: MakeFeed) -> None:
    feed = make_feed(**PARQUET, maintenance={"vacuum": "P1D"})
    feed.put("a.ndjson", 1)
    feed.load()
    done = maintain(feed.platform, feed.dataflow, ("vacuum",))
    assert (done.results["vacuum"].deleted, done.entry and done.entry.why) == (0, "maintain")
    feed.put("b.ndjson", 2)
    feed.load()
    assert _ids(feed) == [1, 2]


@pytest.mark.parametrize("partition_by", [(), ("date",), ("instant", "decimal")], ids=str)
@pytest.mark.full
def test_rows_of_every_type_are_read_and_replaced_by_their_values(
    spark: SparkSession, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    place, rows = Place(str(tmp_path / "table")), spark.sql(EVERY_TYPE).coalesce(1)
    _table(place, partition_by).write(rows, Append(), Tag("app", 1, "one"), "{}", base=None)
    table = _table(place)
    table.after_append(TableCommit(None), "flow")
    assert sorted(map(str, table.contents.read(spark, 1).collect())) == sorted(map(str, rows.collect()))
    first = {
        "byte": 1,
        "decimal": Decimal("1.50"),
        "date": date(2026, 3, 1),
        "instant": datetime(2026, 3, 1, 0, 0, 0, 123456, tzinfo=UTC),
        "local": datetime(2026, 3, 1, 1, 2, 3, 1),  # noqa: DTZ001 - of a column without zone
        "string": "text",
        "other": "é日",
    }
    for column, value in first.items():
        assert table.contents.holds_any(1, Among(column, (value,))), column
        assert table.contents.holds_any(1, Between(column, value, None)), column
        assert next(table.contents.distinct_rows([column])) == {column: None}
    highest = table.contents.highest_values(["byte", "decimal", "date", "instant", "local"])
    assert highest == {column: first[column] for column in highest}
    kept = spark.sql(EVERY_TYPE).where("id <> 1")
    for number, (column, value) in enumerate(first.items(), 2):
        replaced = _table(place)
        load = Replace(Among(column, (value,)))
        replaced.write(rows.where("id = 1"), load, Tag("app", number, str(number)), "{}", base=number - 1)
        replaced.after_append(TableCommit(None), "flow")
        assert replaced.contents.count_rows() == 3, column
    gone = Replace(AnyOf((Among("id", (1,)), Among("date", (date(2026, 3, 1),)))))
    _table(place).write(rows.limit(0), gone, Tag("app", 99, "last"), "{}", base=len(first) + 1)
    assert sorted(map(str, table.contents.read(spark, len(first) + 2).collect())) == sorted(
        map(str, kept.collect())
    )
