"""A Strandline table as the input of a user's own asset: its type, its version, the rows of its partitions. No Spark."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from dagster import (
    AllPartitionMapping,
    AssetIn,
    AssetKey,
    AssetsDefinition,
    DagsterInstance,
    DailyPartitionsDefinition,
    Definitions,
    IdentityPartitionMapping,
    MultiPartitionsDefinition,
    MultiToSingleDimensionPartitionMapping,
    PartitionMapping,
    PartitionsDefinition,
    StaticPartitionsDefinition,
    TimeWindowPartitionMapping,
    asset,
    in_process_executor,
)
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from partitions.sentinels import serialise
from partitions.window.partition_keys import bucket_key
from partitions.window.state import WindowState
from platform_assets.build import build_definitions
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.connections.places import Place
from resources.dagster.run_options import RunOptions
from resources.watermarks.entry import next_entry
from tests.support.projects import project_of

NOW = datetime(2026, 1, 4, 10, tzinfo=UTC)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
EVENTS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("unit", pa.string())])
SOURCE = "source: {type: table, table: raw/events, window_column: at, unit_columns: {u: unit}}\n"
HOURS = (
    f"{SOURCE}watermark: {{type: window, definition: [{{name: hour, type: datetime, range: {{from: '2026-01-01', to: '-'}}}}], window: hourly}}\n"
    "target: {load: merge_overwrite, replace_by_watermark: true}\n"
).replace(", unit_columns: {u: unit}", "")
UNITS = (
    f"{SOURCE}watermark: {{type: window, definition: [{{name: day, type: datetime, range: {{from: '2026-01-01', to: '-'}}}},"
    " {name: u, type: unit, units: 'a,b'}], window: daily}\n"
    "target: {load: merge_overwrite, replace_by_watermark: true}\n"
)
PLAIN = "source: {type: files, path: ./landing, format: ndjson}\nwatermark: {type: path}\n"
TABLE = AssetKey(["bronze", "events"])


def row(number: int, at: str, unit: str = "a") -> dict[str, Any]:
    return {"id": number, "at": datetime.fromisoformat(at).replace(tzinfo=UTC), "unit": unit}


ROWS = [
    row(1, "2026-01-01T00:00"),
    row(2, "2026-01-01T23:59:59.999999", "b"),
    row(3, "2026-01-02T00:00"),
    row(4, "2026-01-02T12:30", "b"),
    row(5, "2026-01-03T05:00"),
]


class Project:
    """A project with one dataflow, whose table another writer has written, a file for each row."""

    def __init__(self, folder: Path, definition: str = PLAIN) -> None:
        self.folder = project_of(folder, events=definition)
        self.table = folder / "lake" / "bronze" / "events"
        self.instance = DagsterInstance.ephemeral()

    def write(self, *rows: Mapping[str, Any], schema: pa.Schema = EVENTS) -> None:
        for each in rows:
            write_deltalake(str(self.table), pa.Table.from_pylist([dict(each)], schema), mode="append")

    def run(self, *assets: AssetsDefinition, partition: str | None = None, **more: Any) -> Any:
        """Run assets over the table."""
        options = RunOptions(now=NOW, hold_wait=timedelta(0))
        project = build_definitions(self.folder, options=options, executor=None)
        merged = Definitions.merge(
            project, Definitions(assets=assets, executor=in_process_executor)
        ).resolve_implicit_global_asset_job_def()
        return merged.execute_in_process(
            instance=self.instance,
            asset_selection=[each.key for each in assets],
            partition_key=partition,
            run_config=QUIET,
            **more,
        )

    def append_entry(self, **fields: Any) -> None:
        """Append an entry to the dataflow's log, as a run does."""
        log = build_platform(load_project(self.folder)).log
        newest = log.newest("events")
        made = next_entry(
            newest, **{"why": "run", "fingerprint": "", "kind": "path", "app_id": "app"} | fields
        )
        log.append("events", made, expected=newest.number if newest else 0)

    def logged(self, run_id: str) -> list[str]:
        return [
            record.user_message for record in self.instance.all_logs(run_id) if not record.is_dagster_event
        ]


