"""What a user's own asset may not store, each refused by name before anything is written. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from dagster import (
    DailyPartitionsDefinition,
    DynamicPartitionsDefinition,
    HourlyPartitionsDefinition,
    MultiPartitionsDefinition,
    Out,
    StaticPartitionsDefinition,
    graph_asset,
    op,
)
from deltalake import DeltaTable, write_deltalake

from tests.support.own_assets import OwnProject, own_asset
from tests.support.projects import FILES

DAYS = DailyPartitionsDefinition("2026-01-01", end_date="2026-01-10")
UNITS = StaticPartitionsDefinition(["a", "b"])
BOTH = MultiPartitionsDefinition({"day": DAYS, "unit": UNITS})
BY_DAY = {"strandline/window_column": "at"}


@pytest.fixture
def project(tmp_path: Path) -> OwnProject:
    return OwnProject(tmp_path, events=FILES)


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _frame(**columns: Any) -> Any:
    return lambda _: pa.table(columns)


def test_another_type_is_refused_with_the_list_of_types(project: OwnProject) -> None:
    assert project.refused(own_asset(lambda _: 3)) == (
        "asset silver/totals: expected it to return one of pandas.DataFrame, polars.DataFrame, polars.LazyFrame, pyarrow.Table,"
        " pyarrow.dataset.Dataset, duckdb.DuckDBPyRelation, pyarrow.RecordBatchReader, pyspark.sql.DataFrame,"
        " pyspark.sql.connect.dataframe.DataFrame, a list of dicts, or None if there is nothing to store, found int. Return one of"
        " these, or give the asset another IO manager"
    )


def test_nothing_is_stored_of_none(project: OwnProject) -> None:
    result = project.run(own_asset(lambda _: None))
    assert not (project.folder / "lake").exists()
    log = [entry.user_message for entry in project.instance.all_logs(result.run_id)]
    assert "asset silver/totals returned None: nothing is stored" in log


def test_the_table_of_a_dataflow_is_refused(project: OwnProject) -> None:
    taken = own_asset(_frame(id=[1]), metadata={"strandline/table": "bronze/events"})
    assert project.refused(taken) == (
        "asset silver/totals: expected a table that this asset alone writes, found bronze/events, which events loads. Name another"
        ' table in the asset\'s metadata: "strandline/table": "LAYER/NAME"'
    )


def test_a_table_of_another_writer_is_refused_and_kept(project: OwnProject) -> None:
    table = project.folder / "lake/silver/totals"
    write_deltalake(str(table), pa.table({"id": [7]}))
    assert project.refused(own_asset(_frame(id=[1]))) == (
        f"asset silver/totals: expected no table at {table}, or one that this asset has written, found a table of another writer."
        ' Name another table in the asset\'s metadata: "strandline/table": "LAYER/NAME"; or move it away'
    )
    assert DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist() == [7]


def test_files_of_another_writer_are_refused_and_kept(project: OwnProject) -> None:
    table = project.folder / "lake/silver/totals"
    table.mkdir(parents=True)
    (table / "a.parquet").write_bytes(b"x")
    stored = own_asset(_frame(id=[1]), metadata={"strandline/format": "parquet"})
    assert "found the files a.parquet" in project.refused(stored)


@pytest.mark.parametrize(
    ("key", "metadata", "found"),
    [
        ("totals", {}, "in its key, found totals"),
        ("a/b/c", {}, "in its key, found a/b/c"),
        ("silver/totals", {"strandline/table": "../x"}, "in its metadata strandline/table, found ../x"),
        ("silver/totals", {"strandline/table": 3}, "in its metadata strandline/table, found 3"),
    ],
)
def test_a_name_that_is_no_table_is_refused(
    project: OwnProject, key: str, metadata: dict[str, Any], found: str
) -> None:
    assert project.refused(own_asset(_frame(id=[1]), key, metadata=metadata)) == (
        f"asset {key}: expected a table LAYER/NAME of letters, digits and underscores {found}. Name the table in the asset's"
        ' metadata: "strandline/table": "LAYER/NAME"'
    )


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("price decimal(10", "expected"),
        ("price decimal(10,2), PRICE string", "found the column PRICE again"),
    ],
)
def test_a_schema_that_spark_cannot_read_is_refused(project: OwnProject, schema: str, reason: str) -> None:
    text = project.refused(own_asset(_frame(id=[1]), metadata={"strandline/schema": schema}))
    assert text.startswith(
        'asset silver/totals: expected columns with types in its metadata strandline/schema, such as "amount decimal(10,2), note'
        f" string\", found '{schema}': expected"
    )
    assert reason in text


def test_an_unknown_format_is_refused(project: OwnProject) -> None:
    stored = own_asset(_frame(id=[1]), metadata={"strandline/format": "csv"})
    assert project.refused(stored) == (
        "asset silver/totals: expected delta, iceberg, parquet in its metadata strandline/format, found 'csv'"
    )


@pytest.mark.parametrize(
    ("partitions", "metadata", "message"),
    [
        (
            DAYS,
            {},
            ("expected the column that tells the window of a row, since it has partitions of time, found none. Name it in the asset's"
            ' metadata: "strandline/window_column": "COLUMN"'),
        ),
        (
            UNITS,
            {},
            ("expected the column that tells the partition of a row for unit, found none. Name it in the asset's metadata:"
            ' "strandline/unit_columns": "COLUMN"'),
        ),
        (
            MultiPartitionsDefinition({"a": UNITS, "b": UNITS}),
            {"strandline/unit_columns": "u"},
            ("expected the column that tells the partition of a row for a, b, found 'u'. Name it in the asset's metadata:"
            ' "strandline/unit_columns": {"a": "COLUMN", "b": "COLUMN"}'),
        ),
        (
            UNITS,
            {"strandline/unit_columns": "u", **BY_DAY},
            ("expected no strandline/window_column in its metadata, since its partitions are no time windows, found 'at'. Remove it, or"
            " name the column in strandline/unit_columns"),
        ),
        (
            DAYS,
            {"strandline/unit_columns": "u", **BY_DAY},
            "expected no strandline/unit_columns in its metadata, since it has no partitions beside time windows, found 'u'. Remove it",
        ),
    ],
)  # fmt: skip
def test_columns_that_nobody_named_are_asked_for(
    project: OwnProject, partitions: Any, metadata: dict[str, Any], message: str
) -> None:
    stored = own_asset(_frame(at=[_at("2026-01-02")]), partitions_def=partitions, metadata=metadata)
    key = partitions.get_partition_keys(current_time=_at("2026-01-10"))[0]
    assert project.refused(stored, partition=key) == f"asset silver/totals: {message}"


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ([_at("2026-01-02"), _at("2026-01-03")], "at = 2026-01-03 00:00:00+00:00"),
        ([_at("2026-01-01T23:59:59.999999")], "at = 2026-01-01 23:59:59.999999+00:00"),
        ([_at("2026-01-02"), None], "at = NULL"),
    ],
)
def test_rows_outside_of_the_partition_are_refused(
    project: OwnProject, rows: list[datetime | None], values: str
) -> None:
    stored = own_asset(_frame(at=rows), partitions_def=DAYS, metadata=BY_DAY)
    assert project.refused(stored, partition="2026-01-02") == (
        f"asset silver/totals: expected rows of partition 2026-01-02 alone, found rows outside, such as {values}. Nothing was stored."
        " Return only rows of the run's partitions"
    )
    assert not (project.folder / "lake/silver").exists()


def test_rows_of_another_unit_are_refused_by_window_and_unit(project: OwnProject) -> None:
    stored = own_asset(
        _frame(at=[_at("2026-01-02"), _at("2026-01-02")], u=["a", "b"]),
        partitions_def=BOTH,
        metadata={**BY_DAY, "strandline/unit_columns": "u"},
    )
    assert "such as at = 2026-01-02 00:00:00+00:00, u = b." in project.refused(
        stored, partition="2026-01-02|a"
    )


def test_rows_outside_of_a_range_are_refused(project: OwnProject) -> None:
    stored = own_asset(_frame(at=[_at("2026-01-04")]), partitions_def=DAYS, metadata=BY_DAY)
    message = project.refused(stored, partitions=("2026-01-02", "2026-01-03"))
    assert "expected rows of 2 partitions from 2026-01-02 to 2026-01-03 alone" in message


@pytest.mark.parametrize(
    ("partitions", "column", "message"),
    [
        (DAYS, ["x"], "column at: expected times or days, by which a window is found, found text. Return the column as a timestamp or a date"),
        (
            HourlyPartitionsDefinition("2026-01-01-00:00", end_date="2026-01-02-00:00"),
            [_at("2026-01-01").date()],
            "column at: expected times, since a window begins at 2026-01-01 01:00, found days. Return the column as a timestamp",
        ),
    ],
)  # fmt: skip
def test_a_column_that_tells_no_window_is_refused(
    project: OwnProject, partitions: Any, column: list[Any], message: str
) -> None:
    stored = own_asset(_frame(at=column), partitions_def=partitions, metadata=BY_DAY)
    key = partitions.get_partition_keys(current_time=_at("2026-01-10"))[0]
    assert project.refused(stored, partition=key) == f"asset silver/totals: {message}"


def test_a_missing_column_of_the_window_is_named(project: OwnProject) -> None:
    stored = own_asset(_frame(time=[_at("2026-01-02")]), partitions_def=DAYS, metadata=BY_DAY)
    assert project.refused(stored, partition="2026-01-02") == (
        "asset silver/totals: column at: expected a column with single values, such as time, found no column of that name"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (pa.table({"n": pa.array([2**63], pa.uint64())}), "column n: expected values of type bigint, found others: "),
        (pa.table({"t": pa.array([1], pa.timestamp("ns"))}), "column t: expected values of type timestamp_ntz, found others: "),
        (pa.table({"d": pa.array([timedelta(1)])}), "expected values that a table can hold, found d: "),
        (pd.DataFrame({"x": ["a", 1]}), "expected a frame whose columns hold values of one type each, found "),
        (pd.DataFrame({"x": [None]}), "expected a value of x among the first rows, found none, so its type is unknown. Give the column a type"),
        (pa.table({"x": [1], "X": [2]}), "expected columns whose names differ in more than upper and lower case, found x and X"),
        ([{"x": 1}, {"x": "a"}], "expected rows of one schema, found "),
        ([], "expected rows with columns, found neither rows nor columns, and its table does not exist yet. Return a frame with"),
    ],
)  # fmt: skip
def test_values_that_no_column_holds_exactly_are_refused(
    project: OwnProject, value: Any, message: str
) -> None:
    assert project.refused(own_asset(lambda _: value)).startswith(f"asset silver/totals: {message}")
    staged = project.folder / "lake/_staging"
    assert not [file for file in staged.rglob("*") if file.is_file()]


def test_a_run_without_partitions_does_not_replace_the_whole_table(project: OwnProject) -> None:
    stored = own_asset(_frame(at=[_at("2026-01-02")]), partitions_def=DAYS, metadata=BY_DAY)
    assert project.refused(stored) == (
        "asset silver/totals: expected a run over its partitions, found a run without any, which would replace all rows of the"
        " table. Nothing was stored. Choose partitions for the run"
    )
    assert not (project.folder / "lake").exists()


def test_the_output_of_an_op_is_refused(project: OwnProject) -> None:
    @op(out=Out(io_manager_key="strandline_table"))
    def rows() -> Any:
        return pa.table({"id": [1]})

    @op
    def count(table: Any) -> int:
        return int(table.num_rows)

    @graph_asset(key=["silver", "totals"])
    def totals() -> Any:
        return count(rows())

    assert project.refused(totals) == (
        "output result of op rows: expected an output of an asset, whose key names its table, found one of an op."
        " Remove its io_manager_key"
    )


def test_keys_that_are_one_value_are_refused(project: OwnProject) -> None:
    shops = DynamicPartitionsDefinition(name="shops")
    project.instance.add_dynamic_partitions("shops", ["7", "a", "007"])
    by_shop = {"strandline/unit_columns": "shop"}
    stored = own_asset(_frame(shop=[7]), partitions_def=shops, metadata=by_shop)
    assert project.refused(stored, partition="7") == (
        "asset silver/totals: expected partitions with values of their own, found 7 and 007, which are one value of column shop, so"
        " they would replace each other's rows. Remove one, or return the column as text"
    )


@pytest.mark.parametrize(
    ("partitions", "metadata", "column"),
    [
        (MultiPartitionsDefinition({"a": UNITS, "b": UNITS}), {"strandline/unit_columns": {"a": "u", "b": "u"}}, "u"),
        (BOTH, {**BY_DAY, "strandline/unit_columns": "at"}, "at"),
    ],
)  # fmt: skip
def test_a_column_for_two_dimensions_is_refused(
    project: OwnProject, partitions: Any, metadata: dict[str, Any], column: str
) -> None:
    stored = own_asset(_frame(u=["a"]), partitions_def=partitions, metadata=metadata)
    key = partitions.get_partition_keys(current_time=_at("2026-01-10"))[0]
    assert project.refused(stored, partition=key) == (
        "asset silver/totals: expected a column of its own for each dimension of its partitions, found"
        f" {column} twice in its metadata, so partitions would replace each other's rows. Name another column"
    )


def test_a_refused_relation_of_duckdb_leaves_its_connection_free(project: OwnProject) -> None:
    connection = duckdb.connect()
    stored = own_asset(lambda _: connection.sql("SELECT TIME '01:02' AS t"))
    assert "found t: values of type time64[us], which no column holds" in project.refused(stored)
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
