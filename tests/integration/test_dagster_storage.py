"""Dagster's storage in PostgreSQL beside Strandline, whose own driver for PostgreSQL is another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dagster import DagsterEventType, DagsterInstance, job, op

from scripts.postgres import Postgres

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg2"])
def test_runs_are_recorded_by_an_address_with_and_without_a_driver(
    postgres: Postgres, tmp_path: Path, scheme: str
) -> None:
    name = f"dagster_{scheme.replace('+', '_')}"
    postgres.ask(f"CREATE DATABASE {name}")
    url = scheme + postgres.url(name).removeprefix("postgresql")
    settings = {"storage": {"postgres": {"postgres_url": url}}, "telemetry": {"enabled": False}}
    (tmp_path / "dagster.yaml").write_text(json.dumps(settings))

    @op
    def nothing() -> None: ...

    @job
    def recorded() -> None:
        nothing()

    with DagsterInstance.from_config(str(tmp_path)) as instance:
        run = recorded.execute_in_process(instance=instance)
        events = [
            entry.dagster_event.event_type for entry in instance.all_logs(run.run_id) if entry.dagster_event
        ]
    assert run.success
    assert events[-1] is DagsterEventType.RUN_SUCCESS