def reader(
    annotation: Any = pa.Table,
    partitions: PartitionsDefinition[str] | None = None,
    mapping: PartitionMapping | None = None,
    name: str = "report",
    metadata: Mapping[str, str] | None = None,
) -> tuple[AssetsDefinition, list[Any]]:
    """Return an asset that takes the table, and what it gets."""
    seen: list[Any] = []

    def report(events):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - annotated below
        seen.append(events)

    report.__annotations__ = {"events": annotation, "return": None}
    if annotation is None:
        report.__annotations__ = {"return": None}
    made = asset(
        name=name,
        ins={"events": AssetIn(TABLE, partition_mapping=mapping, metadata=metadata)},
        partitions_def=partitions,
    )(report)
    return made, seen


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    """Return the rows by their number."""
    read: list[dict[str, Any]] = rows.sort_by("id").to_pylist()
    return read


def ids(rows: pa.Table) -> list[int]:
    return [each["id"] for each in in_order(rows)]


def spoil(table: Path, keeps: Sequence[int]) -> None:
    """Replace all files by garbage, except those with some rows."""
    for uri in DeltaTable(str(table)).file_uris():
        path = Path(uri.removeprefix("file://"))
        if not set(pq.read_table(path)["id"].to_pylist()) & set(keeps):
            path.write_bytes(bytes(path.stat().st_size))


DAYS = DailyPartitionsDefinition("2026-01-01", end_date="2026-01-05")
ALL_IDS = [1, 2, 3, 4, 5]


# Types


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("plain"))
    project.write(*ROWS)
    return project


