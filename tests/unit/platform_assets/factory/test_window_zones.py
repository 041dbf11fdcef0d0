"""An asset whose windows have another zone than the table that it reads is named when the location loads."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from dagster import (
    AllPartitionMapping,
    AssetIn,
    AssetKey,
    AssetsDefinition,
    DailyPartitionsDefinition,
    Definitions,
    PartitionMapping,
    asset,
)

from partitions.errors import ConfigurationError
from platform_assets.build import build_definitions
from platform_assets.dagster_internals import VALIDATES

DAYS = """
source: {type: files, path: './h/{start:%Y-%m-%d}', format: ndjson, schema: 'at timestamp'}
watermark:
  type: window
  definition: [{name: day, type: datetime, range: {from: "2026-11-26", to: "2026-11-28"}}]
  window: daily
target: {load: merge_overwrite, replace_by_watermark: true}
"""
TABLE = AssetKey(["bronze", "orders"])
MESSAGE = (
    "asset report: expected time windows in the zone UTC, as bronze/orders has them, found Europe/Berlin: Dagster maps"
    ' windows of one zone only, so its runs fail. Give its partitions timezone="UTC"; or read the whole table by'
    " AssetIn(partition_mapping=AllPartitionMapping())"
)


def report_in(zone: str, mapping: PartitionMapping | None = None) -> AssetsDefinition:
    days = DailyPartitionsDefinition("2026-11-26", end_date="2026-11-28", timezone=zone)

    @asset(ins={"orders": AssetIn(TABLE, partition_mapping=mapping)}, partitions_def=days)
    def report(orders: object) -> None: ...

    return report


def load(folder: Path, report: AssetsDefinition) -> None:
    (folder / "dataflows").mkdir()
    (folder / "dataflows/orders.yaml").write_text(DAYS)
    location = Definitions.merge(build_definitions(folder), Definitions(assets=[report]))
    location.resolve_job_def("load_orders")
    location.resolve_job_def("strandline_replay")


def test_a_location_that_loads_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load(tmp_path, report_in("Europe/Berlin"))
    assert caplog.messages == [MESSAGE]


def test_the_check_of_definitions_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VALIDATES, "1")
    with pytest.raises(Exception, match="Failed to resolve asset job") as raised:
        load(tmp_path, report_in("Europe/Berlin"))
    assert isinstance(raised.value.__cause__, ConfigurationError)
    assert raised.value.__cause__.message == MESSAGE


@pytest.mark.parametrize(("zone", "mapping"), [("UTC", None), ("Europe/Berlin", AllPartitionMapping())])
def test_windows_of_one_zone_or_the_whole_table_are_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, zone: str, mapping: PartitionMapping | None
) -> None:
    with caplog.at_level(logging.WARNING):
        load(tmp_path, report_in(zone, mapping))
    assert caplog.messages == []
