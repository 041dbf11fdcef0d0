"""Steps that read other tables of the lake by name: each slice at one version, which a finished slice keeps."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from dagster import DagsterInstance, RunRequest, SensorResult, build_sensor_context
from deltalake import DeltaTable, write_deltalake

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import crash
from tests.support.feed import NAME, NOW, Feed, dies_after

JOINED = "SELECT id, coalesce(maker, 'unknown') AS maker FROM input LEFT JOIN planes USING (id)"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture
def chain(make_feed: MakeFeed) -> Feed:
    """Files whose rows are joined with a table of planes."""
    feed = make_feed(sql=JOINED, inputs={"planes": "silver/planes"})
    planes(feed, {1: "Airbus"})
    return feed


def planes(feed: Feed, makers: dict[int, str]) -> None:
    """The table of planes becomes another version."""
    rows = pa.table({"id": list(makers), "maker": list(makers.values())})
    write_deltalake(str(feed.folder / "lake/silver/planes"), rows, mode="overwrite", schema_mode="overwrite")


READERS: dict[str, dict[str, Any]] = {
    "column": {"watermark": {"type": "column", "columns": ["id"]}},
    "windows": {
        "source": {"window_column": "at"},
        "watermark": {
            "type": "window",
            "window": "daily",
            "definition": [{"name": "day", "type": "datetime", "range": {"from": "2026-05-01", "to": "-"}}],
        },
    },
    "stream": {
        "watermark": {"type": "stream", "event_time": "at", "timeout": "PT5M", "order_by": ["id"]},
    },
    "units": {
        "source": {"window_column": "at", "unit_columns": {"id": "id"}, "table": "raw/other"},
        "watermark": {
            "type": "window",
            "definition": [
                {"name": "day", "type": "datetime", "range": {"from": "2026-05-01", "to": "-"}},
            ],
            "window": "daily",
            "secondary_input": [{"table": f"bronze/{NAME}", "fields": ["id"]}],
        },
    },
    "input": {
        "source": {"type": "files", "path": "./landing", "format": "ndjson", "schema": "id long"},
        "watermark": {"type": "path"},
        "inputs": {"above": f"bronze/{NAME}"},
        "sql": "SELECT id FROM input LEFT JOIN above USING (id)",
    },
}
"""Dataflows that read the table of another one: as their source, for their units, or beside their rows."""


@pytest.mark.parametrize("reader", READERS)
def test_a_plan_before_the_first_load_upstream_says_so_and_does_not_fail(feed: Feed, reader: str) -> None:
    definition = {
        "source": {"type": "table", "table": f"bronze/{NAME}"},
        "target": {"load": "append"},
        "layer": "silver",
    }
    changes = READERS[reader]
    source = changes.get("source", {})
    below = definition | changes | {"source": source if "type" in source else definition["source"] | source}
    (feed.folder / "dataflows/below.yaml").write_text(yaml.safe_dump(below))
    feed.put("1.ndjson", 1)
    waits = (
        f"no table to read yet: {NAME} has loaded nothing; `strandline run --all` runs each dataflow after"
    )
    for names in (["below"], []):
        answer = feed.cli("plan", *names)
        assert answer.code == 0, answer.out + answer.err
        plan = next(plan for plan in answer.json if plan["dataflow"] == "below")
        told = [plan["why"], *plan["warnings"]]
        assert sum(text.startswith(waits) for text in told) == 1, told
        assert plan["due"] is (reader in ("input", "windows"))
    assert feed.cli("run", "below").code == 1


def test_a_query_reads_its_inputs_by_name_and_the_entry_says_at_which_version(chain: Feed) -> None:
    chain.put("1.ndjson", 1, 2)
    chain.load()
    planes(chain, {3: "Boeing"})
    chain.put("2.ndjson", 3)
    chain.load()
    assert chain.rows("id", "maker") == [(1, "Airbus"), (2, "unknown"), (3, "Boeing")]
    assert [entry.inputs for entry in chain.entries] == [{"planes": 0}, {"planes": 1}]
    assert chain.cli("state", "history", NAME).json[0]["inputs"] == {"planes": 1}


def test_a_function_of_the_project_s_folder_gets_its_inputs_by_name(chain: Feed) -> None:
    (chain.folder / "steps_of_chain.py").write_text(
        "def joined(rows, batch):\n    return rows.join(batch.inputs['planes'], 'id')\n"
    )
    chain.define(sql=None, transform="steps_of_chain:joined")
    chain.put("1.ndjson", 1, 2)
    chain.load()
    assert chain.rows("id", "maker") == [(1, "Airbus")]


def test_a_slice_that_is_finished_after_a_crash_reads_the_version_that_it_began_with(chain: Feed) -> None:
    chain.put("1.ndjson", 1)
    crash(chain, Step.INTENT_PUT)
    planes(chain, {1: "Boeing", 2: "Boeing"})
    chain.put("2.ndjson", 2)
    assert chain.load().status == "recovered"
    assert chain.rows("id", "maker") == [(1, "Airbus"), (2, "Boeing")]
    assert [entry.inputs for entry in chain.entries] == [{"planes": 0}, {"planes": 1}]


@pytest.mark.full
def test_a_slice_whose_version_of_an_input_is_gone_is_given_up_and_planned_again(chain: Feed) -> None:
    chain.put("1.ndjson", 1)
    with pytest.raises(KeyboardInterrupt):
        chain.run(dies_after(Step.INTENT_PUT))
    planes(chain, {1: "Boeing"})
    for file in set((chain.folder / "lake/silver/planes").glob("*.parquet")):
        if file.name not in {Path(uri).name for uri in DeltaTable(str(file.parent)).file_uris()}:
            file.unlink()
    outcome = chain.load()
    assert chain.rows("id", "maker") == [(1, "Boeing")]
    assert [(entry.why, entry.inputs) for entry in chain.entries] == [
        ("abandon", None),
        ("run", {"planes": 1}),
    ]
    assert any("inputs.planes: version 0 cannot be read" in warning for warning in outcome.warnings)


def test_an_input_that_is_not_there_is_named_before_anything_is_begun(chain: Feed) -> None:
    shutil.rmtree(chain.folder / "lake/silver/planes")
    chain.put("1.ndjson", 1)
    error = chain.run().error
    assert error is not None
    assert error.code == "source_missing"
    assert error.message.startswith("inputs.planes: table ")
    assert (chain.entries, chain.open_intent) == ([], None)
    planes(chain, {})
    chain.load()
    assert chain.rows("id", "maker") == [(1, "unknown")]


def test_the_makers_of_inputs_run_first_and_if_one_fails_the_reader_is_skipped(chain: Feed) -> None:
    shutil.rmtree(chain.folder / "lake/silver/planes")
    define(
        chain, "planes", "silver", {"type": "files", "path": "./planes", "format": "ndjson"}, {"type": "path"}
    )
    chain.put("1.ndjson", 1)
    put_plane(chain, "1.ndjson", '{"id": 1, "maker": "Airbus"}')
    assert [(one["dataflow"], one["status"]) for one in chain.cli("run", "--all").json] == [
        ("planes", "committed"),
        (NAME, "committed"),
    ]
    assert chain.rows("id", "maker") == [(1, "Airbus")]
    put_plane(chain, "2.ndjson", "no json")
    assert [(one["dataflow"], one["status"]) for one in chain.cli("run", "--all").json] == [
        ("planes", "failed"),
        (NAME, "skipped"),
    ]


@pytest.mark.full
def test_a_file_lands_and_what_reads_its_table_is_loaded_by_the_sensors_alone(chain: Feed) -> None:
    """Daily windows read the files' table once a file is loaded, and not if a run of it has found nothing."""
    chain.define(
        source={"schema": "id long, at timestamp"}, sql="SELECT * FROM input LEFT JOIN planes USING (id)"
    )
    days = {"name": "day", "type": "datetime", "range": {"from": "2026-05-30", "to": "2026-06-01"}}
    window = {"type": "window", "definition": [days], "window": "daily", "grace": "P9999D"}
    of_flow = {"type": "table", "table": f"bronze/{NAME}", "window_column": "at"}
    replaced = {"load": "merge_overwrite", "replace_by_watermark": True}
    define(chain, "daily", "silver", of_flow, window, target=replaced)
    column = {"type": "column", "columns": ["id"]}
    define(chain, "copied", "gold", {"type": "table", "table": "silver/daily"}, column)
    with DagsterInstance.ephemeral() as instance:
        ticks = Ticks(chain, instance)
        put_row(chain, "1.ndjson", 1, "2026-05-30")
        ticks.run(f"load_{NAME}")
        assert ticks.all() == ["load_daily", "load_copied"]
        assert ticks.all() == []
        ticks.run(f"load_{NAME}")  # finds nothing, and materialises all the same
        assert ticks.all() == []
        put_row(chain, "2.ndjson", 2, "2026-05-30")
        ticks.run(f"load_{NAME}")
        assert ticks.all() == ["load_daily", "load_copied"]
        assert ticks.all() == []
    copied = DeltaTable(str(chain.folder / "lake/gold/copied")).to_pyarrow_table().column("id").to_pylist()
    assert sorted(copied) == [1, 2]


