"""Run a project's dataflow as the command line does; print the seconds beyond imports."""

import importlib
import json
import sys
import time
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from dagster import DagsterInstance

from platform_assets.build import build_job
from platform_assets.cli.running import execute
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.io_managers import RunOptions
from resources.loop.outcome import Outcome

# These modules are imported on first use. Imports are not measured.
for module in (
    "dagster._core.execution.execute_in_process",
    "dagster._core.executor.in_process",
    "dagster._core.execution.plan.active",
    "dagster._core.instance.runs.run_domain",
    "dagster._core.system_config.composite_descent",
    "dagster._core.definitions.repository_definition.repository_data_builder",
    "deltalake",
    "grpc._channel",
    "obstore.store",
    "pyspark.logger",
    "pyspark.sql.connect.session",
):
    importlib.import_module(module)

outcomes: list[Outcome] = []
project = load_project(Path(sys.argv[1]))
options = RunOptions(hold_wait=timedelta(0), report=outcomes.append)
job = build_job(project.dataflows["arrivals"], build_platform(project), options, checked=False)
with DagsterInstance.ephemeral() as instance:
    before = time.monotonic()
    execute(job, instance)
    done = time.monotonic()
assert outcomes[0].rows == 1000, outcomes
print(json.dumps({"seconds": done - before, "loop": outcomes[0].seconds}))
