"""Comparisons by Dagster: a job, its schedule, the check ``reconciled``, and the ledger of compared ranges."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckKey, AssetKey, DagsterInstance, RunRequest, build_schedule_context

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import Columns
from tests.support.databases import at, rows_of
from tests.support.reconciled import by_hand, reasons, reconciled

pytestmark = pytest.mark.postgres

UPSERT = {"load": "merge_upsert", "merge_keys": ["id"]}
NOW = datetime(2026, 1, 4, 3, tzinfo=UTC)


def test_the_job_compares_repairs_and_reports_to_the_check(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    rows = rows_of(postgres)
    rows.fill(10)
    flow = rows.flow(
        tmp_path,
        engine,
        target=UPSERT,
        reconcile={"schedule": "0 3 * * 0", "repair": "missing", "rows": True},
    )
    flow.run()
    by_hand(flow)("DELETE FROM {t} WHERE id = 2")
    definitions = build_definitions(
        load_project(flow.feed.folder, environment=flow.feed.environment), flow.feed.platform
    )
    job, schedule = (
        definitions.resolve_job_def("reconcile_flow"),
        definitions.resolve_schedule_def("flow_reconcile"),
    )
    with DagsterInstance.ephemeral() as instance:
        (request,) = (
            schedule.evaluate_tick(
                build_schedule_context(instance, scheduled_execution_time=NOW)
            ).run_requests
            or ()
        )
        assert isinstance(request, RunRequest)
        result = job.execute_in_process(instance=instance)
        assert result.success
        assert reasons(flow) == ["run", "reconcile"]
        assert flow.ids == list(range(1, 11))
        checked = _check(instance, flow)
        assert checked.passed
        assert "1 row missing, repaired by entry 2" in (checked.description or "")
        rows.ask(f"DELETE FROM {rows.name} WHERE id = 3")
        assert job.execute_in_process(instance=instance).success
        checked = _check(instance, flow)
        assert not checked.passed  # only missing rows are repaired
        assert checked.metadata["differences"].value == 1
        operators = definitions.resolve_job_def("strandline_reconcile")
        config: dict[str, Any] = {"dataflow": "flow", "reason": "", "rows": True, "repair": "all"}
        shown = operators.execute_in_process(
            instance=instance, run_config={"ops": {"strandline_reconcile_step": {"config": config}}}
        )
        assert shown.success
        assert reasons(flow) == ["run", "reconcile"]
        config |= {"confirm": True, "reason": "by hand"}
        mended = operators.execute_in_process(
            instance=instance, run_config={"ops": {"strandline_reconcile_step": {"config": config}}}
        )
        assert mended.success
        assert _check(instance, flow).passed
    assert 3 not in flow.ids
    newest = flow.feed.newest
    assert newest is not None
    assert newest.reason == "by hand (1 row extra)"


def _check(instance: DagsterInstance, flow: Columns) -> Any:
    """The last result of the check."""
    key = AssetCheckKey(AssetKey(["bronze", flow.feed.name]), "reconciled")
    (record,) = instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    event = record.event.dagster_event if record.event else None
    assert event is not None
    return event.event_specific_data


def test_the_ledger_lists_the_ranges_that_were_compared(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine
) -> None:
    rows = rows_of(postgres)
    rows.fill(10)
    flow = rows.flow(tmp_path, engine, target=UPSERT)
    flow.run()
    by_hand(flow)("DELETE FROM {t} WHERE id = 2")
    reconciled(flow, "--start", "2026-01-01T00:00:05", "--end", "2026-01-01T00:00:08")
    reconciled(flow, code=1)
    whole, part = flow.feed.cli("ledger", "flow").json[0]["compared"]
    assert (whole["lower"], whole["missing"], whole["equal"]) == (None, 1, False)
    assert whole["up_to"] == {"at": {"__datetime__": at(10).isoformat()}}
    assert (part["lower"], part["equal"]) == ({"at": {"__datetime__": at(5).isoformat()}}, True)
    text = flow.feed.text("ledger", "flow")
    assert "differs from the source up to at = 2026-01-01 00:00:10+00:00" in text
    assert "verified from at = 2026-01-01 00:00:05+00:00 up to at < 2026-01-01 00:00:08+00:00" in text
    flow.feed.decide("reset")
    assert flow.feed.cli("ledger", "flow").json[0]["compared"] == []