class Ticks:
    """The sensors of a project, whose requests are run at once; cursors are kept between ticks."""

    def __init__(self, feed: Feed, instance: DagsterInstance) -> None:
        project = load_project(feed.folder)
        self.definitions = build_definitions(project, feed.platform, RunOptions(now=NOW))
        self.instance, self.cursors = instance, dict[str, str | None]()

    def all(self) -> list[str]:
        """Tick the sensors of upstream tables, in order; returns the jobs that ran."""
        return [job for name in ("daily", "copied") for job in self.tick(f"{name}_upstream")]

    def tick(self, sensor: str) -> list[str]:
        """Tick a sensor, and run what it asks for; returns the jobs."""
        found = self.definitions.resolve_sensor_def(sensor)(
            build_sensor_context(self.instance, cursor=self.cursors.get(sensor))
        )
        assert isinstance(found, SensorResult)
        self.cursors[sensor] = found.cursor
        for keys in found.dynamic_partitions_requests or ():
            self.instance.add_dynamic_partitions(keys.partitions_def_name, list(keys.partition_keys))
        return [
            self.run(f"load_{sensor.removesuffix('_upstream')}", each) for each in found.run_requests or ()
        ]

    def run(self, job: str, request: RunRequest | None = None) -> str:
        """Run a job."""
        result = self.definitions.resolve_job_def(job).execute_in_process(
            instance=self.instance,
            run_config=QUIET,
            tags=request.tags if request else None,
            partition_key=request.partition_key if request else None,
        )
        assert result.success
        return job


def define(
    feed: Feed, name: str, layer: str, source: dict[str, Any], watermark: dict[str, Any], **more: Any
) -> None:
    """Another dataflow of the project."""
    definition = {"layer": layer, "source": source, "watermark": watermark, **more}
    (feed.folder / f"dataflows/{name}.yaml").write_text(yaml.safe_dump(definition))


def put_plane(feed: Feed, name: str, text: str) -> None:
    """A file of planes."""
    (feed.folder / "planes").mkdir(exist_ok=True)
    (feed.folder / "planes" / name).write_text(f"{text}\n")


def put_row(feed: Feed, name: str, number: int, day: str) -> None:
    """A file with a row of a day."""
    feed.put(name, {"id": number, "at": f"{day}T06:00:00Z"})
