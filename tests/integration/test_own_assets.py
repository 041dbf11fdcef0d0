"""A user's own assets, stored and read back by the table IO manager: formats x frames, partitions, kills, races."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from dagster import (
    AssetIn,
    AssetKey,
    DailyPartitionsDefinition,
    DynamicPartitionsDefinition,
    HourlyPartitionsDefinition,
    MultiPartitionsDefinition,
    SensorResult,
    StaticPartitionsDefinition,
    TimeWindowPartitionMapping,
    asset,
    build_sensor_context,
)

from partitions.supported import FORMATS
from resources.connections.places import Place
from resources.dagster import own_tables
from resources.spark.engine import SparkEngine
from resources.tables.registry import find_table
from resources.watermarks.entry import new_id
from tests.support.own_asset_classic import run_assets
from tests.support.own_asset_crash import POINTS, crash
from tests.support.own_assets import QUIET, OwnProject, below, own_asset, shown

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("text", pa.string()),
    ]
)
DAYS = DailyPartitionsDefinition("2026-01-01", end_date="2026-01-10")
UNITS = StaticPartitionsDefinition(["a", "b"])
BY_DAY = {"strandline/window_column": "at"}
TOTALS = "silver/totals"
CHANGED_DAYS = """
layer: silver
source: {type: table, table: silver/totals, window_column: at}
watermark:
  type: window
  definition: [{name: day, type: datetime, range: {from: "2026-01-02", to: "2026-01-05"}}]
  window: daily
  refresh: changed
target: {load: merge_overwrite, replace_by_watermark: true, origin_columns: false}
"""


def _returning(rows: Any) -> Callable[[Any], Any]:
    return lambda _: rows


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


ROWS = [
    {"id": 1, "at": at("2026-01-02"), "price": Decimal("1.10"), "text": "ä"},
    {"id": 2, "at": at("2026-01-03T12:00"), "price": None, "text": None},
]


def _of_spark(table: pa.Table, engine: SparkEngine) -> Any:
    return engine.session().createDataFrame(
        [tuple(row.values()) for row in table.to_pylist()],
        "id long, at timestamp, price decimal(10,2), text string",
    )


FRAMES: dict[str, Callable[[pa.Table, SparkEngine], Any]] = {
    "pandas": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, _: pl.from_arrow(table),
    "lazy polars": lambda table, _: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "pyarrow table": lambda table, _: table,
    "pyarrow dataset": lambda table, _: ds.dataset(table),
    "pyarrow reader": lambda table, _: table.to_reader(1),
    "duckdb": lambda table, _: duckdb.from_arrow(table),
    "dicts": lambda table, _: table.to_pylist(),
    "spark": _of_spark,
}  # fmt: skip


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory, spark_engine: SparkEngine) -> dict[str, OwnProject]:
    """A project of each format, whose table ``silver/totals`` each test replaces."""
    return {name: OwnProject(tmp_path_factory.mktemp(name), spark_engine, name) for name in FORMATS}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("table_format", FORMATS)
def test_the_table_is_what_the_asset_returned_last(
    projects: dict[str, OwnProject], spark_engine: SparkEngine, table_format: str, frame: str
) -> None:
    project = projects[table_format]
    stored = own_asset(lambda _: FRAMES[frame](pa.Table.from_pylist(ROWS, SCHEMA), spark_engine))
    report, seen = below()
    result = project.run(stored, report)
    assert seen[0].select(SCHEMA.names).sort_by("id").to_pylist() == ROWS
    assert project.rows(TOTALS) == ROWS
    metadata = shown(result, TOTALS)[None]
    assert (metadata["rows"], metadata["dagster/row_count"]) == (2, 2)
    log = [entry.user_message for entry in project.instance.all_logs(result.run_id)]
    assert f"stored 2 rows in {TOTALS}, version {metadata['table_version']}" in log
    assert metadata["table"] == str(project.folder / "lake" / TOTALS)
    columns = {column.name: column.type for column in metadata["dagster/column_schema"].columns}
    assert list(columns)[:4] == SCHEMA.names
    assert columns["price"] == ("decimal(38,18)" if frame == "dicts" else "decimal(10,2)")


def _days(*values: tuple[str, int], day: str = "at") -> pa.Table:
    return pa.table(
        {
            day: pa.array([at(text) for text, _ in values], pa.timestamp("us", "UTC")),
            "n": [n for _, n in values],
        }
    )


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_column_has_the_type_that_the_metadata_names(
    projects: dict[str, OwnProject], table_format: str
) -> None:
    """Python's decimals have none of their own, and a column without a value has none at all."""
    project, key = projects[table_format], "silver/typed"
    frame = pd.DataFrame({"id": [1, 2], "price": [Decimal("1.5"), None], "note": [None, None]})
    metadata = {"strandline/schema": "PRICE decimal(10,2), note string"}
    for returned in (frame, frame.to_dict("records")):
        result = project.run(own_asset(_returning(returned), key, metadata=metadata))
        columns = {of.name: of.type for of in shown(result, key)[None]["dagster/column_schema"].columns}
        assert {name: columns[name] for name in ("id", "price", "note")} == {
            "id": "bigint",
            "price": "decimal(10,2)",
            "note": "string",
        }
        assert [row["price"] for row in project.rows(key, "id")] == [Decimal("1.50"), None]
    too_fine = own_asset(lambda _: [{"price": Decimal("1.005"), "note": "x"}], key, metadata=metadata)
    assert project.refused(too_fine).startswith("asset silver/typed: column price: ")
    assert len(project.rows(key)) == 2, "nothing was stored"


