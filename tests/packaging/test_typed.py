"""The wheel is typed: mypy checks a user's code that has every public name, as strictly as it can."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from platform_assets import public
from tests.support.installed import Installed

SAMPLE = '''\
"""A user's own location."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import polars as pl
import strandline
from dagster import AssetSpec, Definitions, EnvVar, asset
from dagster_aws.s3 import S3Resource
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession
from strandline import (
    ColumnKeys,
    IncrementalAsset,
    IncrementalAssetKeys,
    Request,
    SparkResource,
    StrandlineAsset,
    StrandlineProject,
    StrandlineTranslator,
    TargetKeys,
    WatermarkResource,
    WindowKeys,
    build_definitions,
    incremental_asset,
    load_project,
    packages,
    spark_conf,
)

NEEDED: str = ",".join(packages("loads"))
MADE_WITH: str = strandline.__version__
COMPONENT: type[StrandlineProject] = StrandlineProject


BY_TIME: ColumnKeys = {"type": "column", "columns": ["at"], "settle": "PT5M"}
BY_DAY: WindowKeys = {
    "type": "window",
    "definition": [{"name": "day", "type": "datetime", "range": {"from": date(2026, 1, 1), "to": "-"}}],
    "window": "daily",
}
KEYED: TargetKeys = {"load": "merge_upsert", "merge_keys": ["id"]}
SHARED: IncrementalAssetKeys = {"watermark": BY_DAY, "owners": ["team:shop"], "window_column": "day"}


@incremental_asset(watermark=BY_TIME, target=KEYED, schema={"id": "long", "at": "timestamp"})
def orders(request: Request) -> Iterator[dict[str, object]]:
    yield {"id": 1, "at": request.upper}


@incremental_asset(**SHARED)
def frames(request: Request) -> Iterator[pl.DataFrame | pl.LazyFrame]:
    yield pl.DataFrame({"day": [request.time_range[0].date()]})


@incremental_asset(**SHARED)
def visits(request: Request) -> list[dict[str, object]]:
    return [{"day": request.time_range[0].date()}]


CALLED: list[dict[str, object]] = [*orders(orders.request(lower=1)), *visits(visits.request())]
TYPED: IncrementalAsset[list[dict[str, object]]] = visits


class ByTeam(StrandlineTranslator):
    def get_asset_spec(self, data: StrandlineAsset) -> AssetSpec:
        return super().get_asset_spec(data).replace_attributes(group_name=data.dataflow.name)


@asset
def report(strandline_spark: SparkResource, strandline_watermarks: WatermarkResource) -> None:
    session: SparkSession = strandline_spark.session()
    before: dict[str, Any] | None = strandline_watermarks.get_watermark("report")
    first: Mapping[str, object] = before or {"day": date(2026, 1, 1)}
    strandline_watermarks.save_watermark("report", {**first, "rows": session.range(3).count()})


def session() -> SparkSession:
    return SparkSession.builder.getOrCreate()


minio = S3Resource(endpoint_url=EnvVar("MINIO"), aws_secret_access_key=EnvVar("MINIO_SECRET"))
own_spark = LazyPySparkResource(spark_config={**spark_conf("loads"), "spark.master": "local[2]"})
north = build_definitions(
    load_project(),
    name="north",
    key_prefix=["shop", "north"],
    translator=ByTeam(),
    connections={"minio": minio, "erp": {"url": EnvVar("ERP_URL"), "user": "reader"}},
    spark=own_spark,
)
south = build_definitions("loads", name="south", spark=session)
defs = Definitions.merge(
    north,
    south,
    Definitions(
        assets=[report],
        resources={
            "strandline_spark": SparkResource(project=EnvVar("LOADS")),
            "strandline_watermarks": WatermarkResource(project="loads", env="prod"),
        },
    ),
)
'''

WRONG = """\
from strandline import Request, SparkResource, WatermarkResource, build_definitions, incremental_asset

SparkResource(project=3)
WatermarkResource(project="loads").save_watermark("report", "2026-01-01")
SparkResource(project="loads").sessions()
build_definitions("loads", spark="local[2]")
incremental_asset(watermark={"type": "column", "columns": ["at"]}, watermrk={})

@incremental_asset(watermark={"type": "column", "columns": ["at"]})
def forgotten(request: Request) -> None:
    [{"at": request.upper}]

@incremental_asset(watermark={"type": "column", "columns": ["at"]})
async def awaited_by_nobody(request: Request) -> list[dict[str, object]]:
    return [{"at": request.upper}]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    package = Installed(tmp_path_factory.mktemp("typed"))
    package.write("location.py", SAMPLE)
    package.write("wrong.py", WRONG)
    return package


def check(installed: Installed, file: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed.bin / "python")]
    return subprocess.run(
        [*command, "--cache-dir", str(installed.folder / "cache"), file],
        cwd=installed.folder,
        env=installed.environment | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_sample_has_every_public_name_and_imports_nothing_else() -> None:
    names = {name for name in public.__all__ if re.search(rf"\b{name}\b", SAMPLE)}
    assert names == set(public.__all__)
    assert re.findall(r"strandline\.(?!__version__)\w+", SAMPLE.replace("from strandline import", "")) == []


@pytest.mark.full
def test_mypy_accepts_a_location_that_uses_every_public_name(installed: Installed) -> None:
    checked = check(installed, "location.py")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.full
def test_mypy_finds_a_call_with_a_wrong_type_in_each_line(installed: Installed) -> None:
    checked = check(installed, "wrong.py")
    assert re.findall(r"^wrong\.py:(\d+): error", checked.stdout, re.M) == [
        "3",
        "4",
        "5",
        "6",
        "7",
        "9",
        "13",
    ]
