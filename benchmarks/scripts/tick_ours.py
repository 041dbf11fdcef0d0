"""One run of a project's dataflow through Dagster, as the command line does it; prints the seconds beyond imports."""

import json
import sys
import time
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import deltalake  # noqa: F401 - imports are not what is measured
import pyspark.logger
import pyspark.sql.connect.session  # noqa: F401
from dagster import DagsterInstance

from platform_assets.build import build_definitions
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.io_managers import RunOptions
from resources.loop.outcome import Outcome

outcomes: list[Outcome] = []
project = load_project(Path(sys.argv[1]))
definitions = build_definitions(
    project, build_platform(project), RunOptions(hold_wait=timedelta(0), report=outcomes.append)
)
job = definitions.resolve_job_def("load_arrivals")
with DagsterInstance.ephemeral() as instance:
    before = time.monotonic()
    job.execute_in_process(
        instance=instance, run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    )
    seconds = time.monotonic() - before
assert outcomes[0].rows == 1000, outcomes
print(json.dumps({"seconds": seconds, "loop": outcomes[0].seconds}))