def test_a_frame_of_spark_keeps_its_types_and_must_have_the_declared_ones(
    projects: dict[str, OwnProject], spark_engine: SparkEngine
) -> None:
    frame = _of_spark(pa.Table.from_pylist(ROWS, SCHEMA), spark_engine)
    other = own_asset(
        lambda _: frame, "silver/of_spark", metadata={"strandline/schema": "price decimal(12,2)"}
    )
    assert projects["delta"].refused(other) == (
        "asset silver/of_spark: expected the column price decimal(12,2), as its metadata strandline/schema says, found"
        " decimal(10,2). Nothing was stored. Cast it in the asset, or correct the metadata"
    )
    same = own_asset(
        lambda _: frame, "silver/of_spark", metadata={"strandline/schema": "price decimal(10,2)"}
    )
    projects["delta"].run(same)
    assert projects["delta"].rows("silver/of_spark") == ROWS


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_partition_replaces_exactly_its_rows(
    tmp_path: Path, spark_engine: SparkEngine, table_format: str
) -> None:
    project = OwnProject(tmp_path, spark_engine, table_format)
    rows = {
        "2026-01-01": _days(("2026-01-01", 1), ("2026-01-01T23:59:59.999999", 2)),
        "2026-01-02": _days(("2026-01-02", 3)),
    }
    stored = own_asset(lambda context: rows[context.partition_key], "silver/days", DAYS, BY_DAY)
    report, seen = below("silver/days", partitions_def=DAYS)
    for day in rows:
        project.run(stored, report, partition=day)
    rows["2026-01-01"] = _days(("2026-01-01T05:00", 4))
    result = project.run(stored, report, partition="2026-01-01")
    assert [table["n"].to_pylist() for table in seen] == [[1, 2], [3], [4]]
    assert project.rows("silver/days") == [
        {"at": at("2026-01-01T05:00"), "n": 4},
        {"at": at("2026-01-02"), "n": 3},
    ]
    metadata = shown(result, "silver/days")["2026-01-01"]
    assert (metadata["rows"], metadata["dagster/partition_row_count"], metadata["dagster/row_count"]) == (
        1,
        1,
        2,
    )
    # A range replaces all of its days in one commit; a day without rows is empty then.
    over = own_asset(
        lambda _: _days(("2026-01-03", 5), ("2026-01-03", 6), ("2026-01-02", 7)), "silver/days", DAYS, BY_DAY
    )
    result = project.run(over, partitions=("2026-01-01", "2026-01-03"))
    assert project.rows("silver/days", "at", "n") == [
        {"at": at("2026-01-02"), "n": 7}, {"at": at("2026-01-03"), "n": 5}, {"at": at("2026-01-03"), "n": 6}
    ]  # fmt: skip
    counts = {day: each["dagster/partition_row_count"] for day, each in shown(result, "silver/days").items()}
    assert counts == {"2026-01-01": 0, "2026-01-02": 1, "2026-01-03": 2}
    versions = {each["table_version"] for each in shown(result, "silver/days").values()}
    assert len(versions) == 1


