"""Load a code location of Dagster alone with the parts of a project; print the CPU-seconds beyond `import dagster`.

Half of its tables have the parts of a dataflow of files, half those of windows and units. Nothing of Strandline is
imported. Each part is made by Dagster's own decorators and functions.
"""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSpec,
    AssetKey,
    AssetOut,
    AssetSelection,
    BackfillPolicy,
    DailyPartitionsDefinition,
    DefaultSensorStatus,
    Definitions,
    MultiPartitionsDefinition,
    SensorDefinition,
    SkipReason,
    StaticPartitionsDefinition,
    asset_check,
    define_asset_job,
    in_process_executor,
    io_manager,
    multi_asset,
)
from dagster._core.remote_representation.external_data import RepositorySnap

OF_RUNS = ("watermark_monotone", "rows_accounted", "up_to_date")
OF_FILES = ("names_sort_by_time",)
OF_TABLES = {"files": ("quarantined_files", "late_files"), "windows": ("ledger",)}
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney")
UNITS = [f"u{unit}" for unit in range(50)]
GROUP = 50


def table(number: int) -> tuple[Any, list[Any], Any]:
    """Return the assets of a table and its watermark, its checks and its job."""
    kind, name = "windows" if number % 2 else "files", f"flow_{number}"
    keys = AssetKey(["bronze", name]), AssetKey(["watermark", name])
    partitions = None
    if kind == "windows":
        days = DailyPartitionsDefinition("2017-01-02", timezone=ZONES[number % len(ZONES)])
        partitions = MultiPartitionsDefinition({"window": days, "unit": StaticPartitionsDefinition(UNITS)})

    @multi_asset(
        name=name,
        outs={
            part: AssetOut(
                key=key,
                is_required=False,
                group_name=key.path[0],
                io_manager_key="tables",
                metadata={"dagster/table_name": name, "dagster/uri": f"/lake/{name}"},
            )
            for part, key in zip(("table", "watermark"), keys, strict=True)
        },
        check_specs=[
            AssetCheckSpec(check, asset=keys[0])
            for check in (*OF_RUNS, *(OF_FILES if kind == "files" else ()))
        ],
        can_subset=True,
        pool=name,
        partitions_def=partitions,
        backfill_policy=BackfillPolicy.single_run() if partitions else None,
    )
    def load() -> Iterator[Any]:
        yield from ()

    checks = [check_of(keys[0], check) for check in OF_TABLES[kind]]
    job = define_asset_job(
        f"load_{name}",
        AssetSelection.assets(*keys),
        tags={"dataflow": name},
        executor_def=in_process_executor,
    )
    return load, checks, job


def check_of(table_key: AssetKey, name: str) -> Any:
    """Return a check of a table as a step of its own."""

    @asset_check(asset=table_key, name=name)
    def evaluate() -> AssetCheckResult:
        return AssetCheckResult(passed=True)

    return evaluate


def late_job(number: int) -> Any:
    """Return the job of the second check on a table of files."""
    selection = AssetSelection.checks(AssetCheckKey(AssetKey(["bronze", f"flow_{number}"]), "late_files"))
    return define_asset_job(f"late_flow_{number}", selection, executor_def=in_process_executor)


def sensor(name: str, jobs: list[Any]) -> SensorDefinition:
    """Return a sensor of several jobs."""
    return SensorDefinition(
        name=name,
        jobs=jobs,
        default_status=DefaultSensorStatus.RUNNING,
        evaluation_fn=lambda context: SkipReason("nothing new"),
    )


def location(count: int) -> Definitions:
    """Return the definitions of some tables."""
    tables = [table(number) for number in range(count)]
    jobs = {
        "files": [job for _, _, job in tables[::2]],
        "late": [late_job(number) for number in range(0, count, 2)],
        "windows": [job for _, _, job in tables[1::2]],
    }
    return Definitions(
        assets=[assets for assets, _, _ in tables],
        asset_checks=[check for _, checks, _ in tables for check in checks],
        jobs=[job for of_kind in jobs.values() for job in of_kind],
        sensors=[
            sensor(f"{kind}_{start}", of_kind[start : start + GROUP])
            for kind, of_kind in jobs.items()
            for start in range(0, len(of_kind), GROUP)
        ],
        resources={"tables": io_manager(lambda _: None)},  # type: ignore[arg-type]
        executor=in_process_executor,
    )


before = time.process_time()
repository = location(int(sys.argv[1])).get_repository_def()
without_jobs = time.process_time() - before
repository.get_all_jobs()
seconds = time.process_time() - before
RepositorySnap.from_def(repository, defer_snapshots=True)
snapshot = time.process_time() - before - seconds
print(json.dumps({"seconds": seconds, "without_jobs": without_jobs, "snapshot": snapshot}))
