"""Bounds in a Delta table's log that leave rows out: they are not trusted, not written, found and written again (docs/how-to/maintenance.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from partitions.loads import Append, Replace
from partitions.predicate import EVERYTHING, Among, Between, Predicate
from resources.connections.places import Place
from resources.decisions.maintenance import maintain
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Tag
from resources.tables.delta.table import DeltaLakeTable
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT, LONG = pa.decimal128(18, 2), pa.decimal128(38, 18)
CLOSE = [Decimal("1234567890123456.77"), Decimal("1234567890123456.78")]
"""The nearest doubles of both are above them, and stand in the log with fewer digits."""
FAR = [
    Decimal("-12345678901234567890.123456789012345678"),
    Decimal("12345678901234567890.123456789012345678"),
]


def written(
    folder: Path, values: Sequence[Any], kind: pa.DataType, *, nested: bool = False
) -> DeltaLakeTable:
    """A table of one file that delta-rs has written, with bounds of its own."""
    column = (
        pa.array([{"v": value} for value in values], pa.struct([("v", kind)]))
        if nested
        else pa.array(values, kind)
    )
    write_deltalake(str(folder), pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": column}))
    return DeltaLakeTable(Place(str(folder)))


def edges(values: Sequence[Any]) -> list[Predicate]:
    """Conditions that each value meets at the end of the file's range."""
    lowest, highest = min(values), max(values)
    return [
        Among("v", (lowest,)),
        Among("v", (highest,)),
        Between("v", None, lowest, upper_inclusive=True),
        Between("v", highest, None),
    ]


@pytest.mark.parametrize(("values", "kind"), [(CLOSE, SHORT), (FAR, LONG)], ids=["close", "far"])
def test_bounds_in_doubles_find_decimals(tmp_path: Path, values: Sequence[Any], kind: pa.DataType) -> None:
    table = written(tmp_path / "t", values, kind)
    for edge in edges(values):
        assert table.contents.holds_any(0, edge), edge
        assert table.contents.highest_values(["id"], 0, edge)["id"] is not None, edge


@pytest.mark.needs_spark
def test_a_session_skips_no_file_of_such_bounds(spark_engine: SparkEngine, tmp_path: Path) -> None:
    for nested in (False, True):
        folder = tmp_path / f"nested-{nested}"
        table = written(folder, CLOSE, SHORT, nested=nested)
        rows = table.contents.read(spark_engine.session(), 0, EVERYTHING)
        column = "v.v" if nested else "v"
        for value in CLOSE:
            assert rows.where(f"{column} = {value}BD").count() == 1
            assert rows.where(f"{column} <= {value}BD").count() >= 1


@pytest.mark.needs_spark
def test_replaced_rows_go_whatever_doubles_the_log_has(spark_engine: SparkEngine, tmp_path: Path) -> None:
    spark = spark_engine.session()
    for partition_by in ([], ["id"]):
        folder = tmp_path / f"t{len(partition_by)}"
        rows = pa.table({"id": pa.array([1, 1], pa.int64()), "v": pa.array(CLOSE, SHORT)})
        write_deltalake(str(folder), rows, partition_by=partition_by or None)
        new = spark.createDataFrame([(1, CLOSE[0])], "id long, v decimal(18,2)")
        DeltaLakeTable(Place(str(folder))).write(
            new, Replace(Among("v", (CLOSE[0],))), Tag("app", 1, "owner"), "{}", base=0
        )
        assert sorted(DeltaTable(str(folder)).to_pyarrow_table()["v"].to_pylist()) == CLOSE


def spark_rows(spark: SparkSession, folder: Path, condition: str) -> int:
    """How many rows Spark finds, with statistics."""
    return spark.read.format("delta").load(str(folder)).where(condition).count()


ODD = {
    "v": "decimal(18,2)",
    "n": "struct<v: decimal(38,18)>",
    "f": "double",
    "t": "timestamp",
    "s": "string",
}


def odd_feed(make_feed: MakeFeed, columns: dict[str, str]) -> Feed:
    """A dataflow that loads one file after another, with columns of which bounds may be cut."""
    schema = ", ".join(["id long", *(f"{name} {kind}" for name, kind in columns.items())])
    return make_feed(
        source={"schema": schema},
        watermark={"checkpoint": {"interval_files": 1}},
        maintenance={"optimize": "P1D", "vacuum": "P7D"},
    )


@pytest.mark.full
@pytest.mark.needs_spark
def test_joined_files_have_bounds_of_all_rows(make_feed: MakeFeed, spark_engine: SparkEngine) -> None:
    feed = odd_feed(make_feed, ODD)
    texts = ["a" * 40, "z" * 40, "m"]
    times = ["2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00.999999Z", "1969-12-31T23:59:59.999999Z"]
    for number in range(2):
        row = f'"v": {CLOSE[number]}, "n": {{"v": {FAR[number]}}}, "f": {number}.5, "t": "{times[number]}", "s": "{texts[number]}"'
        (feed.landing / f"{number}.ndjson").write_text(f'{{"id": {number}, {row}}}\n')
    feed.load()
    done = maintain(feed.platform, feed.dataflow, ("optimize",))
    assert (done.results["optimize"].added, done.results["optimize"].removed) == (1, 2)
    spark = spark_engine.session()
    found = QueryBuilder().register("t", DeltaTable(str(feed.table)))
    for number in range(2):
        for condition in (
            f"v = {CLOSE[number]}BD",
            f"n.v = {FAR[number]}BD",
            f"t = TIMESTAMP '{times[number]}'",
            f"s = '{texts[number]}'",
        ):
            assert spark_rows(spark, feed.table, condition) == 1, condition
        assert (
            sum(
                batch.num_rows
                for batch in found.execute(
                    f"SELECT id FROM t WHERE v = CAST('{CLOSE[number]}' AS DECIMAL(18, 2))"
                )
            )
            == 1
        )
        lazy = pl.scan_delta(str(feed.table))
        assert lazy.filter(pl.col("v") == pl.lit(CLOSE[number])).collect().height == 1
        instant = datetime.fromisoformat(times[number])
        assert lazy.filter(pl.col("t") == pl.lit(instant)).collect().height == 1
    feed.put("2.ndjson", 7)
    feed.load()
    assert feed.ids == [0, 1, 7]


