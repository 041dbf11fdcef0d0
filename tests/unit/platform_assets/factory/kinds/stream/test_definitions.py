"""What Dagster looks at for new input of a stream, and what is upstream of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import AssetKey, DagsterInstance
from deltalake import write_deltalake

from partitions.dataflow import Dataflow
from partitions.lineage import Lineage
from partitions.sentinels import serialise
from partitions.stream.state import StreamState
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.stream.definitions import StreamDefinitions
from resources.connections.places import Place
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_options import RunOptions
from resources.notes.looks import note_look
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.sources.files.pinned import PinnedSchema
from tests.support.feed import NOW
from tests.support.names import assets_of
from tests.support.ticks import Ticker, flow_of, requested_run

_FILES = {"name": "files", "type": "files", "path": "landing", "format": "ndjson", "schema": "id long, ts timestamp"}  # fmt: skip
_TABLE = {"name": "rows", "type": "table", "table": "bronze/rows"}
_WATERMARK = {"type": "stream", "engine": "structured_streaming", "event_time": "ts", "timeout": "PT5M"}


def _stream(*sources: dict[str, Any], **parts: Any) -> Dataflow:
    union = [{"type": "union"}]
    return flow_of(**{"source": list(sources), "watermark": _WATERMARK, "operators": union} | parts)


def _on(flow: Dataflow, platform: Platform, landing: Path) -> Platform:
    """The platform with the places of each source."""

    def place(reading: Dataflow) -> Place:
        table = reading.source.lake_table
        return platform.lake.child(table) if table is not None else Place(str(landing))

    return replace(platform, lineage=Lineage([flow]), source_of=place)


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as made:
        yield made


def _append(ticker: Ticker, *ids: int) -> None:
    write_deltalake(f"{ticker.platform.lake.local}/bronze/rows", pa.table({"id": list(ids)}), mode="append")


def test_new_input_of_each_source_of_a_list_wakes_a_run(tmp_path: Path, instance: DagsterInstance) -> None:
    flow, given = _stream(_FILES, _TABLE), list[Platform]()

    def sensor(flow: Dataflow, platform: Platform, names: DagsterDataflowNames, now: Any) -> Any:
        given.append(_on(flow, platform, tmp_path / "landing"))
        return (
            StreamDefinitions()
            .triggers(flow, given[0], names, RunOptions(), dataflow_job(flow, names))
            .sensors[0]
        )

    ticker = Ticker(tmp_path, instance, flow, sensor)
    platform = given[0]

    def loaded() -> None:
        """What a run that has read all there is leaves."""
        plan = platform.kind(flow).planning.plan(platform.log.newest(flow.name), NOW)
        entry = ticker.commit(kind="stream", watermark=serialise(StreamState().watermark()))
        note_look(platform.log, Outcome(flow.name, None, {}, 0, plan=plan, newest=entry))

    _append(ticker, 1)
    assert requested_run(ticker.tick())
    loaded()
    assert ticker.tick() == "no new input"
    ticker.put("1.ndjson")
    assert requested_run(ticker.tick())
    loaded()
    assert ticker.tick() == "no new input"
    _append(ticker, 2)
    assert requested_run(ticker.tick())


@pytest.mark.parametrize(
    ("sources", "name"),
    [((_FILES, _TABLE), "rows"), ((_TABLE | {"name": "more", "table": "bronze/more"}, _TABLE), "upstream")],
)
def test_the_sensor_of_upstream_tables_looks_if_each_source_is_one(
    sources: Sequence[dict[str, Any]], name: str, tmp_path: Path, instance: DagsterInstance
) -> None:
    flow = _stream(*sources)
    ticker = Ticker(
        tmp_path,
        instance,
        flow,
        lambda flow, platform, names, now: (
            StreamDefinitions()
            .triggers(flow, _on(flow, platform, tmp_path), names, RunOptions(), dataflow_job(flow, names))
            .sensors[0]
        ),
    )
    assert name in ticker.sensor.definition().name


def test_each_lake_table_of_a_list_is_an_upstream_asset(tmp_path: Path, instance: DagsterInstance) -> None:
    flow = _stream(_FILES, _TABLE)
    ticker = Ticker(tmp_path, instance, flow, lambda flow, platform, names, now: None)  # type: ignore[arg-type,return-value]
    assets = assets_of(flow, _on(flow, ticker.platform, tmp_path))
    assert {dep.asset_key for spec in assets.specs for dep in spec.deps} == {AssetKey(["bronze", "rows"])}


def test_a_querys_columns_are_not_its_sources(tmp_path: Path, instance: DagsterInstance) -> None:
    counted = {
        "type": "aggregate",
        "window": {"type": "tumble", "size": "PT5M"},
        "aggregates": {"n": "count(*)"},
    }
    table = {"type": "table", "table": "bronze/rows"}
    flow = flow_of(source=table, watermark=_WATERMARK, operators=[counted])
    ticker = Ticker(tmp_path, instance, flow, lambda flow, platform, names, now: None)  # type: ignore[arg-type,return-value]
    platform = _on(flow, ticker.platform, tmp_path)
    _append(ticker, 1)
    columns = (
        '{"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": true, "metadata": {}}]}'
    )
    pinned = platform.log.put_schema(flow.name, PinnedSchema(columns, ()).to_text())
    ticker.commit(kind="stream", watermark=serialise(StreamState().watermark()), pinned=pinned)
    assert platform.plan(flow, NOW).warnings == ()