def test_windows_and_units_are_replaced_by_both(tmp_path: Path, spark_engine: SparkEngine) -> None:
    project = OwnProject(tmp_path, spark_engine)
    both = MultiPartitionsDefinition({"day": DAYS, "airport": UNITS})
    metadata = {**BY_DAY, "strandline/unit_columns": {"airport": "unit"}}

    def rows(context: Any) -> pl.DataFrame:
        keys = context.partition_key.keys_by_dimension
        return pl.DataFrame({"at": [at(keys["day"])], "unit": [keys["airport"]], "n": [next(numbers)]})

    numbers = count()
    stored = own_asset(rows, "silver/both", both, metadata)
    for key in ("a|2026-01-01", "b|2026-01-01", "a|2026-01-02", "a|2026-01-01"):
        project.run(stored, partition=key)
    assert [(each["at"].day, each["unit"], each["n"]) for each in project.rows("silver/both", "at", "unit")] == [
        (1, "a", 3), (1, "b", 1), (2, "a", 2)
    ]  # fmt: skip
    loaded: Any = project.definitions(stored).load_asset_value(
        AssetKey(["silver", "both"]), python_type=pa.Table, instance=project.instance, partition_key="b|2026-01-01"
    )  # fmt: skip
    assert loaded["n"].to_pylist() == [1]