def _rows_of(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of any frame, by their number."""
    match frame:
        case pd.DataFrame():
            return in_order(pa.Table.from_pandas(frame, EVENTS))
        case pl.LazyFrame():
            return in_order(frame.collect().to_arrow())
        case pl.DataFrame():
            return in_order(frame.to_arrow())
        case ds.Dataset():
            return in_order(frame.to_table())
        case duckdb.DuckDBPyRelation():
            return in_order(frame.to_arrow_table())
    return in_order(frame)


@pytest.mark.parametrize(
    "annotation",
    [
        pd.DataFrame,
        pl.DataFrame,
        pl.LazyFrame,
        pa.Table,
        ds.Dataset,
        duckdb.DuckDBPyRelation,
        pd.DataFrame | None,
    ],
    ids=str,
)
def test_a_parameter_gets_the_table_as_the_type_that_it_is_annotated_with(
    plain: Project, annotation: Any
) -> None:
    report, seen = reader(annotation)
    assert plain.run(report).success
    assert isinstance(seen[0], annotation)
    assert _rows_of(seen[0]) == ROWS


def test_a_lazy_frame_reads_the_columns_and_rows_that_its_query_takes(plain: Project) -> None:
    report, seen = reader(pl.LazyFrame)
    plain.run(report)
    taken = seen[0].filter(pl.col("id") > 3).select("unit", "id").sort("id").collect()
    assert taken.to_dicts() == [{"unit": "b", "id": 4}, {"unit": "a", "id": 5}]
    assert seen[0].head(2).collect().height == 2
    assert seen[0].select(pl.len()).collect().item() == 5


def _message(project: Project, report: AssetsDefinition, **how: Any) -> str:
    """Return why a run failed."""
    result = project.run(report, raise_on_error=False, **how)
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    error = failure.step_failure_data.error
    return str((error.cause or error).message).partition(": ")[2].strip()


def test_another_annotation_is_refused_by_name_with_the_supported_types(plain: Project) -> None:
    report, _ = reader(dict)
    assert _message(plain, report) == (
        "input events of asset bronze/events: expected a parameter annotated with one of pandas.DataFrame, polars.DataFrame,"
        " polars.LazyFrame, pyarrow.Table, pyarrow.dataset.Dataset, duckdb.DuckDBPyRelation, pyarrow.RecordBatchReader, pyspark.sql.DataFrame,"
        " pyspark.sql.connect.dataframe.DataFrame, or without an annotation (a Spark DataFrame), found dict"
    )


def test_a_library_that_is_not_installed_is_named_with_its_package(
    plain: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, _ = reader(duckdb.DuckDBPyRelation)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert _message(plain, report) == (
        "input events of asset bronze/events: expected the package duckdb for duckdb.DuckDBPyRelation, found none"
        " installed: pip install duckdb"
    )


def test_a_missing_table_says_so(tmp_path: Path) -> None:
    project = Project(tmp_path)
    report, _ = reader()
    assert _message(project, report) == (
        f"table {project.table}: expected a table, found none. Load it first, or correct its name"
    )


def test_an_iceberg_table_is_read_without_spark(tmp_path: Path) -> None:
    project = Project(tmp_path, HOURS.replace("target: {", "target: {format: iceberg, "))
    write_iceberg(project.table, *ROWS)
    report, seen = reader(partitions=DAYS)
    assert project.run(report, partition="2026-01-02").success
    assert [in_order(rows) for rows in seen] == [ROWS[2:4]]


def write_iceberg(table: Path, *rows: Mapping[str, Any]) -> None:
    """Write an Iceberg table of the lake, a snapshot for each row."""
    (table.parent).mkdir(parents=True)
    catalog = SqlCatalog("own", uri=f"sqlite:///{table.parent}/catalog.db", warehouse=str(table.parent))
    catalog.create_namespace("bronze")
    made = catalog.create_table("bronze.events", EVENTS, location=str(table))
    for each in rows:
        made.append(pa.Table.from_pylist([dict(each)], EVENTS))
    newest = Path(made.metadata_location.removeprefix("file://"))
    (newest.parent / "v1.metadata.json").write_bytes(newest.read_bytes())


@pytest.mark.s3
def test_a_table_of_a_bucket_is_read_with_the_connection_of_the_project(
    tmp_path: Path, bucket: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path)
    assert bucket.connection is not None
    (tmp_path / "platform.yaml").write_text(
        f"state: ./state\nlake: {{path: '{bucket.url}/lake', connection: store}}\nconnections:\n"
        f"  store: {{type: s3, endpoint: '{bucket.connection.endpoint}', region: us-east-1,"
        " access_key_id: {env: KEY}, secret_access_key: {env: SECRET}}\n"
    )
    monkeypatch.setenv("KEY", str(bucket.connection.access_key_id))
    monkeypatch.setenv("SECRET", str(bucket.connection.secret_access_key))
    place = bucket.child("lake/bronze/events")
    write_deltalake(place.url, pa.Table.from_pylist(ROWS, EVENTS), storage_options=place.storage_options)
    report, seen = reader(pl.DataFrame)
    assert project.run(report).success
    assert _rows_of(seen[0]) == ROWS


# Partitions


def test_a_day_of_an_hourly_table_gets_its_rows_alone_and_opens_no_other_file(tmp_path: Path) -> None:
    project = Project(tmp_path, HOURS)
    project.write(*ROWS)
    spoil(project.table, keeps=[1, 2])
    report, seen = reader(partitions=DAYS, mapping=TimeWindowPartitionMapping())
    assert project.run(report, partition="2026-01-01").success
    assert [in_order(rows) for rows in seen] == [ROWS[:2]]


def test_a_range_of_days_gets_the_rows_of_all_its_hours(tmp_path: Path) -> None:
    project = Project(tmp_path, HOURS)
    project.write(*ROWS)
    report, seen = reader(partitions=DAYS)
    tags = {
        "dagster/asset_partition_range_start": "2026-01-02",
        "dagster/asset_partition_range_end": "2026-01-03",
    }
    assert project.run(report, tags=tags).success
    assert [ids(rows) for rows in seen] == [[3, 4, 5]]


@pytest.mark.parametrize(
    ("definition", "rows"),
    [
        (DAYS, {"2026-01-02": [3, 4], "2026-01-04": []}),
        (StaticPartitionsDefinition(["a", "b"]), {"b": [2, 4]}),
        (
            MultiPartitionsDefinition({"window": DAYS, "unit": StaticPartitionsDefinition(["a", "b"])}),
            {"b|2026-01-02": [4], "a|2026-01-01": [1]},
        ),
    ],
    ids=["days", "units", "both"],
)
def test_days_and_units_of_a_table_are_read_by_the_dimension_that_the_asset_has(
    tmp_path: Path, definition: PartitionsDefinition[str], rows: Mapping[str, list[int]]
) -> None:
    project = Project(tmp_path, UNITS)
    project.write(*ROWS)
    both = isinstance(definition, MultiPartitionsDefinition)
    mapping = IdentityPartitionMapping() if both else MultiToSingleDimensionPartitionMapping()
    report, seen = reader(partitions=definition, mapping=mapping)
    for key in rows:
        assert project.run(report, partition=key).success
    assert [ids(each) for each in seen] == list(rows.values())


QUERY = "{type: jdbc, connection: erp, query: 'select * from e where at >= {start} and at < {end} and u = {unit.u}'}"
BUCKETS = ["bucket-0", "bucket-1"]


def tagged_project(folder: Path, **watermark: str) -> Project:
    """Return a project whose rows carry window and unit, since no column of the source tells them."""
    definition = UNITS.replace(
        "{type: table, table: raw/events, window_column: at, unit_columns: {u: unit}}", QUERY
    )
    for key, value in watermark.items():
        definition = definition.replace("window: daily", f"window: daily, {key}: {value}")
    project = Project(folder, definition)
    with (folder / "platform.yaml").open("a") as settings:
        settings.write(
            "connections: {erp: {type: jdbc, url: 'jdbc:postgresql://host:5432/erp', user: reader}}\n"
        )
    schema = pa.schema(
        [("id", pa.int64()), ("_window_start", pa.timestamp("us", "UTC")), ("_unit", pa.string())]
    )
    for each in ROWS:
        start = each["at"].replace(hour=0, minute=0, second=0, microsecond=0)
        project.write(
            {"id": each["id"], "_window_start": start, "_unit": identity(each["unit"])}, schema=schema
        )
    return project


def identity(unit: str) -> str:
    return f'{{"u":"{unit}"}}'


def test_rows_that_carry_window_and_unit_are_read_by_these(tmp_path: Path) -> None:
    project = tagged_project(tmp_path)
    report, of_unit = reader(
        partitions=StaticPartitionsDefinition(["a", "b"]), mapping=MultiToSingleDimensionPartitionMapping()
    )
    day, of_day = reader(partitions=DAYS, mapping=MultiToSingleDimensionPartitionMapping(), name="day")
    project.run(report, partition="b")
    project.run(day, partition="2026-01-02")
    assert ([ids(rows) for rows in of_unit], [ids(rows) for rows in of_day]) == ([[2, 4]], [[3, 4]])


def test_rows_of_a_bucket_are_those_of_its_units(tmp_path: Path) -> None:
    project = tagged_project(tmp_path, dagster_units="{buckets: 2}")
    report, of_bucket = reader(
        partitions=StaticPartitionsDefinition(BUCKETS), mapping=MultiToSingleDimensionPartitionMapping()
    )
    for key in BUCKETS:
        project.run(report, partition=key)
    expected = {key: [] for key in BUCKETS}  # type: dict[str, list[int]]
    for each in ROWS:
        expected[bucket_key(identity(each["unit"]), 2)].append(each["id"])
    assert [ids(rows) for rows in of_bucket] == list(expected.values())


def test_rows_of_a_bucket_are_found_by_the_loaded_units(tmp_path: Path) -> None:
    project = Project(tmp_path, UNITS.replace("window: daily", "window: daily, dagster_units: {buckets: 2}"))
    project.write(*ROWS)
    state = WindowState(units={identity(unit): [] for unit in "ab"})
    project.append_entry(watermark=serialise(state.watermark()), kind="window")
    report, of_bucket = reader(
        partitions=StaticPartitionsDefinition(BUCKETS), mapping=MultiToSingleDimensionPartitionMapping()
    )
    for key in BUCKETS:
        project.run(report, partition=key)
    assert sorted(number for rows in of_bucket for number in ids(rows)) == ALL_IDS
    for rows in of_bucket:
        assert len({bucket_key(identity(each["unit"]), 2) for each in rows.to_pylist()}) <= 1


def test_a_day_begins_at_midnight_of_the_dataflows_zone(tmp_path: Path) -> None:
    project = Project(tmp_path, UNITS.replace("window: daily", "window: daily, timezone: Europe/Berlin"))
    project.write(row(1, "2026-01-01T22:59:59"), row(2, "2026-01-01T23:00"), row(3, "2026-01-02T23:00"))
    days = DailyPartitionsDefinition("2026-01-01", end_date="2026-01-05", timezone="Europe/Berlin")
    report, seen = reader(partitions=days, mapping=MultiToSingleDimensionPartitionMapping())
    project.run(report, partition="2026-01-02")
    assert [ids(rows) for rows in seen] == [[2]]


@pytest.mark.parametrize(
    ("mapping", "metadata"), [(AllPartitionMapping(), {}), (None, {"strandline/partitions": "all"})]
)
def test_the_whole_table_is_read_if_the_input_asks_for_it(
    tmp_path: Path, mapping: PartitionMapping | None, metadata: dict[str, str]
) -> None:
    project = Project(tmp_path, HOURS)
    project.write(*ROWS)
    report, seen = reader(partitions=DAYS, mapping=mapping, metadata=metadata)
    assert project.run(report, partition="2026-01-01").success
    assert [ids(rows) for rows in seen] == [ALL_IDS]


def test_an_asset_without_partitions_gets_the_whole_table(tmp_path: Path) -> None:
    project = Project(tmp_path, HOURS)
    project.write(*ROWS, row(6, "2025-01-01T00:00"))
    report, seen = reader()
    assert project.run(report).success
    assert [ids(rows) for rows in seen] == [[*ALL_IDS, 6]]


def test_other_metadata_of_the_input_is_refused_by_name(tmp_path: Path) -> None:
    project = Project(tmp_path, HOURS)
    project.write(*ROWS)
    report, _ = reader(partitions=DAYS, metadata={"strandline/partitions": "some"})
    assert _message(project, report, partition="2026-01-01") == (
        "input events of asset bronze/events: expected the metadata strandline/partitions: all, or none, found 'some'"
    )


def test_a_partition_over_a_table_without_partitions_gets_all_of_it_and_says_so_once(plain: Project) -> None:
    report, seen = reader(partitions=DAYS)
    result = plain.run(report, partition="2026-01-02")
    assert [ids(rows) for rows in seen] == [ALL_IDS]
    assert [line for line in plain.logged(result.run_id) if "partition" in line] == [
        "input events of asset bronze/events: its table has no partitions, so each partition of this asset gets the whole table"
    ]


def test_a_dataflow_that_shares_its_table_gives_its_own_rows(tmp_path: Path) -> None:
    project = Project(tmp_path, HOURS.replace("target: {", "target: {shared: true, table: bronze/events, "))
    schema = EVENTS.append(pa.field("_dataflow", pa.string()))
    project.write(*({**each, "_dataflow": "events"} for each in ROWS), schema=schema)
    project.write({**row(9, "2026-01-02T03:00"), "_dataflow": "other"}, schema=schema)
    report, seen = reader()
    day, of_day = reader(partitions=DAYS, name="day")
    project.run(report)
    project.run(day, partition="2026-01-02")
    assert ([ids(rows) for rows in seen], [ids(rows) for rows in of_day]) == ([ALL_IDS], [[3, 4]])


# Versions


def test_all_steps_of_a_run_read_one_version_even_if_the_table_changes_in_between(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(*ROWS)
    seen: list[list[int]] = []

    @asset(ins={"events": AssetIn(TABLE)})
    def first(events: pa.Table) -> None:
        seen.append(ids(events))
        project.write(row(6, "2026-01-03T06:00"))

    @asset(ins={"events": AssetIn(TABLE)}, deps=[first])
    def second(events: pa.Table) -> None:
        seen.append(ids(events))

    assert project.run(first, second).success
    assert seen == [ALL_IDS, ALL_IDS]
    report, later = reader()
    project.run(report)
    assert [ids(rows) for rows in later] == [[*ALL_IDS, 6]]


def test_a_run_again_reads_the_newest_version_not_that_of_the_run_before(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(*ROWS)
    report, seen = reader()
    before = project.run(report)
    project.write(row(6, "2026-01-03T06:00"))
    run = project.instance.get_run_by_id(before.run_id)
    assert run is not None
    tags = run.tags
    assert tags[".dagster/strandline_version/bronze/events"] == f'["{before.run_id}", 4]'
    project.run(report, tags=tags)
    assert [ids(rows) for rows in seen] == [ALL_IDS, [*ALL_IDS, 6]]


@pytest.mark.parametrize("is_load", [True, False], ids=["a load", "another writer"])
def test_commits_of_a_load_that_still_runs_are_not_read(tmp_path: Path, is_load: bool) -> None:
    project = Project(tmp_path)
    project.write(*ROWS)
    version = DeltaTable(str(project.table)).version()
    project.append_entry(table="events", table_version=version, watermark='{"path": "a"}')
    tag = CommitProperties(app_transactions=[Transaction("app", 2)]) if is_load else None
    write_deltalake(
        str(project.table),
        pa.Table.from_pylist([row(6, "2026-01-03T06:00")], EVENTS),
        mode="append",
        commit_properties=tag,
    )
    report, seen = reader()
    assert project.run(report).success
    assert [ids(rows) for rows in seen] == [ALL_IDS if is_load else [*ALL_IDS, 6]]


def test_a_value_is_loaded_outside_of_a_run_too(plain: Project) -> None:
    definitions = build_definitions(plain.folder, options=RunOptions(now=NOW))
    frame = definitions.load_asset_value(TABLE, python_type=pd.DataFrame, instance=plain.instance)
    assert _rows_of(frame) == ROWS


def test_one_partition_is_loaded_outside_of_a_run_too(tmp_path: Path) -> None:
    project = Project(tmp_path, HOURS)
    project.write(*ROWS)
    definitions = build_definitions(project.folder, options=RunOptions(now=NOW))
    rows = definitions.load_asset_value(
        TABLE, python_type=pa.Table, instance=project.instance, partition_key="2026-01-02T12:00Z"
    )
    assert ids(rows) == [4]


def test_the_asset_that_the_page_shows_gets_the_rows_of_its_day(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[4] / "docs/reference/dagster.md").read_text()
    code = page.partition("## Your own assets")[2].partition("```python\n")[2].partition("```")[0]
    project = Project(tmp_path, HOURS)
    project.write(*ROWS)
    names: dict[str, Any] = {}
    exec(code.replace('"flights"])', '"events"])'), names)
    project.run(names["flights_per_day"], partition="2026-01-02")
    assert "2 flights" in capsys.readouterr().out
