"""Two environments of one project load the same source, each into its own state, lake and Dagster."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from platform_assets.build import build_definitions
from resources.spark.connect_server import free_port
from resources.spark.engine import SparkEngine
from tests.support.environment import clean_environment
from tests.support.gates import until
from tests.support.projects import FILES, project_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two environments, with a file that waits."""
    folder = project_of(tmp_path, flow=FILES)
    (folder / "platform.yaml").write_text("format: delta\n")
    (folder / "platform.dev.yaml").touch()
    (folder / "platform.prod.yaml").touch()
    (folder / "landing/1.ndjson").write_text('{"id": 1}\n{"id": 2}\n')
    return folder


def variables(engine: SparkEngine, **own: str) -> dict[str, str]:
    return clean_environment() | {"STRANDLINE_SPARK_REMOTE": str(engine.remote)} | own


def count(project: Path, env: str) -> int | None:
    table = project / f".strandline/{env}/lake/bronze/flow"
    has_rows = (table / "_delta_log/00000000000000000000.json").exists()
    return DeltaTable(table).to_pyarrow_table().num_rows if has_rows else None


@pytest.mark.full
def test_dev_and_a_run_of_another_environment_share_nothing(project: Path, engine: SparkEngine) -> None:
    strandline = [sys.executable, "-m", "platform_assets.cli", "--project", str(project)]
    in_dev = [*strandline, "dev", "--env", "dev", "--port", str(free_port())]
    with (
        (project / "dev.log").open("wb") as log,
        subprocess.Popen(
            in_dev, stdout=log, stderr=log, env=variables(engine), start_new_session=True
        ) as dev,
    ):
        try:
            until(lambda: count(project, "dev") is not None or dev.poll() is not None, 240)
        finally:
            if dev.poll() is None:
                dev.send_signal(signal.SIGINT)
    assert dev.returncode == 0, (project / "dev.log").read_text()
    assert (count(project, "dev"), count(project, "prod")) == (2, None)
    assert (
        f"project: {project}; environment: dev; Dagster's runs: {project}/.strandline/dev/dagster"
        in (project / "dev.log").read_text()
    )
    run = [*strandline, "run", "--all"]
    subprocess.run(run, env=variables(engine, STRANDLINE_ENV="prod"), check=True, capture_output=True)
    assert (count(project, "dev"), count(project, "prod")) == (2, 2)
    assert sorted(path.name for path in (project / ".strandline").iterdir()) == ["dev", "prod"]


def test_a_code_location_takes_the_environment_of_the_variable(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "platform.prod.yaml").write_text("sensors: {interval: PT7S}\n")
    (project / "platform.dev.yaml").write_text("sensors: {interval: PT9S}\n")
    for name, seconds in (("prod", 7), ("dev", 9)):
        monkeypatch.setenv("STRANDLINE_ENV", name)
        sensors = build_definitions(project).sensors or []
        assert seconds in {sensor.minimum_interval_seconds for sensor in sensors if hasattr(sensor, "name")}
