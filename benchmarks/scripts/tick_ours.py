"""Run a project's dataflow as the command line does; print the seconds beyond imports."""

import importlib
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from platform_assets.cli.running import Runner
from platform_assets.project import load_project

# These modules are imported on first use. Imports are not measured.
for module in (
    "deltalake",
    "grpc._channel",
    "obstore.store",
    "pyspark.logger",
    "pyspark.sql.connect.session",
):
    importlib.import_module(module)

project = load_project(Path(sys.argv[1]))
flow = project.dataflows["arrivals"]
runner = Runner(project, [flow], None)
before = time.monotonic()
outcome = runner.run(flow)
end = time.monotonic()
assert outcome.rows == 1000, outcome
print(json.dumps({"seconds": end - before, "loop": outcome.seconds}))
