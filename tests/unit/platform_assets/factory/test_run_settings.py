"""What a dataflow's file says of its runs reaches Dagster's own classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AssetsDefinition,
    AutomationCondition,
    Backoff,
    DagsterInstance,
    Definitions,
    Jitter,
    RetryPolicy,
)

from partitions.errors import StrandlineError
from partitions.fingerprint import fingerprint
from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.spark.engine import SparkEngine

FLOW = "source: {type: files, path: ./landing, format: ndjson}\nwatermark: {type: path}\ntarget: {load: append}\n"
TABLE = AssetKey(["bronze", "orders"])


def definitions(folder: Path, more: str = "") -> Definitions:
    (folder / "dataflows").mkdir()
    (folder / "dataflows/orders.yaml").write_text(FLOW + more)
    project = load_project(folder)
    assert project.errors == []
    return build_definitions(project)


def loads(of: Definitions) -> AssetsDefinition:
    return of.resolve_asset_graph().assets_def_for_key(TABLE)


def test_tags_of_runs_are_on_the_jobs_that_load(tmp_path: Path) -> None:
    more = "run_tags:\n  team: shop\n  dagster/priority: '3'\n  dagster-k8s/config: {job_spec_config: {ttl: 60}}\n"
    of = definitions(tmp_path, more)
    for name in ("load_orders", "late_orders"):
        tags = of.resolve_job_def(name).tags
        assert {name: tags[name] for name in ("team", "dagster/priority", "dagster-k8s/config")} == {
            "team": "shop",
            "dagster/priority": "3",
            "dagster-k8s/config": '{"job_spec_config": {"ttl": 60}}',
        }
        assert tags["strandline/dataflow"] == "orders"


def test_tags_of_steps_are_on_the_step_that_loads(tmp_path: Path) -> None:
    of = definitions(
        tmp_path, "op_tags:\n  dagster-k8s/config: {container_config: {resources: {limits: {memory: 4Gi}}}}\n"
    )
    tags: Any = loads(of).op.tags["dagster-k8s/config"]
    assert "4Gi" in str(tags)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("", None),
        ("retry: {max: 2}\n", RetryPolicy(max_retries=2)),
        (
            "retry: {max: 3, delay: PT30S, backoff: exponential, jitter: full}\n",
            RetryPolicy(max_retries=3, delay=30, backoff=Backoff.EXPONENTIAL, jitter=Jitter.FULL),
        ),
    ],
)
def test_a_failed_load_is_tried_again_as_the_file_says(
    tmp_path: Path, text: str, policy: RetryPolicy | None
) -> None:
    node: Any = loads(definitions(tmp_path, text)).op
    assert node.retry_policy == policy


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("", None),
        ("automation_condition: eager\n", AutomationCondition.eager()),
        ("automation_condition: on_missing\n", AutomationCondition.on_missing()),
        (
            "automation_condition: {on_cron: '0 6 * * *', timezone: Europe/Berlin}\n",
            AutomationCondition.on_cron("0 6 * * *", "Europe/Berlin"),
        ),
    ],
)
def test_dagster_s_automation_materialises_the_table_as_the_file_says(
    tmp_path: Path, text: str, condition: AutomationCondition[Any] | None
) -> None:
    specs = {spec.key: spec for spec in loads(definitions(tmp_path, text)).specs}
    assert specs[TABLE].automation_condition == condition
    assert [spec.automation_condition for key, spec in specs.items() if key != TABLE] == [None]


WINDOWS = """
watermark:
  type: window
  definition: [{name: day, type: datetime, range: {from: "2026-11-26", to: "2026-11-28"}}]
  window: daily
target: {load: merge_overwrite, replace_by_watermark: true}
"""


def test_a_job_without_a_partition_runs_although_what_it_reads_has_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster would ask for a partition of each asset in the job: the job has the dataflow's own alone."""

    def reached(engine: SparkEngine) -> None:
        raise StrandlineError("the run came as far as Spark")

    monkeypatch.setattr(SparkEngine, "session", reached)
    (tmp_path / "dataflows").mkdir()
    hours = "source: {type: files, path: './h/{start:%Y-%m-%d}', format: ndjson, schema: 'at timestamp'}"
    days = "layer: silver\nsource: {type: table, table: bronze/hours, window_column: at}"
    for name, source in (("hours", hours), ("days", days)):
        (tmp_path / f"dataflows/{name}.yaml").write_text(source + WINDOWS)
    project = load_project(tmp_path)
    assert project.errors == []
    job = build_definitions(project).resolve_job_def("load_days")
    with DagsterInstance.ephemeral() as instance:
        run = job.execute_in_process(instance=instance, raise_on_error=False)
    failures = [str(event.event_specific_data) for event in run.all_events if event.is_step_failure]
    assert len(failures) == 1
    assert "the run came as far as Spark" in failures[0]


def test_none_of_it_changes_what_counts_as_loaded(tmp_path: Path) -> None:
    """A changed definition stops its dataflow until somebody accepts it; these keys say nothing of rows."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    more = "run_tags: {a: b}\nop_tags: {a: b}\nretry: {max: 2}\nautomation_condition: eager\n"
    definitions(tmp_path / "a")
    definitions(tmp_path / "b", more)
    one, other = (load_project(tmp_path / folder).dataflows["orders"] for folder in ("a", "b"))
    assert fingerprint(one) == fingerprint(other)