@pytest.mark.full
@pytest.mark.needs_spark
def test_nan_is_found_behind_numbers_in_joined_files(spark_engine: SparkEngine, tmp_path: Path) -> None:
    spark, folder = spark_engine.session(), tmp_path / "t"
    table = DeltaLakeTable(Place(str(folder)))
    for number, value in enumerate(("1.5D", "double('NaN')")):
        rows = spark.sql(f"SELECT {number}L AS id, {value} AS f, named_struct('f', {value}) AS n")
        table.write(rows, Append(), Tag("app", number + 1, "owner"), "{}", base=None if not number else 0)
    cared = table.maintenance.optimize(spark_engine.session, ())
    assert (cared.added, cared.removed) == (1, 2)
    for condition in ("f > 2", "n.f > 2", "isnan(f)"):
        assert spark_rows(spark, folder, condition) == 1, condition
    assert [math.isnan(f) for f in DeltaTable(str(folder)).to_pyarrow_table()["f"].to_pylist()].count(
        True
    ) == 1


@pytest.mark.needs_spark
def test_a_dataflow_above_a_decimal_loads_the_last_row_of_joined_files(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"type": "table", "table": "silver/amounts"},
        watermark={"type": "column", "columns": ["v"]},
        target={"origin_columns": False},
    )
    folder = feed.folder / "lake" / "silver" / "amounts"
    for number, value in enumerate(CLOSE[:1]):
        write_deltalake(
            str(folder),
            pa.table({"id": pa.array([number], pa.int64()), "v": pa.array([value], SHORT)}),
            mode="append",
        )
    feed.load()
    write_deltalake(
        str(folder),
        pa.table({"id": pa.array([1], pa.int64()), "v": pa.array(CLOSE[1:], SHORT)}),
        mode="append",
    )
    DeltaTable(str(folder)).optimize.compact()
    feed.load()
    assert feed.ids == [0, 1]


def findings(feed: Feed) -> list[Any]:
    """What `strandline doctor` says of the table."""
    checks = feed.cli("doctor", "--no-spark").json["checks"]
    return [check for check in checks if check["check"] == f"table {NAME}"]


def test_wrong_bounds_are_found_and_written_again(make_feed: MakeFeed) -> None:
    feed = odd_feed(make_feed, {"v": "decimal(18,2)"})
    feed.put("1.ndjson", 1)
    (feed.landing / "1.ndjson").write_text(f'{{"id": 1, "v": {CLOSE[0]}}}\n')
    feed.load()
    (feed.landing / "2.ndjson").write_text(f'{{"id": 2, "v": {CLOSE[1]}}}\n')
    feed.load()
    DeltaTable(str(feed.table)).optimize.compact()
    table = DeltaLakeTable(Place(str(feed.table)))
    assert (
        len(table.maintenance.wrong_statistics().files),
        table.maintenance.wrong_statistics().can_be_written,
    ) == (1, True)
    (check,) = findings(feed)
    assert (check["ok"], check["todo"]) == (False, f"strandline maintain {NAME}")
    assert "the statistics of 1 file exclude rows" in check["found"]
    before = sorted(DeltaTable(str(feed.table)).file_uris())
    done = maintain(feed.platform, feed.dataflow, ("vacuum",))
    assert done.results["vacuum"].statistics == 1
    assert sorted(DeltaTable(str(feed.table)).file_uris()) == before
    assert (table.maintenance.wrong_statistics().files, feed.ids) == ([], [1, 2])
    found = QueryBuilder().register("t", DeltaTable(str(feed.table)))
    for value in CLOSE:
        assert (
            sum(
                batch.num_rows
                for batch in found.execute(f"SELECT id FROM t WHERE v = CAST('{value}' AS DECIMAL(18, 2))")
            )
            == 1
        )
    assert findings(feed) == []
    assert maintain(feed.platform, feed.dataflow, ("vacuum",)).results["vacuum"].statistics == 0
    (feed.landing / "3.ndjson").write_text('{"id": 3, "v": 1.5}\n')
    feed.load()
    assert feed.ids == [1, 2, 3]


def test_texts_that_are_misread_are_found_and_written_again(make_feed: MakeFeed) -> None:
    feed = odd_feed(make_feed, {"v": "string"})
    (feed.landing / "1.ndjson").write_text('{"id": 1, "v": "a"}\n{"id": 2, "v": "\U00020bb7"}\n')
    feed.load()
    (commit,) = (feed.table / "_delta_log").glob("*.json")
    text = commit.read_text()
    assert "\U00020bb7" in text
    commit.write_text(text.replace("\U00020bb7", "\\\\ud842\\\\udfb7"))  # as older versions have written it
    table = DeltaLakeTable(Place(str(feed.table)))
    assert len(table.maintenance.wrong_statistics().files) == 1
    assert table.contents.holds_any(0, Among("v", ("\U00020bb7",)))
    assert table.maintenance.vacuum(lambda: pytest.fail("no Spark is needed")).statistics == 1
    assert table.maintenance.wrong_statistics().files == []