def test_units_without_time_are_replaced_by_their_typed_column(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    project = OwnProject(tmp_path, spark_engine, "parquet")
    shops, numbers = DynamicPartitionsDefinition(name="shops"), count()
    project.instance.add_dynamic_partitions("shops", ["1", "2"])
    stored = own_asset(
        lambda context: pd.DataFrame({"shop": [int(context.partition_key)], "n": [next(numbers)]}),
        "silver/shops", shops, {"strandline/unit_columns": "shop"},
    )  # fmt: skip
    report, seen = below("silver/shops", partitions_def=shops)
    for key in ("1", "2", "1"):
        project.run(stored, report, partition=key)
    assert project.rows("silver/shops") == [{"shop": 1, "n": 2}, {"shop": 2, "n": 1}]
    assert [table["n"].to_pylist() for table in seen] == [[0], [1], [2]]


def test_spark_rows_of_a_partition_are_checked_and_read_once(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    project = OwnProject(tmp_path, spark_engine)

    def rows(context: Any) -> Any:
        return spark_engine.session().sql(
            f"SELECT timestamp'{day}' + make_dt_interval(0, id) AS at, rand() AS n FROM range(0, {hours}, 12)"
        )

    stored = own_asset(rows, "silver/days", DAYS, BY_DAY)
    day, hours = "2026-01-02", 24
    project.run(stored, partition="2026-01-02")
    first = project.rows("silver/days")
    assert [each["at"].hour for each in first] == [0, 12]
    hours = 36
    assert project.refused(stored, partition="2026-01-02") == (
        "asset silver/days: expected rows of partition 2026-01-02 alone, found rows outside, such as at = 2026-01-03 00:00:00. Nothing"
        " was stored. Return only rows of the run's partitions"
    )
    assert project.rows("silver/days") == first


@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize(
    "setting",
    ["outputTimestampType=INT96", "outputTimestampType=TIMESTAMP_MILLIS", "datetimeRebaseModeInWrite=LEGACY"],
)
def test_times_of_a_session_of_the_user_are_stored_as_they_are(
    projects: dict[str, OwnProject], spark_engine: SparkEngine, table_format: str, setting: str
) -> None:
    session, (key, value) = spark_engine.session(), setting.split("=")
    session.conf.set(f"spark.sql.parquet.{key}", value)
    times = [at("1500-01-01"), at("2026-01-01T00:00:00.123456"), at("9999-12-31")]
    rows = [{"id": number, "at": time, "day": time.date()} for number, time in enumerate(times)]
    stored = own_asset(
        lambda _: session.createDataFrame(list(map(_values, rows)), "id int, at timestamp, day date")
    )
    report, seen = below()
    projects[table_format].run(stored, report)
    assert seen[0].select(["id", "at", "day"]).sort_by("id").to_pylist() == rows
    assert session.conf.get(f"spark.sql.parquet.{key}") == value


def _values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())


def test_hours_are_read_by_the_days_of_a_mapping(tmp_path: Path, spark_engine: SparkEngine) -> None:
    project = OwnProject(tmp_path, spark_engine)
    hours = HourlyPartitionsDefinition("2026-01-01-00:00", end_date="2026-01-05-00:00")
    stored = own_asset(
        lambda _: _days(("2026-01-01T23:00", 1), ("2026-01-02T00:00", 2), ("2026-01-02T23:30", 3)), "silver/hours", hours, BY_DAY
    )  # fmt: skip
    project.run(stored, partitions=("2026-01-01-23:00", "2026-01-02-23:00"))
    report, seen = below("silver/hours", pd.DataFrame, DAYS)
    definitions = project.definitions(stored, report).resolve_implicit_global_asset_job_def()
    definitions.execute_in_process(
        instance=project.instance, asset_selection=[report.key], partition_key="2026-01-02"
    )
    assert seen[0]["n"].tolist() == [2, 3]


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_partition_may_add_columns_but_not_lose_any(
    tmp_path: Path, spark_engine: SparkEngine, table_format: str
) -> None:
    project = OwnProject(tmp_path, spark_engine, table_format)
    frames = {
        "2026-01-01": pa.table({"at": [at("2026-01-01")], "n": [1], "gone": ["x"]}),
        "2026-01-02": pa.table({"at": [at("2026-01-02")], "n": pa.array([2], pa.int16())}),
        # pandas has made a float of a number beside NULL.
        "2026-01-03": pd.DataFrame(
            {"at": [at("2026-01-03")] * 2, "n": [3.0, None], "gone": [None, None], "new": [1.5, 2.5]}
        ),
        "2026-01-04": pa.table({"at": [at("2026-01-04")], "n": [4.5], "gone": ["x"], "new": [0.5]}),
    }
    stored = own_asset(lambda context: frames[context.partition_key], "silver/days", DAYS, BY_DAY)
    project.run(stored, partition="2026-01-01")
    assert project.refused(stored, partition="2026-01-02") == (
        "asset silver/days: expected the columns of its table, since a partition replaces a part of it, found others: gone is missing"
        " (string). Nothing was stored. Return these columns as the table has them (NULL where there is no value); or start another"
        " table: name it in the asset's metadata strandline/table"
    )
    project.run(stored, partition="2026-01-03")
    assert project.refused(stored, partition="2026-01-04").startswith(
        "asset silver/days: column n: expected values of type bigint, found others: "
    )
    assert project.rows("silver/days", "at", "new") == [
        {"at": at("2026-01-01"), "n": 1, "gone": "x", "new": None},
        {"at": at("2026-01-03"), "n": 3, "gone": None, "new": 1.5},
        {"at": at("2026-01-03"), "n": None, "gone": None, "new": 2.5},
    ]


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_whole_replacement_may_change_all_columns_and_be_empty(
    tmp_path: Path, spark_engine: SparkEngine, table_format: str
) -> None:
    project = OwnProject(tmp_path, spark_engine, table_format)
    frames: list[Any] = [
        pa.table({"id": pa.array([], pa.int64())}),
        pa.table({"id": ["now a text"], "more": [1]}),
        pa.table({"id": pa.array([None], pa.null())}),
        [],
    ]
    stored = own_asset(lambda _: frames.pop(0))
    expected: list[list[dict[str, Any]]] = [[], [{"id": "now a text", "more": 1}], [{"id": None}], []]
    for rows in expected:
        result = project.run(stored)
        assert project.rows(TOTALS) == rows
        assert shown(result, TOTALS)[None]["rows"] == len(rows)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
def test_a_killed_run_that_is_repeated_leaves_its_rows_once(
    tmp_path: Path, spark_engine: SparkEngine, table_format: str, point: str, is_first: bool
) -> None:
    project = OwnProject(tmp_path, spark_engine, table_format)
    if not is_first:
        project.run(own_asset(lambda _: pa.table({"id": [9]})))
    crash(project, spark_engine, point, 1, 2)
    project.run(own_asset(lambda _: pa.table({"id": [1, 2]})))
    assert project.rows(TOTALS) == [{"id": 1}, {"id": 2}]
    project.run(own_asset(lambda _: pa.table({"id": [3]})))
    assert project.rows(TOTALS) == [{"id": 3}]
    staged = project.folder / "lake/_staging"
    assert not [file for file in staged.rglob("*") if file.is_file()]


@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
def test_of_two_runs_at_once_both_store_their_partitions(
    tmp_path: Path,
    spark_engine: SparkEngine,
    monkeypatch: pytest.MonkeyPatch,
    table_format: str,
    is_first: bool,
) -> None:
    project = OwnProject(tmp_path, spark_engine, table_format)
    stored = own_asset(lambda context: _days((context.partition_key, 1)), "silver/days", DAYS, BY_DAY)
    expected = [(2, 1), (3, 1)]
    if not is_first:
        project.run(stored, partition="2026-01-01")
        expected = [(1, 1), *expected]
    owners = _meet(monkeypatch)
    with ThreadPoolExecutor(2) as threads:
        runs = [
            threads.submit(project.elsewhere().run, stored, partition=day)
            for day in ("2026-01-02", "2026-01-03")
        ]
        assert all(run.result().success for run in runs)
    assert [(each["at"].day, each["n"]) for each in project.rows("silver/days")] == expected
    assert len(owners) > 2  # the second one took another number


@pytest.mark.parametrize("table_format", FORMATS)
def test_of_two_runs_at_once_the_rows_of_the_later_one_stand(
    tmp_path: Path, spark_engine: SparkEngine, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    project = OwnProject(tmp_path, spark_engine, table_format)
    project.run(own_asset(lambda _: pa.table({"id": [0]})))
    owners = _meet(monkeypatch)

    def run(number: int) -> tuple[Any, int]:
        result = project.elsewhere().run(own_asset(lambda _: pa.table({"id": [number]})))
        return shown(result, TOTALS)[None]["table_version"], number

    with ThreadPoolExecutor(2) as threads:
        versions = dict(threads.map(run, (1, 2)))
    newest = find_table(Place(str(project.folder / "lake" / TOTALS))).contents.newest_version()
    assert len(versions) == 2
    assert project.rows(TOTALS) == [{"id": versions[newest]}]
    assert len(owners) > 2


def _meet(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let two writers meet after they have chosen their numbers; return the ids of all attempts."""
    together, owners, first = threading.Barrier(2, timeout=120), list[str](), threading.local()

    def new() -> str:
        own = new_id()
        owners.append(own)
        if not hasattr(first, "done"):
            first.done = True
            together.wait()
        return own

    monkeypatch.setattr(own_tables, "new_id", new)
    return owners


def test_a_step_behind_reads_what_this_run_has_stored(tmp_path: Path, spark_engine: SparkEngine) -> None:
    project = OwnProject(tmp_path, spark_engine)
    stored = own_asset(lambda _: pa.table({"id": [1]}))
    seen: list[Any] = []

    @asset(deps=[stored])
    def meanwhile() -> None:
        project.run(own_asset(lambda _: pa.table({"id": [2]})))

    @asset(ins={"totals": AssetIn(AssetKey(["silver", "totals"]))}, deps=[meanwhile])
    def report(totals: pl.LazyFrame) -> None:
        seen.append(totals.collect()["id"].to_list())

    project.run(stored, meanwhile, report)
    assert seen == [[1]]
    assert project.rows(TOTALS) == [{"id": 2}]


def test_a_dataflow_reads_the_table_of_an_asset_and_is_downstream_of_it(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    reads = "source: {type: table, table: silver/totals}\nwatermark: {type: column, columns: [id]}\n"
    project = OwnProject(tmp_path, spark_engine, total=reads)
    stored = own_asset(lambda _: pa.table({"id": [1, 2]}))
    definitions = project.definitions(stored)
    table = AssetKey(["bronze", "total"])
    assert definitions.resolve_asset_graph().get(table).parent_keys == {stored.key}
    project.run(stored)
    job = definitions.resolve_job_def("load_total")
    assert job.execute_in_process(instance=project.instance, run_config=QUIET).success
    assert [each["id"] for each in project.rows("bronze/total", "id")] == [1, 2]


@pytest.mark.full
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_day_that_the_asset_stores_again_with_other_rows_is_loaded_again_below(
    tmp_path: Path, spark_engine: SparkEngine, table_format: str
) -> None:
    project = OwnProject(tmp_path, spark_engine, table_format, days=CHANGED_DAYS)
    rows = {"2026-01-02": 1, "2026-01-03": 2, "2026-01-04": 3}
    stored = own_asset(
        lambda context: _days(*((day, rows[day]) for day in context.partition_keys)),
        partitions_def=DAYS,
        metadata=BY_DAY,
    )
    definitions = project.definitions(stored)
    job, sensor = definitions.resolve_job_def("load_days"), definitions.resolve_sensor_def("days_windows")

    def load(**partition: Any) -> list[tuple[str, int]]:
        """Run the job; return its table."""
        assert job.execute_in_process(instance=project.instance, run_config=QUIET, **partition).success
        return [(f"{row['at']:%Y-%m-%d}", row["n"]) for row in project.rows("silver/days", "at")]

    project.run(stored, partitions=("2026-01-02", "2026-01-04"))
    assert load() == [*rows.items()]
    rows["2026-01-03"] = 20
    for day in ("2026-01-03", "2026-01-04"):
        project.run(stored, partition=day)
    result = sensor(build_sensor_context(instance=project.instance))
    assert isinstance(result, SensorResult)
    (request,) = result.run_requests or ()
    assert request.tags["strandline/plan"] == "1 work unit", "the rows of 2026-01-04 are as they were"
    assert load(tags=request.tags, partition_key=request.partition_key) == [*rows.items()]


NAIVE = [*map(datetime.fromisoformat, ("2026-03-29T02:30:00.000001", "1583-01-01")), None]
"""Times without a zone: one that Berlin does not have, and one that the Julian calendar has on another day."""
NAIVE_FRAMES: dict[str, Callable[[SparkEngine], Any]] = {
    "pandas": lambda _: pd.DataFrame({"id": [0, 1, 2], "at": pd.Series(NAIVE, dtype="datetime64[us]")}),
    "polars": lambda _: pl.DataFrame({"id": [0, 1, 2], "at": NAIVE}),
    "pyarrow": lambda _: pa.table({"id": [0, 1, 2], "at": pa.array(NAIVE, pa.timestamp("us"))}),
    "duckdb": lambda _: duckdb.from_arrow(NAIVE_FRAMES["pyarrow"](_)),
    "dicts": lambda _: [{"id": number, "at": time} for number, time in enumerate(NAIVE)],
    "spark": lambda engine: engine.session().createDataFrame([*enumerate(NAIVE)], "id long, at timestamp_ntz"),
}  # fmt: skip


@pytest.mark.parametrize("frame", NAIVE_FRAMES)
@pytest.mark.parametrize("table_format", FORMATS)
def test_times_without_a_zone_are_stored_and_read_without_one(
    projects: dict[str, OwnProject], spark_engine: SparkEngine, table_format: str, frame: str
) -> None:
    project, key = projects[table_format], "silver/naive"
    stored = own_asset(lambda _: NAIVE_FRAMES[frame](spark_engine), key)
    for annotation in (pa.Table, pl.DataFrame, pd.DataFrame):
        report, seen = below(key, annotation)
        result = project.run(stored, report)
        table = pa.table(seen[0]) if annotation is not pd.DataFrame else pa.Table.from_pandas(seen[0])
        assert pa.types.is_timestamp(table.schema.field("at").type)
        assert table.schema.field("at").type.tz is None
        assert table.sort_by("id")["at"].cast(pa.timestamp("us")).to_pylist() == NAIVE
    columns = {of.name: of.type for of in shown(result, key)[None]["dagster/column_schema"].columns}
    assert columns["at"] == "timestamp_ntz"


def test_the_key_prefix_of_the_project_is_no_part_of_the_table(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    project = OwnProject(tmp_path, spark_engine, key_prefix="north")
    project.run(own_asset(lambda _: pa.table({"id": [1]}), "north/silver/totals"))
    assert project.rows(TOTALS) == [{"id": 1}]
    # An asset of another project has another key.
    assert "found a table of another writer" in project.refused(
        own_asset(lambda _: pa.table({"id": [2]}), "south/x", metadata={"strandline/table": TOTALS})
    )


def test_a_table_keeps_its_format_when_the_project_changes_its_own(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    project = OwnProject(tmp_path, spark_engine, "parquet")
    project.run(own_asset(lambda _: pa.table({"id": [1]})))
    settings = project.folder / "platform.yaml"
    settings.write_text(settings.read_text().replace("parquet", "delta"))
    project.run(own_asset(lambda _: pa.table({"id": [2]})))
    assert project.rows(TOTALS) == [{"id": 2}]
    other = own_asset(lambda _: pa.table({"id": [3]}), metadata={"strandline/format": "delta"})
    assert project.refused(other) == (
        "asset silver/totals: expected a table of format delta or none, found silver/totals of format parquet. Set"
        ' "strandline/format": "parquet"; or name another table: "strandline/table": "LAYER/NAME"'
    )


def test_an_input_is_a_frame_of_spark_connect_if_the_annotation_says_so(
    projects: dict[str, OwnProject],
) -> None:
    from pyspark.sql import DataFrame as AnyDataFrame
    from pyspark.sql.connect.dataframe import DataFrame

    project = projects["delta"]
    stored = own_asset(lambda _: pa.table({"id": [1, 2]}), "silver/connected")
    for annotation in (DataFrame, AnyDataFrame):
        report, seen = below("silver/connected", annotation)
        assert project.run(stored, report).success
        assert isinstance(seen[0], DataFrame)
        assert sorted(row.id for row in seen[0].collect()) == [1, 2]


@pytest.mark.full
def test_a_spark_in_the_process_of_the_run_stores_its_frames_in_the_format_of_the_project(
    tmp_path: Path,
) -> None:
    project = OwnProject(tmp_path, table_format="iceberg")
    run_assets(project)
    assert project.rows("silver/all") == [{"id": 0}, {"id": 1}]
    assert [(row["day"].day, row["id"]) for row in project.rows("silver/days", "day", "id")] == [
        (1, 0), (1, 1), (2, 0), (2, 1)
    ]  # fmt: skip


def test_a_query_of_spark_that_fails_is_named_in_a_line(
    projects: dict[str, OwnProject], spark_engine: SparkEngine
) -> None:
    def rows(_: Any) -> Any:
        return spark_engine.session().sql(
            "SELECT timestamp'2026-01-02' AS at, 1 / (id - id) AS n FROM range(1)"
        )

    for key, partitions, metadata in (("silver/broken", DAYS, BY_DAY), ("silver/broken_whole", None, None)):
        message = projects["delta"].refused(
            own_asset(rows, key, partitions, metadata), partition=partitions and "2026-01-02"
        )
        assert message.startswith(f"asset {key}: ")
        assert "DIVIDE_BY_ZERO" in message
        assert "org.apache" not in message
        assert projects["delta"].rows(key) == []


def test_the_asset_that_the_page_shows_is_stored_by_day(tmp_path: Path, spark_engine: SparkEngine) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/dagster.md").read_text()
    code = page.partition("### What your assets return")[2].partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(
        compile(code, "page", "exec", dont_inherit=True), names
    )  # which is no module with annotations as texts
    project = OwnProject(tmp_path, spark_engine)
    for day in ("2026-01-02", "2026-01-03", "2026-01-02"):
        project.run(names["delays"], partition=day)
    assert [(row["day"].day, row["airport"], row["minutes"]) for row in project.rows("gold/delays", "day", "airport")] == [
        (2, "EWR", 12.5), (2, "JFK", 9.0), (3, "EWR", 12.5), (3, "JFK", 9.0)
    ]  # fmt: skip


@pytest.mark.parametrize("annotation", [pl.DataFrame, Any])
def test_an_asset_that_reads_its_day_before_starts_without_rows(
    tmp_path: Path, spark_engine: SparkEngine, annotation: Any
) -> None:
    seen: list[int] = []

    def running(context, before):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - annotated below
        rows = before if isinstance(before, pl.DataFrame) else before.toPandas()
        seen.append(int(rows["n"].sum()) if "n" in rows.columns else -1)
        return _days((context.partition_key, len(seen)))

    running.__annotations__ = {"before": annotation}
    day_before = TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)
    stored = asset(
        key=["silver", "running"],
        io_manager_key="strandline_table",
        partitions_def=DAYS,
        metadata=BY_DAY,
        ins={"before": AssetIn(AssetKey(["silver", "running"]), partition_mapping=day_before)},
    )(running)
    project = OwnProject(tmp_path, spark_engine)
    for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
        project.run(stored, partition=day)
    assert seen == [-1, 1, 2]
